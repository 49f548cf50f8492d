"""Generation: the same bytes whatever the workers, the chunks and the interruptions."""

import collections
import gzip
import pathlib

import numbered_corpus
import pytest
import tiny_run

from t2t_lite import errors
from t2t_lite.data import generate, reader, shards, spill
from t2t_lite.data import problem as problems
from t2t_lite.text import cleaning, text_files, vocabulary


def _texts(made, split):
    """Return the decoded pairs of a split's shards, in their order."""
    vocab = made.vocabulary
    for ids in shards.read_examples(made.shards(split)):
        assert ids["inputs"][-1] == ids["targets"][-1] == vocabulary.EOS_ID
        yield vocab.decode(ids["inputs"]), vocab.decode(ids["targets"])


def test_every_pair_is_there_once_and_shuffled(made, raw_dir):
    raw = list(text_files.read_pairs(raw_dir / "train.source.gz", raw_dir / "train.target.gz"))
    shuffled = list(_texts(made, "train"))
    assert sorted(shuffled) == sorted(raw)
    assert shuffled[:100] != raw[:100]
    # a uniform shuffle: the first shard's pairs come from all over the corpus
    places = {pair: i for i, pair in enumerate(raw)}
    first = [places[pair] for pair in shuffled[: len(shuffled) // 2]]
    quarters = collections.Counter(4 * place // len(raw) for place in first)
    assert all(abs(n / len(first) - 0.25) < 0.03 for n in quarters.values())


def test_dev_and_test_keep_their_order_and_their_text(made, problem, raw_dir):
    for split in ("dev", "test"):
        raw = list(
            text_files.read_pairs(raw_dir / f"{split}.source.gz", raw_dir / f"{split}.target.gz")
        )
        assert list(_texts(made, split)) == raw
        text = made.text(split)
        assert list(zip(text.sources, text.references)) == raw


def test_manifest_counts_are_those_of_the_shards(made):
    train = made.splits["train"]
    records = list(shards.read_examples(made.shards("train")))
    assert train["pairs"] == train["pairs_read"] == len(records) == 12_500
    assert train["source_tokens"] == sum(len(one["inputs"]) for one in records)
    assert train["target_tokens"] == sum(len(one["targets"]) for one in records)
    assert made.lengths("train")[:, 2].sum() == 12_500
    cells = collections.Counter((len(one["inputs"]), len(one["targets"])) for one in records)
    assert {(s, t): n for s, t, n in made.lengths("train").tolist()} == cells
    assert [shard["records"] for shard in train["shards"]] == [
        sum(1 for _ in shards.read(path)) for path in made.shards("train")
    ]
    # Only what the manifest names is left.
    names = {entry["name"] for entry in made.files()} | {"parallel_text.manifest.json"}
    assert set(numbered_corpus.contents(made.folder)) == names
    assert made.raw_files[0]["name"] == "train.source.gz"
    assert train["files"] == {"train.source.gz + train.target.gz": 12_500}
    assert made.vocabulary_file["size"] == 400
    assert made.vocabulary_file["subwords_per_word"] > 1


def test_bytes_do_not_depend_on_workers_and_chunks(made, problem, raw_dir, tmp_path):
    options = {"num_workers": 3, "chunk_pairs": 3_999}
    other = numbered_corpus.generate(problem, raw_dir, tmp_path, **options)
    assert numbered_corpus.contents(other.folder) == numbered_corpus.contents(made.folder)


def test_chunks_of_long_pairs_are_small(made, problem, raw_dir, tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "_MAX_CHARACTERS", 5_000)
    monkeypatch.setattr(spill, "_MAX_CHARACTERS", 1_000)
    chunks = []
    encode = spill.encode_chunk
    monkeypatch.setattr(
        spill, "encode_chunk", lambda *args, **kw: chunks.append(args) or encode(*args, **kw)
    )
    numbered_corpus.generate(problem, raw_dir, tmp_path)
    assert max(sum(map(len, inputs + targets)) for *_, inputs, targets in chunks) < 5_200
    assert numbered_corpus.contents(tmp_path) == numbered_corpus.contents(made.folder)


def test_another_seed_shuffles_otherwise(made, problem, raw_dir, tmp_path):
    other = numbered_corpus.generate(problem, raw_dir, tmp_path, random_seed=7)
    assert sorted(_texts(other, "train")) == sorted(_texts(made, "train"))
    assert list(_texts(other, "train")) != list(_texts(made, "train"))


class Folders(problems.Problem):
    """Reads the files that lie in raw_dir's folders, however they are called."""

    def raw_files(self, raw_dir=None):
        return sorted(path for path in pathlib.Path(raw_dir or "").rglob("*") if path.is_file())

    def samples(self, split, *, raw_dir=None, tmp_dir=None):
        for path in self.raw_files(raw_dir):
            for line in text_files.read_lines(path):
                yield {"inputs": line, "targets": line}


@pytest.mark.parametrize("text", [None, b"bytes", "half \ud83d a character"])
@pytest.mark.parametrize("split", ["train", "dev"])
def test_what_a_class_yields_is_text_or_refused(tmp_path, split, text):
    class Problem(problems.Problem):
        def samples(self, split_, *, raw_dir=None, tmp_dir=None):
            yield {"inputs": "a", "targets": text if split_ == split else "b"}
            for source, target in numbered_corpus.pairs(200):
                yield {"inputs": source, "targets": target}

    def generate():
        return numbered_corpus.generate(Problem(), None, tmp_path, vocab_size=300)

    if isinstance(text, str):
        assert "half \ufffd a character" in {target for _, target in _texts(generate(), split)}
    else:
        with pytest.raises(errors.UserError, match=rf"'targets' of {split} sample 1 is [Nb].*"):
            generate()


def test_files_of_one_name_are_told_apart_by_their_folders(tmp_path):
    raw_dir, data_dir = tmp_path / "raw", tmp_path / "data"
    other = "news [1, 2].txt"  # as it is, though lists of numbers have no blanks in a manifest
    for name in ("02/text.txt", "03/text.txt", f"04/{other}"):
        lines = [f"{name} {words}" for words, _ in numbered_corpus.pairs(200)]
        text_files.write_lines(raw_dir / name, lines)
    made = numbered_corpus.generate(Folders(), raw_dir, data_dir, vocab_size=330)
    names = [entry["name"] for entry in made.raw_files]
    assert names == ["02/text.txt", "03/text.txt", other]
    assert numbered_corpus.generate(Folders(), raw_dir, data_dir, vocab_size=330) == made
    first, second = raw_dir / "02" / "text.txt", raw_dir / "03" / "text.txt"
    whole = first.read_bytes(), second.read_bytes()
    for changed in ((b"new\n", whole[1]), (whole[0], b"new\n"), whole[::-1]):
        first.write_bytes(changed[0])
        second.write_bytes(changed[1])
        with pytest.raises(errors.UserError, match=r"otherwise: file 0[23]/text.txt \d+ bytes"):
            numbered_corpus.generate(Folders(), raw_dir, data_dir, vocab_size=330)


CLEAN = cleaning.Cleaning(max_length=40, max_length_ratio=3, drop_duplicates=True)
DIRT = [
    ("", "empty source"),
    ("empty target", " \t"),
    ("a green dog " * 30, "too long"),
    ("near of", "the old small green house never sees a cat and runs always"),
    ("same", "same"),
    ("gr\ufffdn", "replaced"),
    ("same", "same"),
    ("same", "other"),
    ("same", "same"),
]


@pytest.mark.parametrize("num_workers", [1, 2])
def test_what_is_dropped_is_counted_by_reason(problem, tmp_path, num_workers, monkeypatch):
    monkeypatch.setattr(generate, "_PAIRS_PER_SHARD", 500)  # equal pairs must meet in one of 7
    raw_dir = numbered_corpus.write(tmp_path / "raw", 3_000, extra=DIRT)
    options = {"cleaning": CLEAN, "num_workers": num_workers, "chunk_pairs": 500}
    made = numbered_corpus.generate(problem, raw_dir, tmp_path / "data", **options)
    train = made.splits["train"]
    assert train["dropped"] == {"empty": 2, "too_long": 1, "length_ratio": 1, "duplicate": 2}
    assert train["pairs_read"] == 3_009
    assert train["pairs"] == 3_003
    assert train["not_utf8"] == 1
    counts = collections.Counter(_texts(made, "train"))
    assert counts["same", "same"] == counts["same", "other"] == 1


def test_by_default_only_empty_pairs_of_train_go(problem, tmp_path):
    raw_dir = numbered_corpus.write(tmp_path / "raw", 100, extra=DIRT)
    for side in ("source", "target"):
        (raw_dir / f"dev.{side}.gz").write_bytes(gzip.compress(b"a\n\nb\n"))
    made = numbered_corpus.generate(problem, raw_dir, tmp_path / "data")
    assert made.splits["train"]["dropped"] == {"empty": 2, "too_long": 0, "length_ratio": 0}
    assert made.pairs("train") == 107
    assert list(_texts(made, "dev")) == [("a", "a"), ("", ""), ("b", "b")]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("train.target", b"\n \t\n\xe2\x80\x83\n", "no train pair with text on both sides"),
        ("train.source", b"", "has no training text"),
        ("dev.source", b"", "no dev pair with text on both sides"),
        ("dev.target", b"\n\n", "no dev pair with text on both sides"),
        ("test.target", b"", "no test pair with text on both sides"),
        ("train.source", "Ä\nÖ\nx\n".encode("latin-1"), "2 of 3 training pairs .* are not UTF-8"),
        ("train.source", "one\n\n\n".encode("utf-16"), "train.source.gz is UTF-16"),
    ],
)
def test_a_side_that_is_no_text_is_refused(problem, tmp_path, name, text, message):
    raw_dir = numbered_corpus.write(tmp_path / "raw", 100)
    lines = text.count(b"\n")
    for side in ("source", "target"):
        other = raw_dir / f"{name.partition('.')[0]}.{side}.gz"
        content = text if other.stem == name else b"text\n" * lines
        other.write_bytes(gzip.compress(content))
    with pytest.raises(errors.UserError, match=message) as caught:
        numbered_corpus.generate(problem, raw_dir, tmp_path / "data")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "data").exists()


def test_cleaning_that_leaves_nothing_is_refused(problem, tmp_path):
    raw_dir = numbered_corpus.write(tmp_path / "raw", 100)
    strict = cleaning.Cleaning(max_length=1)
    with pytest.raises(errors.UserError, match=r"drops all 100 training pairs .* 100 too_long"):
        numbered_corpus.generate(problem, raw_dir, tmp_path / "data", cleaning=strict)
    assert not (tmp_path / "data").exists()
    made = numbered_corpus.generate(problem, raw_dir, tmp_path / "data")
    assert made.pairs("train") == 100


def test_a_line_without_end_is_named_and_dropped(problem, tmp_path):
    endless = "word " * 1_000_000  # of these 4 million words, two minutes
    extra = [("short", endless), ("x", "y"), (endless, endless)]
    raw_dir = numbered_corpus.write(tmp_path / "raw", 200, extra=extra)
    for side, line in (("source", "a dog"), ("target", endless)):
        text = f"a cat\n{line}\n".encode()
        (raw_dir / f"dev.{side}.gz").write_bytes(gzip.compress(text))
    made = numbered_corpus.generate(problem, raw_dir, tmp_path / "data")
    train = made.splits["train"]
    assert train["overlong"] == [201, 203]
    assert train["dropped"] == {"empty": 0, "too_long": 2, "length_ratio": 0}
    assert train["pairs_read"] == 203
    assert set(_texts(made, "train")) == {*numbered_corpus.pairs(200, seed=1), ("x", "y")}
    # a dev text stays line for line the same: of such a line the ids are cut
    assert made.splits["dev"]["overlong"] == [2]
    assert made.text("dev").references[1] == endless
    assert list(_texts(made, "dev"))[1] == ("a dog", endless[: cleaning.MAX_CHARACTERS])


@pytest.mark.parametrize(
    ("pairs", "num_shards"),
    [(1, 1), (10_001, 2), (4_508_785, 100), (100_000_000, 100), (100_000_001, 101)],
)
def test_a_shard_is_bounded_and_the_usual_corpora_have_a_hundred(pairs, num_shards):
    assert generate._num_shards(pairs) == num_shards


def test_a_given_vocabulary_has_the_symbols_of_the_trees(tmp_path):
    class Trees(problems.Problem):
        task = "parsing"
        symbolic_targets = True
        targets = " (S (NP XX XX )NP )S"

        def samples(self, split, *, raw_dir=None, tmp_dir=None):
            yield from [{"inputs": "the dog", "targets": self.targets}] * 20

    run = tiny_run.write(tmp_path / "run", problem="toy_parsing")
    options = {"num_workers": 1, "vocab_from": str(run)}
    generate.generate(Trees(), data_dir=tmp_path / "data", **options)
    Trees.targets = " (S (NX XX DT )NX )S"
    with pytest.raises(errors.UserError, match=r"no \(NX, no \)NX, no DT, which the trees have"):
        generate.generate(Trees(), data_dir=tmp_path / "other", **options)
