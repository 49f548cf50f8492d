import gzip

import pytest
import tiny_run

from t2t_lite import errors
from t2t_lite.decode import files, journal, options, translator


@pytest.fixture(scope="module")
def model():
    decode_options = options.for_model(tiny_run.HPARAMS, beam_size=2, batch_size=2)
    return translator.Translator(tiny_run.model(), tiny_run.task(), decode_options, name="a")


def _expected(model, texts):
    return [files.line(translation) for translation in model.translate(texts)]


def _lines(path):
    text = path.read_bytes().decode("utf-8")
    assert text.endswith("\n")
    return text.removesuffix("\n").split("\n")


LINES = [*tiny_run.SENTENCES, "", "a\u2028b", "form\x0cfeed", "carriage\rreturn", " \t", "last"]


def test_every_input_line_has_its_output_line(model, tmp_path):
    source, target = tmp_path / "in", tmp_path / "out" / "file"
    source.write_bytes("\n".join(LINES).encode())  # the last line is not ended
    report = files.decode_file(model, source, target)
    assert _lines(target) == _expected(model, LINES)
    assert (report.lines, report.blank, report.done, report.left) == (11, 2, 9, 0)
    assert report.unfinished > 0
    assert sorted(path.name for path in target.parent.iterdir()) == ["file"]


def test_a_compressed_file_gives_the_same(model, tmp_path):
    source, target = tmp_path / "in.gz", tmp_path / "out"
    source.write_bytes(gzip.compress("\n".join(LINES).encode()))
    files.decode_file(model, source, target)
    assert _lines(target) == _expected(model, LINES)


def test_lossy_lines_are_decoded_and_counted(model, tmp_path):
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_bytes(b"caf\xe9\na dog\n")
    report = files.decode_file(model, source, target)
    assert report.lossy == 1
    assert _lines(target) == _expected(model, ["caf\ufffd", "a dog"])


def test_an_empty_file_is_a_users_mistake(model, tmp_path):
    (tmp_path / "in").touch()
    with pytest.raises(errors.UserError, match="in is empty"):
        files.decode_file(model, tmp_path / "in", tmp_path / "out")
    assert not (tmp_path / "out").exists()


class _InterruptedError(Exception):
    pass


def _interrupt_after(num_batches):
    def progress(report):
        if report.done >= 2 * num_batches:
            raise _InterruptedError

    return progress


def test_interrupted_decoding_goes_on(model, tmp_path):
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_text("\n".join(LINES))
    with pytest.raises(_InterruptedError):
        files.decode_file(model, source, target, progress=_interrupt_after(2))
    assert not target.exists()
    partial = tmp_path / "out.partial"
    partial.write_bytes(partial.read_bytes()[:-3])  # the last result was torn
    report = files.decode_file(model, source, target)
    assert (report.resumed, report.done) == (3, 6)
    assert _lines(target) == _expected(model, LINES)
    assert not partial.exists()


@pytest.mark.parametrize("changed", ["source", "weights"])
def test_another_job_does_not_use_what_is_left(model, tmp_path, monkeypatch, changed):
    source, target = tmp_path / "in", tmp_path / "out"
    lines = list(LINES)
    source.write_text("\n".join(lines))
    with pytest.raises(_InterruptedError):
        files.decode_file(model, source, target, progress=_interrupt_after(1))
    if changed == "source":
        lines.reverse()
        source.write_text("\n".join(lines))
    else:
        monkeypatch.setattr(model, "fingerprint", "of other weights")
    report = files.decode_file(model, source, target)
    assert report.resumed == 0
    assert _lines(target) == _expected(model, lines)


def test_a_journal_survives_several_interruptions(tmp_path):
    job = {"name": "job"}
    for start in (0, 2, 4):
        with journal.Journal(tmp_path / "out", job) as kept:
            assert sorted(kept.results) == list(range(start))
            kept.add([(start, "a\nb"), (start + 1, "\u2028")])
    with journal.Journal(tmp_path / "out", job) as kept:
        assert kept.results == {i: ["a\nb", "\u2028"][i % 2] for i in range(6)}
    with journal.Journal(tmp_path / "out", {"name": "other"}) as kept:
        assert kept.results == {}


def _translation(*texts):
    return translator.Translation(
        hypotheses=tuple(
            translator.Hypothesis(text=text, score=-i / 4, ids=(1,), finished=True)
            for i, text in enumerate(texts, start=1)
        )
    )


def test_a_line_has_no_line_feed_and_n_best_have_tabs():
    assert files.line(_translation("a\nb\tc")) == "a b\tc"
    assert files.line(_translation("a\tb", "c\nd")) == "a b\t-0.250000\tc d\t-0.500000"


def test_pairs_to_score(tmp_path):
    inputs, outputs, both = (tmp_path / name for name in ("inputs", "outputs", "both"))
    inputs.write_text("a\nb\n")
    outputs.write_text("x\ny z\n")
    both.write_text("a\tx\nb\ty z\n")
    expected = [("a", "x"), ("b", "y z")]
    assert files.read_pairs(outputs, inputs) == expected
    assert files.read_pairs(both, None) == expected
    with pytest.raises(errors.UserError, match="line 1: expected an input, a tab"):
        files.read_pairs(outputs, None)
    inputs.write_text("a\n")
    with pytest.raises(errors.UserError, match="has 1 lines"):
        files.read_pairs(outputs, inputs)


def test_scores_are_a_line_each(model):
    lines, report = files.score_pairs(model, [("a dog", "zwei"), ("he sleeps", "so")])
    for text in lines:
        log_probability, loss, tokens = map(float, text.split("\t"))
        assert log_probability == pytest.approx(-loss * tokens, abs=1e-4)
    assert report.done == 2
