"""Models of several target languages: the label is an entry of the vocabulary, not text."""

import json
import pathlib

import exports
import marian_numbers
import pytest

from t2t_lite import errors
from t2t_lite.bin import decoder
from t2t_lite.decode import translator
from t2t_lite.imports import imported, marian

LABELS = (">>deu<<", ">>zh-Hans<<")


def test_a_model_that_marian_trained_and_its_export_answer_as_marian_does(other_python, tmp_path):
    other_python(str(pathlib.Path(__file__).parents[1] / "pymarian_model.py"), str(tmp_path))
    expected = json.loads((tmp_path / "expected.json").read_text())
    texts = expected.pop("texts")
    imported.write(marian.read(tmp_path), tmp_path / "run")
    for search, answers in expected.items():
        beams, normalize = search.split()
        changes = {"beam_size": int(beams), "alpha": float(normalize)}
        model = translator.Translator.from_output_dir(tmp_path / "run", **changes)
        pieces = model.vocabulary.targets.pieces
        found = [[pieces[i] for i in one.ids if i > 2] for one in model.translate(texts)]
        same = sum(own == theirs for own, theirs in zip(found, answers))
        assert same >= 0.98 * len(texts), search
    exports.says_the_same(tmp_path / "run", tmp_path / "export", texts[::6], **changes)


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("labels")
    marian_numbers.write(folder, labels=LABELS)
    imported.write(marian.read(folder), folder / "run")
    return folder / "run"


def test_a_label_is_an_entry_of_the_vocabulary(run_dir):
    vocab = translator.Translator.from_output_dir(run_dir).vocabulary
    plain = vocab.encode("a dog runs")
    for label in LABELS:
        expected = [vocab.pieces.index(label), *plain]
        assert vocab.encode(f"{label} a dog runs") == vocab.encode(f"{label}a dog runs") == expected
        assert vocab.decode(expected) == f"{label} a dog runs"
    assert vocab.encode(f"a {LABELS[0]}")[-1] != vocab.pieces.index(LABELS[0])
    with pytest.raises(errors.UserError, match="no target language >>fra<<, but >>deu<<, >>zh-Ha"):
        vocab.encode(">>fra<< a dog")


@pytest.mark.parametrize("changes", [{}, {"target_language": "deu"}], ids=str)
def test_an_export_reads_labels_as_the_translator_does(run_dir, tmp_path, changes):
    texts = ["a dog", ">>zh-Hans<< a dog", ">>deu<<a\ndog", ">>deu<<", "", ">> a <<", "a >>deu<< b"]
    _, translations = exports.says_the_same(
        run_dir, tmp_path, texts, extra_length=4, beam_size=2, **changes
    )
    vocab = translator.Translator.from_output_dir(run_dir).vocabulary
    labels = [vocab.pieces[t.source_ids[0]] for t in translations if t.source_ids]
    default = LABELS[0] if changes else vocab.pieces[vocab.encode("a dog")[0]]
    assert [*labels[:4], labels[5]] == [default, *LABELS[::-1], LABELS[0], default]


def test_the_command_says_that_the_model_wants_a_label(run_dir, tmp_path, capsys):
    (tmp_path / "in").write_text(">>deu<< a dog\na dog\n\na cat\n")
    flags = [f"--output_dir={run_dir}", f"--decode_from_file={tmp_path}/in"]
    flags += [f"--decode_to_file={tmp_path}/out"]
    assert decoder.main(["", *flags, "--decode_hparams=extra_length=2"]) == 0
    assert "2 lines without a target language" in capsys.readouterr().err
    for language, message in {
        "deu": "",
        ">>deu<<": "",
        "fra": "no target language >>fra<<",
    }.items():
        options = f"--decode_hparams=extra_length=2,target_language={language}"
        assert decoder.main(["", *flags, options]) == (1 if message else 0)
        captured = capsys.readouterr().err
        assert message in captured
        assert "without a target language" not in captured


def test_a_column_gives_each_line_its_target_language(run_dir, tmp_path):
    rows = [("deu", "a dog"), ("zh-Hans", "a dog"), ("", ">>deu<< a dog"), ("deu", "")]
    outputs = []
    for lines, more in (
        (["\t".join(row) for row in rows], ["--columns=target_language,text"]),
        ([f">>{row[0]}<< {row[1]}" if all(row) else row[1] for row in rows], []),
    ):
        (tmp_path / "in").write_text("\n".join(lines) + "\n")
        flags = [f"--output_dir={run_dir}", f"--decode_from_file={tmp_path}/in", *more]
        flags += [f"--decode_to_file={tmp_path}/out", "--decode_hparams=extra_length=4"]
        assert decoder.main(["", *flags]) == 0
        outputs.append((tmp_path / "out").read_text())
    assert outputs[0] == outputs[1]
    assert outputs[0].count("\n") == 4
