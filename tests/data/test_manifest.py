"""A data_dir says what it holds, and is checked against what it says."""

import json

import numpy as np
import pytest

from t2t_lite import errors, registry
from t2t_lite.data import generate, manifest, problem, shards


class Numbers(problem.TranslationProblem):
    """A few lines, for these tests."""

    vocabulary_size = 280
    split_names = {"exam": "test"}  # noqa: RUF012

    def samples(self, split, *, raw_dir=None, tmp_dir=None):
        """Yield as many pairs as the split's name has letters, twice."""
        for i in range(2 * len(split)):
            yield {"inputs": f"number {i}", "targets": f"{split} {i * i}"}


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    path = tmp_path_factory.mktemp("data")
    generate.generate(Numbers(), data_dir=path, num_workers=1)
    return path


def test_what_was_written_is_loaded(data_dir):
    loaded = manifest.load(data_dir, Numbers())
    assert loaded.vocabulary_path.name == "vocab.numbers.280.model"
    assert {split: loaded.pairs(split) for split in loaded.splits} == {
        "train": 10,
        "dev": 6,
        "test": 8,
    }
    assert loaded == manifest.load(data_dir, Numbers().reversed_problem())
    loaded.check_files()


def test_text_is_kept_and_reversed(data_dir):
    text = manifest.problem_text(data_dir, Numbers(), "exam")
    assert text.sources[3] == "number 3"
    assert text.references[3] == "test 9"
    reverse = manifest.problem_text(data_dir, Numbers().reversed_problem(), "test")
    assert reverse == manifest.Text(text.references, text.sources)


def test_lengths_are_reversed_too(data_dir):
    loaded = manifest.load(data_dir, Numbers())
    forward, reverse = loaded.lengths("dev"), loaded.lengths("dev", is_reversed=True)
    assert (forward[:, [1, 0, 2]] == reverse).all()
    assert forward[:, 2].sum() == 6


def test_an_unknown_split_names_those_there_are(data_dir):
    with pytest.raises(errors.UserError, match=r"no text of split 'train'.* dev, test"):
        manifest.problem_text(data_dir, Numbers(), "train")
    with pytest.raises(errors.UserError, match=r"no split 'val'.* train, dev, test"):
        manifest.load(data_dir, Numbers()).shards("val")


def test_another_problems_data_are_named(data_dir):
    with pytest.raises(errors.UserError, match=r"was made for numbers, not for toy_ende"):
        manifest.load(data_dir, registry.problem("toy_ende"))


def test_an_empty_folder_says_how_to_fill_it(tmp_path):
    with pytest.raises(errors.UserError, match=r"run t2t-lite-datagen --problem=toy_ende"):
        manifest.load(tmp_path, registry.problem("toy_ende"))


def test_what_a_vocabulary_says_beside_its_own_changes_no_name(tmp_path):
    generate.generate(Numbers(), data_dir=tmp_path, num_workers=1)
    path = tmp_path / "numbers.manifest.json"
    fields = json.loads(path.read_text())
    fields["vocabulary"]["name"] = None
    path.write_text(json.dumps(fields))
    manifest.load(tmp_path, Numbers()).check_files()


@pytest.mark.parametrize("change", ["cut", "missing"])
def test_files_that_do_not_match_are_named(tmp_path, change):
    generate.generate(Numbers(), data_dir=tmp_path, num_workers=1)
    path = tmp_path / "numbers-dev-00000-of-00001"
    if change == "cut":
        path.write_bytes(path.read_bytes()[:-1])
    else:
        path.unlink()
    with pytest.raises(errors.UserError, match=r"numbers-dev-00000-of-00001.*numbers.manifest"):
        manifest.load(tmp_path, Numbers()).check_files()


def test_a_broken_manifest_is_named(tmp_path):
    (tmp_path / "numbers.manifest.json").write_text("{")
    with pytest.raises(errors.UserError, match="is not a manifest"):
        manifest.load(tmp_path, Numbers())
    (tmp_path / "numbers.manifest.json").write_text('{"format": 99}')
    with pytest.raises(errors.UserError, match="another version"):
        manifest.load(tmp_path, Numbers())


_SPLIT = {"pairs": 1, "source_tokens": 1, "target_tokens": 1, "shards": [], "lengths": []}


def _changed(**changes):
    return lambda content: {**content, **changes}


def _without(*keys):
    def change(content):
        inner = content
        for key in keys[:-1]:
            inner = inner[key]
        del inner[keys[-1]]
        return content

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: [], r"it is \[\], expected dict"),
        (lambda content: 3, "it is 3, expected dict"),
        (_without("splits"), "it has no 'splits'"),
        (_without("vocabulary", "bytes"), "'vocabulary' has no 'bytes'"),
        (_without("splits", "dev", "shards"), "'dev' has no 'shards'"),
        (_without("splits", "dev", "shards", 0, "name"), "an item of 'shards' has no 'name'"),
        (_changed(splits={"dev": 3}), "'dev' is 3, expected dict"),
        (_changed(options={"vocab_size": "7"}), "'vocab_size' is \"7\", expected int"),
        (_changed(splits={"dev": {**_SPLIT, "lengths": [[1, 2]]}}), "has not 3 numbers"),
        (_changed(splits={"dev": {**_SPLIT, "lengths": [3]}}), "an item of 'lengths' is 3"),
        (_changed(splits={"dev": {**_SPLIT, "pairs": 2**70}}), "'pairs' is"),
        (_changed(splits={"dev": {**_SPLIT, "text": [{"name": 5}]}}), "an item of 'text' has no"),
    ],
)
def test_a_manifest_that_lacks_something_says_what(data_dir, tmp_path, change, message):
    content = json.loads((data_dir / "numbers.manifest.json").read_text())
    (tmp_path / "numbers.manifest.json").write_text(json.dumps(change(content)))
    with pytest.raises(errors.UserError, match=f"is not a manifest: .*{message}"):
        manifest.load(tmp_path, Numbers())


@pytest.mark.parametrize("text", [b"", b"[" * 100_000, b"\xff\xfe{}", b"9" * 5_000])
def test_what_is_no_json_is_no_manifest(tmp_path, text):
    (tmp_path / "numbers.manifest.json").write_bytes(text)
    with pytest.raises(errors.UserError, match="is not a manifest"):
        manifest.load(tmp_path, Numbers())


def test_another_vocabulary_of_the_same_size_is_found_at_once(tmp_path):
    generate.generate(Numbers(), data_dir=tmp_path, num_workers=1)
    path = tmp_path / "vocab.numbers.280.model"
    path.write_bytes(path.read_bytes()[::-1])
    with pytest.raises(errors.UserError, match=f"other contents in {path.name}"):
        manifest.load(tmp_path, Numbers()).check_files()


def test_rounded_lengths_cover_and_are_few():
    lengths = np.arange(1, 2000)
    rounded = manifest.round_length(lengths)
    assert (rounded >= lengths).all()
    assert (rounded[:128] == lengths[:128]).all()
    assert (rounded / lengths).max() < 1.02
    assert (manifest.round_length(rounded) == rounded).all()


SUBWORDS = b"'<pad>_'\n'<EOS>_'\n'a_'\n'b_'\n"
TOKENS = b"<pad>\n<EOS>\na@@\nb\nUNK\n"


def _t2t_data(folder, names, vocabularies):
    for name in names:
        for split in ("train", "dev"):
            shards.write(
                folder / shards.name(name, split, 0, 1), [shards.example([2, 3, 1], [3, 1])]
            )
    for name, content in vocabularies.items():
        (folder / name).write_bytes(content)


@pytest.mark.parametrize(
    ("names", "vocabularies", "chosen"),
    [
        # T2T from 1.9 on
        (
            ["translate_ende_wmt_bpe32k"],
            {"vocab.translate_ende_wmt_bpe32k.tokens": TOKENS},
            "vocab.translate_ende_wmt_bpe32k.tokens",
        ),
        # before: also side by side
        (["translate_ende_wmt_bpe32k"], {"vocab.bpe.32000": TOKENS}, "vocab.bpe.32000"),
        (["translate_ende_wmt32k"], {"vocab.ende.32768": SUBWORDS}, "vocab.ende.32768"),
        (
            ["translate_ende_wmt32k", "translate_ende_wmt_bpe32k", "translate_ende_wmt8k"],
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
    loaded = manifest.load(tmp_path, problem_of_t2t)
    is_tokens = vocabularies[chosen] == TOKENS
    assert loaded.vocabulary["file"] == chosen
    assert loaded.vocabulary["size"] == (5 if is_tokens else 4)
    text = manifest.problem_text(tmp_path, problem_of_t2t, "dev")
    assert text == (["a@@ b"] if is_tokens else ["a b"], ["b"])


def test_a_class_says_which_of_several_vocabularies_is_its_own(tmp_path):
    class TranslateXy(problem.TranslationProblem):
        pass

    _t2t_data(tmp_path, ["translate_xy"], {"vocab.a.8": SUBWORDS, "vocab.b.8": TOKENS})
    with pytest.raises(errors.UserError, match=r"vocab.a.8, vocab.b.8: .*vocabulary_file\(\)"):
        manifest.load(tmp_path, TranslateXy())
    TranslateXy.vocabulary_file = lambda self, size=None: "vocab.b.8"
    assert manifest.load(tmp_path, TranslateXy()).vocabulary["size"] == 5


@pytest.mark.parametrize("others", [(1, 3), (0, 2)])
def test_shards_of_t2t_that_are_missing_or_of_two_generations_are_refused(tmp_path, others):
    name = "translate_ende_wmt32k"
    _t2t_data(tmp_path, [name], {"vocab.ende.32768": SUBWORDS})
    example = [shards.example([2, 3, 1], [3, 1])]
    shards.write(tmp_path / shards.name(name, "train", *others), example)
    with pytest.raises(errors.UserError, match="2 train shards of 0000"):
        manifest.load(tmp_path, registry.problem(name))


def test_packed_data_are_refused(tmp_path):
    _t2t_data(tmp_path, ["translate_ende_wmt32k"], {"vocab.ende.32768": SUBWORDS})
    packed = shards.example([2, 1, 2, 1], [3, 1]).replace(b"targets", b"targetz")
    shards.write(tmp_path / shards.name("translate_ende_wmt32k", "dev", 0, 1), [packed])
    with pytest.raises(errors.UserError, match="got inputs, targetz; packed data"):
        manifest.load(tmp_path, registry.problem("translate_ende_wmt32k"))


def test_t2t_data_need_no_manifest(shared_data):
    folder, name = shared_data / "t2t" / "data", "translate_ende_wmt32k"
    loaded = manifest.load(folder, registry.problem(name))
    assert (loaded.pairs("train"), loaded.pairs("dev")) == (10, 10)
    assert loaded.vocabulary["size"] == 33288
    text = manifest.problem_text(folder, registry.problem(name), "dev")
    assert text.sources[0] == "Blanc had achieved his goal when we qualified for the Euro."
    assert len(text.sources) == len(text.references) == 10
    with pytest.raises(errors.UserError, match=r"no .finished. data of toy_ende"):
        manifest.load(folder, registry.problem("toy_ende"))
