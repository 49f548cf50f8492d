"""Trees and their linear forms, from files and from models."""

from fuzz import inputs
from hypothesis import given
from hypothesis import strategies as st

from t2t_lite.parsing import evalb, treebanks, trees

_TREES = [
    b"( (S (NP-SBJ-1 (PRP It)) (VP (VBD was) (VP (VBN seen) (NP (-NONE- *-1)))) (. .)) )\n",
    b"(TOP (S (NP (-LRB- -LRB-) (NN dog)) (VP=2 (VBZ runs))))\n(X (Y z))\n",
    b"((FRAG\n  (NP (NNP Rolls-Royce)\n))\n)\n",
    b"(S (A x))" * 20,
    b"(S " * 2_000 + b"(A x)" + b")" * 2_000,
]
_CHUNKS = [b"(", b")", b"()", b"(S ", b"-NONE-", b"(-NONE- *)", b"(= x)", b"(TOP ", b"\xe2\x80\x83"]
_LINEAR = ["(S (NP XX )NP (VP XX (VP XX )VP )VP XX )S", "(TOP XX )TOP", "(S (S (S XX )S )S )S"]
_tokens = st.sampled_from(["(S", ")S", "(NP", ")NP", "(", ")", "XX", ",", "(((", ")X(", "x)y"])
linear_forms = (
    st.lists(_tokens, max_size=40).map(" ".join)
    | inputs.damaged([form.encode() for form in _LINEAR]).map(lambda b: b.decode("latin-1"))
    | st.text(max_size=50)
)


@given(inputs.damaged(_TREES, chunks=_CHUNKS))
def test_a_file_of_trees_is_read_or_refused(folder, data):
    path = folder / "fuzzed.mrg"
    path.write_bytes(data)
    with inputs.answered():
        for cleaned in treebanks.read(treebanks.files_of(path)):
            if cleaned is None:
                continue
            form = trees.linearize(cleaned)
            assert trees.delinearize(form, cleaned.words(), tags=cleaned.tags()) == cleaned
            assert trees.repair(form, len(cleaned.words())).repairs == 0
            assert trees.linear_form(str(cleaned)) == form
    with inputs.answered():
        for tree in trees.read(data.decode("utf-8", "replace").split("\n"), name="file"):
            assert trees.parse(str(tree)) == tree
            evalb.score([tree], [tree])


@given(linear_forms, st.lists(st.text(max_size=200) | linear_forms, max_size=4))
def test_a_linear_form_is_a_tree_or_refused_and_always_repaired(linear, texts):
    sentence = trees.sentence(" ".join(texts)).split()
    with inputs.answered():
        assert trees.delinearize(linear, sentence).tags()
    with inputs.answered():
        trees.linear_form(linear)
    with inputs.answered():
        repaired = trees.repair(linear, len(sentence)).linear
        tree = trees.delinearize(repaired, sentence)
        assert len(tree.words()) == len(sentence)
        assert trees.parse(str(tree)) == tree
        assert trees.repair(repaired, len(sentence)).repairs == 0
