"""Parsing problems: what belongs to which split, and the form of the samples."""

import collections
import json

import archives
import pytest

from t2t_lite import errors, registry
from t2t_lite.bin import datagen, trainer
from t2t_lite.data import data_dir, generate, problem, shards
from t2t_lite.parsing import treebanks, trees

SECTIONS = [f"{number:02d}" for number in range(25)]


def tree(word):
    return f"(S (NP (NN {word})) (VP (VBZ is)))\n"


def inputs(name, split, raw_dir):
    return [one["inputs"] for one in registry.problem(name).samples(split, raw_dir=raw_dir)]


class Given(problem.ParsingProblem):
    """The trees that a test gives."""

    vocabulary_size = 340
    text = "(S (NP (PRP It)) (VP (VBD was) (ADJP (-LRB- -LRB-) (JJ wet) (-RRB- -RRB-))) (. .))"
    lost = "(S (NP (-NONE- *)))"
    trains = (text, lost, "(FRAG (NP (NN Rain)) (, ,))")
    devs = (text, lost, lost, "(SINV (NP (NN XX)) (FRAGX (NN a)))")

    def trees(self, split, *, raw_dir=None, tmp_dir=None):
        for text in {"train": self.trains * 9, "dev": self.devs, "test": (self.text,)}[split]:
            yield trees.clean(trees.parse(text))


class GivenTags(Given):
    """The same, with tags."""

    with_tags = True


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("given")
    for each in (Given(), GivenTags()):
        generate.generate(each, data_dir=folder, num_workers=1)
    return folder


def test_the_form_of_a_sample():
    found = next(Given().samples("test"))
    assert found == {
        "inputs": "It was -LRB- wet -RRB- .",
        "targets": " (S (NP XX )NP (VP XX (ADJP XX XX XX )ADJP )VP XX )S",
        "reference": Given.text,
    }
    assert [each.task for each in (Given(), GivenTags())] == ["parsing", "parsing_with_tags"]
    tagged = next(GivenTags().samples("test"))["targets"]
    assert tagged == " (S (NP PRP )NP (VP VBD (ADJP -LRB- JJ -RRB- )ADJP )VP . )S"


@pytest.mark.parametrize("each", [Given(), GivenTags()], ids=lambda each: each.base_name)
def test_each_symbol_is_one_id(made, each):
    vocab = data_dir.read(made, each).vocabulary
    samples = [one for one in each.samples("train") if one["inputs"]]
    symbols = {token for one in samples for token in one["targets"].split()}
    pieces = {vocab.pieces[token] for token in range(vocab.size)}
    assert {f"▁{symbol}" for symbol in symbols} <= pieces
    assert {piece for piece in pieces if set(piece) & set("()")} == {
        f"▁{symbol}" for symbol in symbols if symbol[0] in "()"
    }
    for one in samples:
        ids = vocab.encode(one["targets"])
        assert len(ids) == len(one["targets"].split())
        assert vocab.decode(ids) == one["targets"]
        starts = sum(vocab.pieces[token][0] == "▁" for token in vocab.encode(" " + one["inputs"]))
        assert starts == len(one["inputs"].split())
    texts = [one["targets"] for one in samples]
    tokenizer = vocab.tokenizer()
    in_graph = tokenizer.tokenize(texts)
    assert in_graph.to_list() == vocab.encode_batch(texts)
    assert [text.decode() for text in tokenizer.detokenize(in_graph).numpy()] == texts
    # Labels that the train split lacks are spelt.
    targets = [one["targets"] for one in each.samples("dev")][-1]
    ids = vocab.encode(targets)
    assert vocab.decode(ids) == targets
    assert len(ids) > len(targets.split())


def test_trees_without_words_are_counted(made):
    data = data_dir.read(made, Given())
    assert data.splits["train"]["dropped"]["empty"] == 9
    assert data.splits["train"]["pairs"] == 18
    assert data.splits["dev"]["dropped"] == {"empty": 2}
    assert data.splits["dev"]["pairs"] == 2
    assert "dropped" not in data.splits["test"]
    assert sum(1 for path in data.shards("dev") for _ in shards.read(path)) == 2
    text = data.text("dev")
    assert text.sources == ["It was -LRB- wet -RRB- .", "XX a"]
    assert text.references[0] == Given.text


def test_a_parser_decodes_as_the_papers_does_whatever_its_hparams_set(tmp_path):
    many = "".join(tree(f"word{number}") for number in range(20))
    archives.unpacked(tmp_path / "raw", dict.fromkeys(SAMPLE, many))
    problem = ["", "--problem=wsj_sample_parsing", f"--data_dir={tmp_path / 'data'}"]
    assert datagen.main([*problem, f"--raw_dir={tmp_path / 'raw'}", "--vocab_size=300"]) == 0
    flags = ["--hparams_set=transformer_toy", f"--output_dir={tmp_path / 'run'}"]
    # Section 6.3: a beam of 21, alpha 0.3, the input's length + 300; but what is asked for counts.
    flags += ["--hparams=d_model=8,d_ff=8,max_buckets=1,alpha=0.4", "--train_steps=1"]
    assert trainer.main([*problem, *flags, "--eval_sentences=0"]) == 0
    hparams = json.loads((tmp_path / "run" / "hparams.json").read_text())
    found = {name: hparams[name] for name in ("beam_size", "alpha", "extra_length")}
    assert found == {"beam_size": 21, "alpha": 0.4, "extra_length": 300}


# The Penn Treebank


@pytest.mark.parametrize(
    "names",
    [["parsed/mrg/wsj/{0}/wsj_{0}01.mrg"], ["WSJ/WSJ_{0}00.MRG"], ["{0}.txt"], ["{0}/any.mrg"]]
    + [["{0}/02.mrg", "{0}/22.mrg", "{0}/23.mrg"]],  # bare numbers are files of the folder's
)
def test_a_section_is_told_by_the_name_or_the_folder(tmp_path, names):
    archives.unpacked(tmp_path, {"mrg/brown/ca/ca01.mrg": tree("brown"), "README.md": "no (tree"})
    for name in names:
        files = {name.format(section): tree(f"w{section}") for section in SECTIONS}
        archives.unpacked(tmp_path, files)
    texts = {split: inputs("wsj_parsing", split, tmp_path) for split in ("train", "dev", "test")}
    assert sorted(texts["train"]) == sorted(f"w{n:02d} is" for n in [*range(2, 22)] * len(names))
    assert texts["dev"] == ["w22 is"] * len(names)
    assert texts["test"] == ["w23 is"] * len(names)
    assert len(registry.problem("wsj_parsing").raw_files(tmp_path)) == 22 * len(names)


def test_files_of_several_sections(tmp_path):
    """As the data of the Berkeley neural parser are called."""
    names = {"02-21.10way": "train", "22.auto": "dev", "23.auto": "test"}
    archives.unpacked(
        tmp_path, {f"{name}.clean": f"(TOP {tree(of)})" for name, of in names.items()}
    )
    for split in names.values():
        assert inputs("wsj_parsing", split, tmp_path) == [f"{split} is"]
    archives.unpacked(tmp_path, {"20-22.clean": tree("both")})
    with pytest.raises(errors.UserError, match=r"20-22.clean holds sections of several splits"):
        inputs("wsj_parsing", "dev", tmp_path)


def test_a_treebank_of_ones_own(tmp_path):
    files = {"train.mrg": tree("a"), "train/x/b.trees": tree("b"), "dev.clean": tree("c")}
    archives.unpacked(tmp_path, files)
    each = registry.problem("treebank")
    assert each.splits(tmp_path) == ("train", "dev")
    assert inputs("treebank", "train", tmp_path) == ["b is", "a is"]
    archives.write(tmp_path / "test.tgz", {"wsj/one.mrg": tree("d")})
    assert inputs("treebank_tags", "test", tmp_path) == ["d is"]
    for name, message in (
        ("train2.mrg", r"train2.mrg looks like part of train .*: call it train.2.mrg"),
        ("train/x.xml", r"x.xml is not a file of trees .* ends in .mrg"),
    ):
        archives.unpacked(tmp_path, {name: tree("e")})
        with pytest.raises(errors.UserError, match=message):
            each.raw_files(tmp_path)
        (tmp_path / name).unlink()


def test_wrong_sections_are_named(tmp_path):
    archives.unpacked(tmp_path, {f"{n}/wsj_{n}01.mrg": tree("a") for n in SECTIONS if n != "05"})
    with pytest.raises(errors.UserError, match="lacks section 05; expected wsj_0201"):
        registry.problem("wsj_parsing").raw_files(tmp_path)
    archives.unpacked(tmp_path, {"02/wsj_2202.mrg": tree("a")})
    message = r"02/wsj_2202.mrg is of section 22 by its name and of 02 by its folder: rename or"
    with pytest.raises(errors.UserError, match=message):
        registry.problem("wsj_parsing").raw_files(tmp_path)


@pytest.fixture
def semisupervised(tmp_path):
    archives.unpacked(tmp_path, {f"{n}/wsj_{n}01.mrg": tree(f"w{n}") for n in SECTIONS})
    many = "".join(tree(f"m{i}") for i in range(400))
    archives.unpacked(
        tmp_path, {"automatic/many.txt": many, "automatic/wsj_2201.mrg": tree("auto")}
    )
    return tmp_path


def counts(raw_dir):
    texts = inputs("wsj_parsing_semisupervised", "train", raw_dir)
    return collections.Counter(text.split()[0] for text in texts)


def test_semisupervised_weighs_each_corpus(semisupervised):
    each = registry.problem("wsj_parsing_semisupervised")
    found = counts(semisupervised)
    assert set(found.values()) == {1}
    assert len(found) == 20 + 400 + 1
    assert inputs(each.name, "dev", semisupervised) == ["w22 is"]
    assert len(each.raw_files(semisupervised)) == 24
    weights = {"weights.tsv": "wsj\t3\nmany.txt\t1.25\nwsj_2201.mrg\t0\n"}
    archives.unpacked(semisupervised, weights)
    found = counts(semisupervised)
    assert all(found[f"w{number:02d}"] == 3 for number in range(2, 22))
    assert "auto" not in found
    numbers = collections.Counter(found[f"m{i}"] for i in range(400))
    assert set(numbers) == {1, 2}
    assert 70 < numbers[2] < 130
    assert found == counts(semisupervised)  # the draw is repeatable
    names = [path.name for path in each.raw_files(semisupervised)]
    assert names[-3:] == ["many.txt", "wsj_2201.mrg", "weights.tsv"]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (
            "wsj\t1\nnone.txt\t2\n",
            "weights.tsv, line 2: .* one of wsj, many.txt, wsj_2201.mrg, got",
        ),
        ("wsj 1\n", "weights.tsv, line 1: expected name<TAB>weight"),
        ("wsj\t2\n\nwsj\t3\n", "weights.tsv, line 3: line 1 gives wsj a weight already: leave"),
        ("wsj\tmuch\n", "a weight is a number of at least 0, got 'much'"),
        ("wsj\t-1\n", "a weight is a number of at least 0, got '-1'"),
        ("wsj\tinf\n", "a weight is a number of at least 0, got 'inf'"),
    ],
)
def test_wrong_weights_are_refused(semisupervised, weights, message):
    archives.unpacked(semisupervised, {"weights.tsv": weights})
    with pytest.raises(errors.UserError, match=message):
        registry.problem("wsj_parsing_semisupervised").raw_files(semisupervised)


def test_semisupervised_needs_its_folder(tmp_path, semisupervised):
    (semisupervised / "automatic" / "notes.md").write_text("no trees")
    with pytest.raises(errors.UserError, match=r"notes.md is not a file of trees .* ends in .mrg"):
        registry.problem("wsj_parsing_semisupervised").raw_files(semisupervised)
    for path in (semisupervised / "automatic").iterdir():
        path.unlink()
    with pytest.raises(errors.UserError, match="lacks automatic/ with files of automatically"):
        registry.problem("wsj_parsing_semisupervised").raw_files(semisupervised)


# The free treebanks


SAMPLE = {f"wsj_0{number}.mrg": tree("a") for number in ("001", "160", "180")}


def test_a_file_that_is_there_twice_is_refused(tmp_path):
    problem = registry.problem("wsj_sample_parsing")
    archives.unpacked(tmp_path / "sample", SAMPLE)
    archives.unpacked(tmp_path, {"README.txt": "no tree", "sample/README.txt": "neither"})
    assert len(problem.raw_files(tmp_path)) == 3
    archives.write(tmp_path / "combined.tgz", {"combined/wsj_0001.mrg": tree("a")})
    with pytest.raises(errors.UserError, match=r"wsj_0001 is there twice, as .*combined.tgz: "):
        problem.raw_files(tmp_path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("wsj_parsing", "lacks section 02, 03"),
        ("wsj_sample_parsing", "has no trees for train; expected the sample's wsj_0001.mrg"),
        ("craft_parsing", "has no trees for train; expected CRAFT's articles"),
        ("wsj_sample_craft_parsing", "has no trees for train"),
    ],
)
def test_absent_trees_are_refused(tmp_path, name, message):
    each = registry.problem(name)
    with pytest.raises(errors.UserError, match=f"{name} reads its trees from --raw_dir"):
        each.raw_files()
    with pytest.raises(errors.UserError, match="not there is not a folder"):
        each.raw_files(tmp_path / "not there")
    with pytest.raises(errors.UserError, match=message):
        each.raw_files(tmp_path)


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("wsj_sample_parsing", {"train": 3396, "dev": 273, "test": 245}),
        pytest.param(
            "craft_parsing", {"train": 24_713, "dev": 3345, "test": 2772}, marks=pytest.mark.slow
        ),
    ],
)
def test_real_corpora_are_split_without_overlap(shared_data, name, sizes):
    raw_dir = shared_data / name.removesuffix("_parsing")
    each = registry.problem(name)
    parts = each.split_files(raw_dir)
    files = [file for part in parts.values() for file in part]
    assert len(set(files)) == len(files) == len(treebanks.find(raw_dir))
    for split, size in sizes.items():
        assert sum(1 for _ in each.samples(split, raw_dir=raw_dir)) == size


def test_the_combination_has_both_corpora(shared_data, tmp_path):
    for path in (shared_data / "wsj_sample" / "combined.tgz", shared_data / "craft" / "penn.tgz"):
        (tmp_path / path.name).symlink_to(path)
    each = registry.problem("wsj_sample_craft_parsing")
    parts = each.split_files(tmp_path)
    assert list(parts) == list(each.splits(tmp_path))
    sizes = {split: len(files) for split, files in parts.items()}
    ends = {"dev": 20, "test": 20, "craft_dev": 10, "craft_test": 10}
    assert sizes == {"train": 159 + 77, **ends}
    # the same trees as those of the corpora's own problems
    dev = inputs("wsj_sample_parsing", "dev", tmp_path)
    assert inputs("wsj_sample_craft_parsing", "dev", tmp_path) == dev
    assert len(each.raw_files(tmp_path)) == 2


# The toy problem


def test_toy_trees(tmp_path):
    each = registry.problem("toy_parsing")
    each.sizes = {"dev": 50, "test": 40, "train": 600}
    splits = {split: list(each.samples(split)) for split in each.splits()}
    assert {split: len(found) for split, found in splits.items()} == each.sizes
    texts = [one["reference"] for found in splits.values() for one in found]
    assert len(set(texts)) == len(texts)
    for one in splits["dev"]:
        found = str(trees.delinearize(one["targets"], one["inputs"].split(" ")))
        assert found.count("(") == one["reference"].count("(")
    made = generate.generate(each, data_dir=tmp_path, vocab_size=700, num_workers=1)
    assert made.splits["train"]["pairs"] == 600
    assert json.loads((tmp_path / "toy_parsing.manifest.json").read_text())["raw_files"] == []
