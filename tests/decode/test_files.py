"""Files of text: windows, the journal, what an interruption leaves."""

import dataclasses
import gzip
import json

import pytest
import tiny_run

from t2t_lite import errors
from t2t_lite.decode import files, journal, options, translator
from t2t_lite.decode import translation as translations


@pytest.fixture(scope="module")
def model():
    decode_options = options.for_model(tiny_run.HPARAMS, beam_size=2, batch_size=2)
    return translator.Translator(tiny_run.model(), tiny_run.task(), decode_options, name="a")


def _expected(model, texts):
    return [translations.line(translation) for translation in model.translate(texts)]


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
    assert (report.total, report.blank, report.done, report.left) == (11, 2, 9, 0)
    assert report.unfinished > 0
    assert sorted(path.name for path in target.parent.iterdir()) == ["file"]


def test_lossy_lines_of_a_compressed_file_are_decoded_and_counted(model, tmp_path):
    source, target = tmp_path / "in.gz", tmp_path / "out"
    source.write_bytes(gzip.compress(b"caf\xe9\na dog\n"))
    report = files.decode_file(model, source, target)
    assert report.lossy == 1
    assert _lines(target) == _expected(model, ["caf\ufffd", "a dog"])


class _InterruptedError(Exception):
    pass


def _interrupt_after(num_batches):
    def progress(report):
        if report.done >= 2 * num_batches:
            raise _InterruptedError

    return progress


@pytest.fixture
def interrupted(model, tmp_path):
    """Return a function that decodes LINES until some batches are done: source and target."""

    def interrupt(num_batches):
        source, target = tmp_path / "in", tmp_path / "out"
        source.write_text("\n".join(LINES))
        with pytest.raises(_InterruptedError):
            files.decode_file(model, source, target, progress=_interrupt_after(num_batches))
        assert not target.exists()
        return source, target

    return interrupt


def test_interrupted_decoding_resumes(model, tmp_path, interrupted):
    source, target = interrupted(2)
    partial = tmp_path / "out.partial"
    partial.write_bytes(partial.read_bytes()[:-3])  # the last result was torn
    report = files.decode_file(model, source, target)
    assert (report.resumed, report.done) == (3, 6)
    assert _lines(target) == _expected(model, LINES)
    assert not partial.exists()


@pytest.mark.parametrize("changed", ["source", "weights"])
def test_another_job_does_not_use_what_is_left(model, interrupted, monkeypatch, changed):
    source, target = interrupted(1)
    lines = list(LINES)
    if changed == "source":
        lines.reverse()
        source.write_text("\n".join(lines))
    else:
        monkeypatch.setattr(model, "fingerprint", "of other weights")
    report = files.decode_file(model, source, target)
    assert report.resumed == 0
    assert _lines(target) == _expected(model, lines)


def test_what_changes_no_output_lets_a_job_resume(model, interrupted):
    source, target = interrupted(2)
    changed = dataclasses.replace(model.options, batch_size=3, batch_tokens=50)
    other = translator.Translator(tiny_run.model(), tiny_run.task(), changed, name="a")
    assert files.decode_file(other, source, target).resumed == 4


def test_a_journal_that_does_not_fit_is_kept(model, tmp_path, interrupted):
    source, target = interrupted(2)
    journal_before = (tmp_path / "out.partial").read_bytes()
    other = translator.Translator(tiny_run.model(2), tiny_run.task(), model.options, name="b")
    report = files.decode_file(other, source, target)
    assert report.kept_as == tmp_path / "out.partial.1"
    assert (tmp_path / "out.partial.1").read_bytes() == journal_before
    assert _lines(target) == _expected(other, LINES)


def test_what_an_interrupted_job_of_more_lines_left_is_kept(model, tmp_path, interrupted):
    _, target = interrupted(2)
    report = files.write(files.Decoding(model), [], target)  # as of a pipe whose writer failed
    assert report.kept_as == tmp_path / "out.partial.1"


@pytest.mark.parametrize("left", ["", '{"decode": "an'], ids=["nothing", "a torn beginning"])
def test_a_journal_whose_writer_was_killed_at_its_first_line_is_not_kept(model, tmp_path, left):
    (tmp_path / "in").write_text(LINES[0])
    (tmp_path / "out.partial").write_text(left)
    report = files.decode_file(model, tmp_path / "in", tmp_path / "out")
    assert report.kept_as is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


def test_windows_change_nothing_and_their_results_are_kept(model, interrupted, monkeypatch):
    monkeypatch.setattr(files, "WINDOW", 3)
    source, target = interrupted(3)
    lines = [*LINES[:-1], "another end"]  # of the last window: what was made before it stays
    source.write_text("\n".join(lines))
    report = files.decode_file(model, source, target)
    assert report.resumed >= 5
    assert _lines(target) == _expected(model, lines)


def test_what_was_cut_before_an_interruption_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "WINDOW", 4)
    decode_options = options.for_model(
        tiny_run.HPARAMS, beam_size=2, batch_size=2, max_source_length=6
    )
    model = translator.Translator(tiny_run.model(), tiny_run.task(), decode_options)
    whole = files.write(files.Decoding(model), LINES, tmp_path / "whole")
    assert whole.truncated == len(whole.truncated_lines) > 2
    assert whole.unfinished > 2
    with pytest.raises(_InterruptedError):
        files.write(files.Decoding(model), LINES, tmp_path / "out", progress=_interrupt_after(3))
    resumed = files.write(files.Decoding(model), LINES, tmp_path / "out")
    assert resumed.resumed == 6
    for name in ("truncated", "truncated_lines", "unfinished", "repaired"):
        assert getattr(resumed, name) == getattr(whole, name)


def test_blank_lines_have_as_many_columns_as_others(tmp_path):
    decode_options = options.for_model(tiny_run.HPARAMS, beam_size=2, return_beams=2)
    model = translator.Translator(tiny_run.model(), tiny_run.task(), decode_options)
    (tmp_path / "in").write_text("a dog\n\n")
    files.decode_file(model, tmp_path / "in", tmp_path / "out")
    assert [line.count("\t") % 2 for line in _lines(tmp_path / "out")] == [1, 1]
    assert _lines(tmp_path / "out")[1] == "\t0.000000"


def test_two_jobs_do_not_write_one_file(model, tmp_path):
    with (
        journal.Journal(tmp_path / "out", {}),
        pytest.raises(errors.UserError, match=r"another process writes .*out: wait for it, or"),
    ):
        files.write(files.Decoding(model), ["a dog"], tmp_path / "out")
    files.write(files.Decoding(model), ["a dog"], tmp_path / "out")


def test_wrong_files_are_refused_and_left_as_they_are(model, tmp_path):
    (tmp_path / "in").write_text("a dog\n")
    (tmp_path / "empty").touch()
    (tmp_path / "link").symlink_to(tmp_path / "in")
    before = sorted(tmp_path.iterdir())
    for source, target, says in [
        ("empty", "out", "empty is empty"),
        ("in", "link", "another file"),
        ("in", ".", "is a folder"),
    ]:
        with pytest.raises(errors.UserError, match=says):
            files.decode_file(model, tmp_path / source, tmp_path / target)
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "in").read_text() == "a dog\n"


def test_a_journal_survives_several_interruptions(tmp_path):
    job, lines = {"name": "job"}, ["x"] * 6
    results = [journal.Result("a\nb", ("unfinished",)), journal.Result("\u2028")]
    for start in (0, 2, 4):
        with journal.Journal(tmp_path / "out", job) as kept:
            assert sorted(kept.begin(lines)) == list(range(start))
            kept.add([(start, results[0]), (start + 1, results[1])])
    with journal.Journal(tmp_path / "out", job) as kept:
        assert kept.begin(lines) == {i: results[i % 2] for i in range(6)}
        assert list(kept.outputs()) == ["a\nb", "\u2028"] * 3
    with journal.Journal(tmp_path / "out", {"name": "other"}) as kept:
        assert kept.begin(lines) == {}


def _in_capitals(target, windows):
    """Do the job "a line in capitals" by a journal, which stays; return the outputs."""
    with journal.Journal(target, {"name": "job"}) as kept:
        for window in windows:
            results = kept.begin(window)
            missing = [place for place, text in enumerate(window) if text and place not in results]
            kept.add([(place, journal.Result(window[place].upper())) for place in missing])
        return list(kept.outputs())


def test_a_lost_line_of_a_journal_changes_no_output(tmp_path):
    windows = [["a", "", "b"], ["c", "d", "e"], ["f"]]
    expected = ["A", "", "B", "C", "D", "E", "F"]
    assert _in_capitals(tmp_path / "out", windows) == expected
    content = (tmp_path / "out.partial").read_bytes()
    lines = content.split(b"\n")
    for number, line in enumerate(lines):
        target = tmp_path / f"out{number}"
        # as a power cut leaves it
        damaged = b"\n".join([*lines[:number], b"\0" * len(line), *lines[number + 1 :]])
        target.with_name(f"out{number}.partial").write_bytes(damaged)
        assert _in_capitals(target, windows) == expected
    first = lines.index(b'[0, 0, "A"]')
    assert (tmp_path / f"out{first}.partial.1").exists()  # with what was behind it


def _translation(*texts):
    return translator.Translation(
        hypotheses=tuple(
            translator.Hypothesis(text=text, score=-i / 4, ids=(1,), finished=True)
            for i, text in enumerate(texts, start=1)
        )
    )


def test_a_line_has_no_line_feed_and_n_best_have_tabs():
    assert translations.line(_translation("a\nb\tc")) == "a b\tc"
    assert (
        translations.line(_translation("a\tb", "c\nd"), is_nbest=True)
        == "a b\t-0.250000\tc d\t-0.500000"
    )


def test_pairs_to_score(tmp_path):
    inputs, outputs, both = (tmp_path / name for name in ("inputs", "outputs", "both"))
    inputs.write_text("a\nb\n")
    outputs.write_text("x\ny z\n")
    both.write_text("a\tx\nb\ty z\n")
    expected = [("a", "x"), ("b", "y z")]
    assert list(files.read_pairs(outputs, inputs)) == expected
    assert list(files.read_pairs(both, None)) == expected
    with pytest.raises(errors.UserError, match="line 1: expected an input, a tab"):
        list(files.read_pairs(outputs, None))
    inputs.write_text("a\n")
    with pytest.raises(errors.UserError, match="has 1 line"):
        list(files.read_pairs(outputs, inputs))


def test_scores_are_a_line_each_and_go_on(model, tmp_path):
    pairs = [("a dog", "zwei"), ("he sleeps", "so"), ("a", ""), ("in the park", "da")]
    with pytest.raises(_InterruptedError):
        files.write(files.Scoring(model), pairs, tmp_path / "out", progress=_interrupt_after(1))
    report = files.write(files.Scoring(model), pairs, tmp_path / "out")
    assert (report.resumed, report.done) == (2, 2)
    for text in _lines(tmp_path / "out"):
        log_probability, loss, tokens = map(float, text.split("\t"))
        assert log_probability == pytest.approx(-loss * tokens, abs=1e-4)


def test_a_target_longer_than_an_output_can_be_is_cut(model, tmp_path):
    limit = model.options.max_source_length + model.options.extra_length
    report = files.write(files.Scoring(model), [("a dog", "x y " * 9_999)], tmp_path / "out")
    assert report.unfinished == 1
    assert _lines(tmp_path / "out")[0].endswith(f"\t{limit}")


@pytest.mark.parametrize("columns", [["prefix", "text"], ["jsonl"]], ids=str)
def test_columns_give_each_line_a_beginning_of_its_output(model, tmp_path, columns):
    lines = ["two \ta dog runs", "\the sleeps", "", "dog\t "]
    if columns == ["jsonl"]:
        pairs = [line.split("\t") for line in lines if line]
        lines = [json.dumps({"id": 7, "prefix": a or None, "text": b}) for a, b in pairs]
        lines.insert(2, "")
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_text("\n".join(lines) + "\n")
    files.decode_file(model, source, target, columns=columns)
    expected = model.translate(["a dog runs", "he sleeps", "", ""], prefixes=["two ", "", "", ""])
    assert target.read_text().splitlines() == [each.text for each in expected]
    assert expected[0].text.startswith("two ")


@pytest.mark.parametrize(
    ("columns", "line", "says"),
    [
        (["text", "prefix"], "a dog", r"line 2: expected 2 columns .*\(text, prefix\), got 1"),
        (["text", "target_language"], "a dog\tdeu", "no target languages to choose from"),
        (["jsonl"], '{"text": 5}', r'line 2: expected {"text": .*got {"text": 5}'),
        (["jsonl"], '["a dog"]', r'line 2: expected {"text": '),
        (["jsonl"], '{"text": "a dog", "target_language": "deu"}', "no target languages to choose"),
        (["jsonl", "text"], "", "or is jsonl; got jsonl,text"),
        (["prefix"], "", "--columns names text"),
        (["text", "prefx"], "", "text, prefix, target_language"),
    ],
)
def test_wrong_columns_say_what_was_expected(model, tmp_path, columns, line, says):
    source = tmp_path / "in"
    source.write_text(f"\n{line}\n")
    with pytest.raises(errors.UserError, match=says):
        files.decode_file(model, source, tmp_path / "out", columns=columns)
