"""Exports to LiteRT, their runtime, and LiteRT as the engine of single sentences."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import types
from typing import Any

import pytest
import tiny_run

import t2t_lite
from t2t_lite import errors
from t2t_lite.bin import exporter
from t2t_lite.decode import engine, translator
from t2t_lite.serving import export, exported, lite

RUNTIME = pathlib.Path(__file__).parents[2] / "runtime"
runtime = pytest.importorskip("t2t_lite_runtime", reason="needs pip install ./runtime")
TEXTS = [
    *("a dog runs", "two dogs run in the park", "", " \t", "he sleeps  ", "Ünknown \u4e16 signs"),
    *("a woman in a blue dress reads a long book in the park " * 3, "\ud800 lone", "a\nb"),
]


@pytest.fixture(scope="module")
def lite_dir(run_dir, tmp_path_factory):
    """Return an export, and beside it what a Translator of the same run gives."""
    path = tmp_path_factory.mktemp("lite")
    export.export(run_dir, path, format="litert", max_source_length=20)
    model = translator.Translator.from_output_dir(run_dir, max_source_length=20, return_beams=4)
    expected = [_as_json(*pair) for pair in zip(TEXTS, model.translate(TEXTS))]
    (path / "expected.json").write_text(json.dumps(expected), "utf-8")
    return path


def _as_json(source, translation):
    return {
        "source": source,
        "texts": [h.text for h in translation.hypotheses],
        "scores": [h.score for h in translation.hypotheses],
        "finished": [h.finished for h in translation.hypotheses],
        "truncated": translation.truncated,
    }


def test_equals_the_translator(lite_dir):
    model = t2t_lite.load(lite_dir)
    expected = json.loads((lite_dir / "expected.json").read_text("utf-8"))
    _assert_equal(model.nbest(TEXTS), expected)
    assert model.record["languages"] == {"source": "en", "targets": ["de"]}


def _assert_equal(found, expected):
    for source, each, wanted in zip(TEXTS, found, expected, strict=True):
        result = _as_json(source, each)
        assert result.pop("scores") == pytest.approx(wanted.pop("scores"), abs=1e-4)
        assert result == wanted


@pytest.mark.parametrize(
    "changes",
    [
        {"beam_size": 1, "prefix": "two dogs"},
        {"early_stop": "true", "min_length": 6},
        {"early_stop": "heuristic", "length_penalty": "power", "no_repeat_ngram": 1},
    ],
    ids=str,
)
def test_options(run_dir, tmp_path, changes):
    changes = {"max_source_length": 16, "beam_size": 4, **changes}
    model = translator.Translator.from_output_dir(
        run_dir, engine="graph", return_beams=changes["beam_size"], **changes
    )
    export.export(run_dir, tmp_path, format="litert", **changes)
    expected = [_as_json(*pair) for pair in zip(TEXTS, model.translate(TEXTS))]
    _assert_equal(t2t_lite.load(tmp_path).nbest(TEXTS), expected)


@pytest.mark.parametrize(
    ("problem", "labels", "source", "targets"),
    [
        ("toy_ende_rev", {}, "de", ["en"]),
        ("parallel_text", {">>fra<<": 4, ">>deu<<": 3}, "", ["deu", "fra"]),
        ("of_a_user", {}, "", []),
    ],
)
def test_languages(problem, labels, source, targets):
    vocabulary: Any = types.SimpleNamespace(labels=labels)
    assert lite._languages(problem, vocabulary) == {"source": source, "targets": targets}


@pytest.mark.parametrize("name", ["model.tflite", "manifest.json", "source.model"])
def test_a_damaged_export(lite_dir, tmp_path, name):
    path = shutil.copytree(lite_dir / "1", tmp_path / "1")
    (path / name).write_bytes((path / name).read_bytes()[:100])
    with pytest.raises(errors.UserError, match="1 is not a complete export"):
        t2t_lite.load(tmp_path)


@pytest.mark.slow
def test_the_runtime_needs_no_tensorflow(lite_dir, tmp_path):
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    installed = subprocess.run([*pip, RUNTIME, "pytest"], capture_output=True, text=True)
    if installed.returncode:
        pytest.skip(f"the runtime cannot be installed here: {installed.stderr.strip()[-200:]}")
    tests = tmp_path / "tests"
    shutil.copytree(RUNTIME / "tests", tests)
    result = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", tests],
        cwd=tests,
        env={**os.environ, "T2T_LITE_EXPORT": str(lite_dir)},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout
    assert "5 passed" in result.stdout


def test_weights_in_integers(run_dir, lite_dir, tmp_path, capsys):
    arguments = [f"--output_dir={run_dir}", f"--export_dir={tmp_path}", "--format=litert"]
    status = exporter.main(["", *arguments, "--weights=int8", "--max_source_length=20"])
    assert status == 0
    assert "t2t-lite-translate" in capsys.readouterr().out
    # Rounded weights, so other scores; a model this small gives other outputs, too.
    rounded, exact = (runtime.load(path) for path in (tmp_path, lite_dir))
    (found,), (other,) = rounded.translate(["a dog runs"]), exact.translate(["a dog runs"])
    assert (rounded.record["weights"], exact.record["weights"]) == ("int8", "float32")
    assert 0 < abs(found.score - other.score) < 1


def test_refusals(tmp_path, capsys, lite_dir):
    parser = tiny_run.write(tmp_path / "parser", problem="toy_parsing")
    with pytest.raises(errors.UserError, match="not with a parser"):
        export.export(parser, tmp_path / "export", format="litert")
    assert not list((tmp_path / "export").iterdir())
    assert exporter.main(["", "--output_dir=a", "--export_dir=b", "--weights=int8"]) == 1
    assert "--weights is for --format=litert" in capsys.readouterr().err
    assert not isinstance(exported.load(lite_dir), exported.Translator)


def test_the_engine_of_single_sentences(run_dir, tmp_path):
    run = shutil.copytree(run_dir, tmp_path / "run")
    graph = translator.Translator.from_output_dir(run, engine="graph", return_beams=2)
    model = translator.Translator.from_output_dir(run, engine="litert", return_beams=2)
    assert model.engine
    (converted,) = (run / "litert").iterdir()
    for text in TEXTS:
        (found,), (expected,) = model.translate([text]), graph.translate([text])
        assert [h.ids for h in found.hypotheses] == [h.ids for h in expected.hypotheses]
        assert found.score == pytest.approx(expected.score, abs=1e-4)
    # What is there is used at once; other options need another model, after a while.
    auto = translator.Translator.from_output_dir(run, return_beams=2)
    assert auto.engine
    assert auto.engine.path == converted
    assert auto.engine.ready()
    other = translator.Translator.from_output_dir(run, beam_size=2)
    assert other.engine
    for _ in range(engine._MANY):
        assert other.engine._process is None
        other.translate(["a dog runs"])
    process = other.engine._process
    assert process
    assert process.wait(300) == 0
    assert other.engine.ready()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"sampling": True}, "sampling"),
        ({"precision": "mixed"}, "precision"),
    ],
    ids=str,
)
def test_what_litert_does_not_do(run_dir, changes, reason):
    with pytest.raises(errors.UserError, match=reason):
        translator.Translator.from_output_dir(run_dir, engine="litert", **changes)
    assert translator.Translator.from_output_dir(run_dir, **changes).engine is None
