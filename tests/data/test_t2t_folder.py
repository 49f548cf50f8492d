"""What tensor2tensor's t2t-datagen left is read without a manifest."""

import pytest

from t2t_lite import errors, registry
from t2t_lite.data import data_dir, problem, shards

SUBWORDS = b"'<pad>_'\n'<EOS>_'\n'a_'\n'b_'\n"
TOKENS = b"<pad>\n<EOS>\na@@\nb\nUNK\n"


BPE, SUBWORD = "translate_ende_wmt_bpe32k", "translate_ende_wmt32k"
EXAMPLE = shards.example([2, 3, 1], [3, 1])


def _t2t_data(folder, names, vocabularies):
    for name in names:
        for split in ("train", "dev"):
            shards.write(folder / shards.name(name, split, 0, 1), [EXAMPLE])
    for name, content in vocabularies.items():
        (folder / name).write_bytes(content)


@pytest.mark.parametrize(
    ("names", "vocabularies", "chosen"),
    [
        # T2T from 1.9 on
        ([BPE], {f"vocab.{BPE}.tokens": TOKENS}, f"vocab.{BPE}.tokens"),
        # before: also side by side
        ([BPE], {"vocab.bpe.32000": TOKENS}, "vocab.bpe.32000"),
        ([SUBWORD], {"vocab.ende.32768": SUBWORDS}, "vocab.ende.32768"),
        (
            [SUBWORD, BPE, "translate_ende_wmt8k"],
            {"vocab.bpe.32000": TOKENS, "vocab.ende.32768": SUBWORDS, "vocab.ende.8192": SUBWORDS},
            "vocab.ende.32768",
        ),
        # another name, but the only one; our own are none of T2T's
        (
            ["translate_enfr_wmt32k"],
            {"vocab.endefr.32768": SUBWORDS, "vocab.toy_ende.300.model": b""},
            "vocab.endefr.32768",
        ),
    ],
)
def test_t2ts_vocabularies_are_found_by_their_real_names(tmp_path, names, vocabularies, chosen):
    _t2t_data(tmp_path, names, vocabularies)
    problem_of_t2t = registry.problem(names[0])
    data = data_dir.read(tmp_path, problem_of_t2t)
    is_tokens = vocabularies[chosen] == TOKENS
    assert data.vocabulary_path.name == chosen
    assert data.vocabulary_file["size"] == (5 if is_tokens else 4)
    assert data.text("dev") == (["a@@ b"] if is_tokens else ["a b"], ["b"])


def test_a_class_says_which_of_several_vocabularies_is_its_own(tmp_path):
    class TranslateXy(problem.TranslationProblem):
        pass

    _t2t_data(tmp_path, ["translate_xy"], {"vocab.a.8": SUBWORDS, "vocab.b.8": TOKENS})
    with pytest.raises(errors.UserError, match=r"vocab.a.8, vocab.b.8: .*vocabulary_file\(\)"):
        data_dir.read(tmp_path, TranslateXy())
    TranslateXy.vocabulary_file = lambda self, size=None: "vocab.b.8"
    assert data_dir.read(tmp_path, TranslateXy()).vocabulary_file["size"] == 5


@pytest.mark.parametrize("others", [(1, 3), (0, 2)])
def test_shards_of_t2t_that_are_missing_or_of_two_generations_are_refused(tmp_path, others):
    _t2t_data(tmp_path, [SUBWORD], {"vocab.ende.32768": SUBWORDS})
    shards.write(tmp_path / shards.name(SUBWORD, "train", *others), [EXAMPLE])
    with pytest.raises(errors.UserError, match="2 train shards of 0000"):
        data_dir.read(tmp_path, registry.problem(SUBWORD))


def test_packed_data_are_refused(tmp_path):
    _t2t_data(tmp_path, [SUBWORD], {"vocab.ende.32768": SUBWORDS})
    packed = EXAMPLE.replace(b"targets", b"targetz")
    shards.write(tmp_path / shards.name(SUBWORD, "dev", 0, 1), [packed])
    with pytest.raises(errors.UserError, match="got inputs, targetz; packed data"):
        data_dir.read(tmp_path, registry.problem(SUBWORD))


def test_t2t_data_need_no_manifest(shared_data):
    folder = shared_data / "t2t" / "data"
    data = data_dir.read(folder, registry.problem(SUBWORD))
    assert (data.pairs("train"), data.pairs("dev")) == (10, 10)
    assert data.vocabulary_file["size"] == 33288
    text = data.text("dev")
    assert text.sources[0] == "Blanc had achieved his goal when we qualified for the Euro."
    assert len(text.sources) == len(text.references) == 10
    with pytest.raises(errors.UserError, match=r"no .finished. data of toy_ende"):
        data_dir.read(folder, registry.problem("toy_ende"))
