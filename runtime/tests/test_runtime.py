"""What the runtime must do; needs an export and what t2t-lite itself makes of some texts.

    T2T_LITE_EXPORT=FOLDER pytest runtime/tests     FOLDER holds 1/ and expected.json

tests/serving/test_lite.py of t2t-lite makes them and runs these tests where TensorFlow is missing.
"""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
from concurrent import futures

import pytest
import t2t_lite_runtime
from t2t_lite_runtime import command

if "T2T_LITE_EXPORT" not in os.environ:
    pytest.skip("set T2T_LITE_EXPORT to an export's folder", allow_module_level=True)
FOLDER = pathlib.Path(os.environ["T2T_LITE_EXPORT"])
EXPECTED = json.loads((FOLDER / "expected.json").read_text("utf-8"))
TEXTS = [each["source"] for each in EXPECTED]


@pytest.fixture(scope="module")
def model():
    return t2t_lite_runtime.load(FOLDER, num_threads=2)


def _assert_as_expected(found, expected):
    assert [h.text for h in found.hypotheses] == expected["texts"]
    assert [h.score for h in found.hypotheses] == pytest.approx(expected["scores"], abs=1e-4)
    assert [h.finished for h in found.hypotheses] == expected["finished"]
    assert found.truncated == expected["truncated"]


def test_there_is_no_tensorflow():
    assert importlib.util.find_spec("tensorflow") is None


def test_translates_as_t2t_lite_does(model):
    for found, expected in zip(model.nbest(TEXTS), EXPECTED, strict=True):
        _assert_as_expected(found, expected)
    for found, expected in zip(model.translate(TEXTS), EXPECTED, strict=True):
        assert (found.text, len(found.hypotheses)) == (expected["texts"][0], 1)


def test_many_threads(model):
    with futures.ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda text: model.nbest([text])[0], TEXTS * 5)
        for each, expected in zip(found, EXPECTED * 5, strict=True):
            _assert_as_expected(each, expected)


def test_mistakes(model, tmp_path):
    with pytest.raises(TypeError, match="expected a list of texts"):
        model.translate("A dog runs.")
    with pytest.raises(TypeError, match="expected a text, got None"):
        model.translate(["A dog runs.", None])
    with pytest.raises(t2t_lite_runtime.UserError, match="holds no LiteRT export"):
        t2t_lite_runtime.load(tmp_path)


def test_command(tmp_path, capfd):
    lines = [text.replace("\n", " ") for text in TEXTS if text.isprintable()]
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    assert command.main([str(FOLDER), str(source), str(target)]) == 0
    outputs = target.read_text("utf-8").splitlines()
    assert outputs == [each["texts"][0] for each in EXPECTED if each["source"] in lines]
    piped = subprocess.run(
        [sys.executable, "-m", "t2t_lite_runtime.command", FOLDER, "--jsonl"],
        input=source.read_bytes(),
        capture_output=True,
        check=True,
    )
    assert [json.loads(line)["text"] for line in piped.stdout.splitlines()] == outputs
    assert not piped.stderr
    capfd.readouterr()
    assert command.main([str(tmp_path)]) == 1
    assert "holds no LiteRT export" in capfd.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} == {"in", "out"}
