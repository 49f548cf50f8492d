"""What version 0.1.0 wrote is read, and gives what it gave then.

Data, output_dirs, exports and what the commands made of them are in tests/version_0_1_0, whose
README has the commands.

Tolerances: on the processor that made the files every figure comes out equal; with TensorFlow's
other kernels for the same processor scores differed by 6e-6 and weights, after 25 updates, by
1.2e-7. Of all the search's choices in the recorded outputs none is so narrow that this decides it.
"""

import dataclasses
import json
import pathlib
import re
import shutil
import tarfile

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text  # noqa: F401 (the operations of an export's tokenizer)

import t2t_lite
from t2t_lite import errors
from t2t_lite.bin import avg_checkpoints, datagen, decoder, exporter, trainer

pytestmark = pytest.mark.integration

FILES = pathlib.Path(__file__).parent / "version_0_1_0"
SCORE = 1e-4
HPARAMS = (
    "d_model=24,d_ff=48,num_heads=2,d_k=12,d_v=12,num_encoder_layers=1,num_decoder_layers=1,"
    "batch_tokens=2048,max_length=96,max_buckets=2,warmup_steps=50,learning_rate_scale=0.3"
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task:
    """One of the two models: its folder and the flags that made it."""

    name: str
    problem: str
    vocab_size: int
    hparams_set: str
    hparams: str
    checkpoint: str  # that outputs and export were made with, within the output_dir
    path: pathlib.Path = FILES  # of its unpacked files

    def train(self, *flags: str) -> int:
        """Run the trainer with the model's flags."""
        model = [f"--hparams_set={self.hparams_set}", f"--hparams={self.hparams}"]
        data = [f"--problem={self.problem}", f"--data_dir={self.path / 'data'}"]
        return trainer.main(["", *data, *model, "--precision=float32", *flags])

    def decode(self, *flags: str) -> int:
        """Run the decoder with the recorded outputs' checkpoint."""
        run = self.path / "run"
        given = any(flag.startswith("--checkpoint_path") for flag in flags)
        checkpoint = [] if given else [f"--checkpoint_path={run / self.checkpoint}"]
        return decoder.main(["", f"--output_dir={run}", *checkpoint, *flags])

    def test_text(self, side: str) -> pathlib.Path:
        """Return the test split's raw "inputs" or "targets"."""
        return self.path / "data" / f"{self.problem}-test.{side}.txt"

    def recorded(self, name: str) -> str:
        """Return what version 0.1.0 wrote."""
        return (FILES / self.name / "recorded" / name).read_text("utf-8")


TASKS = {
    "translation": Task(
        name="translation",
        problem="parallel_text",
        vocab_size=360,
        hparams_set="transformer_toy",
        hparams=HPARAMS,
        checkpoint="ckpt-1500",
    ),
    "parsing": Task(
        name="parsing",
        problem="wsj_sample_parsing",
        vocab_size=340,
        hparams_set="transformer_parsing_toy",
        hparams=f"{HPARAMS},guided_alignment=1,beam_size=4,qkv_gain=1",
        checkpoint="averaged",
    ),
}


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """Return both tasks with their archives unpacked."""
    folder = tmp_path_factory.mktemp("version_0_1_0")
    for archive in FILES.glob("*/*.tar.xz"):
        with tarfile.open(archive) as files:
            files.extractall(folder / archive.parent.name, filter="data")
    return {name: dataclasses.replace(one, path=folder / name) for name, one in TASKS.items()}


@pytest.fixture(params=list(TASKS))
def task(request, unpacked):
    return unpacked[request.param]


@pytest.fixture
def translation(unpacked):
    return unpacked["translation"]


def _generate(task, data_dir):
    raw_dir = FILES / task.name / "raw"
    flags = [f"--problem={task.problem}", f"--raw_dir={raw_dir}", f"--data_dir={data_dir}"]
    return datagen.main(["", *flags, f"--vocab_size={task.vocab_size}", "--num_workers=1"])


def _contents(folder):
    """Return the files' bytes, but for the version of SentencePiece in the manifest."""
    contents = {path.name: path.read_bytes() for path in folder.iterdir()}
    version = rb'"sentencepiece": "[^"]*"'
    return {
        name: re.sub(version, b"", content) if name.endswith(".manifest.json") else content
        for name, content in contents.items()
    }


def _weights(prefix):
    """Return a checkpoint's weights by their names in the file."""
    reader = tf.train.load_checkpoint(str(prefix))
    names = [name for name in reader.get_variable_to_shape_map() if name.startswith("model/")]
    return {name: reader.get_tensor(name) for name in names}


def _dev_losses(report):
    """Return {step: loss} of a trainer's report."""
    return {
        int(step): float(loss) for step, loss in re.findall(r"step (\d+)  dev: loss (\S+)", report)
    }


def _assert_same_lines(found, expected):
    """Compare lines of texts, or of texts and numbers by turns."""
    assert len(found.splitlines()) == len(expected.splitlines()) > 40
    for line, expected_line in zip(found.split("\n"), expected.split("\n")):
        fields, expected_fields = line.split("\t"), expected_line.split("\t")
        assert fields[::2] == expected_fields[::2]
        scores, expected_scores = (list(map(float, x[1::2])) for x in (fields, expected_fields))
        assert scores == pytest.approx(expected_scores, abs=SCORE)


# Data


def test_raw_text_gives_the_same_bytes(task, tmp_path):
    assert _generate(task, tmp_path / "data") == 0
    assert _contents(tmp_path / "data") == _contents(task.path / "data")


def test_finished_data_are_left_as_they_are(task, capsys):
    data = task.path / "data"
    before = {path: path.stat().st_mtime_ns for path in data.iterdir()}
    assert _generate(task, data) == 0
    printed = capsys.readouterr()
    assert printed.out.endswith(f"complete: {data}\n")
    (line,) = printed.err.splitlines()  # no stage of the work
    assert "is there already: --overwrite makes the data anew" in line
    assert {path: path.stat().st_mtime_ns for path in data.iterdir()} == before


# Training


def test_training_anew_goes_the_same_way(task, tmp_path, capsys):
    flags = ["--train_steps=50", "--eval_frequency=5", "--eval_sentences=0"]
    assert task.train(f"--output_dir={tmp_path}", *flags) == 0
    report = capsys.readouterr().err
    recorded = {
        step: x for step, x in _dev_losses(task.recorded("train.txt")).items() if step <= 50
    }
    assert list(recorded) == list(range(5, 51, 5))
    assert _dev_losses(report) == pytest.approx(recorded, rel=1e-4)
    # The mean of all training losses, in three decimals.
    loss = re.compile(r"step 50/50  loss (\S+)")
    found, expected = (
        float(loss.findall(text)[0]) for text in (report, task.recorded("train.txt"))
    )
    assert found == pytest.approx(expected, abs=0.0015)


def test_a_run_goes_on_from_its_checkpoint_to_the_same_weights(translation, tmp_path, capsys):
    run = tmp_path / "run"
    shutil.copytree(translation.path / "run", run)
    for path in run.glob("ckpt-1500.*"):
        path.unlink()
    flags = ["--train_steps=1500", "--eval_sentences=0"]
    assert translation.train(f"--output_dir={run}", *flags) == 0
    printed = capsys.readouterr()
    assert "from step 1475 to 1500" in printed.err
    assert "best dev score at step 1200" in printed.out  # that of then is still the best
    start, expected = (_weights(translation.path / "run" / f"ckpt-{n}") for n in (1475, 1500))
    found = _weights(run / "ckpt-1500")
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, atol=1e-4, err_msg=name)
    # The updates between them are a hundred times what is tolerated.
    assert max(np.abs(expected[name] - value).max() for name, value in start.items()) > 0.01


def test_weights_start_a_new_run(unpacked, tmp_path, capsys):
    task = unpacked["parsing"]
    source = task.path / "run" / "averaged"
    flags = ["--train_steps=1", "--eval_sentences=0", f"--warm_start_from={source}"]
    assert task.train(f"--output_dir={tmp_path}", *flags) == 0
    report = capsys.readouterr().err
    count = len(_weights(source / "ckpt-1000"))
    assert f"warm start: {count} of {count} weights" in report
    # The first update is tiny: the loss is still that of the trained model.
    last = list(_dev_losses(task.recorded("train.txt")).values())[-1]
    assert _dev_losses(report)[1] == pytest.approx(last, abs=0.05)


def test_averaging_gives_the_same_mean(translation, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(translation.path / "run", run)
    shutil.rmtree(run / "averaged")
    assert avg_checkpoints.main(["", f"--output_dir={run}", "--num_last_checkpoints=2"]) == 0
    found, expected = (
        _weights(path / "averaged" / "ckpt-1500") for path in (run, translation.path / "run")
    )
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


# Decoding


@pytest.mark.parametrize(
    ("name", "recorded", "flags"),
    [
        ("translation", "test.txt", []),
        ("translation", "test.two_best.txt", ["--decode_hparams=return_beams=2"]),
        ("translation", "test.best.txt", ["--checkpoint_path={run}/best"]),
        ("translation", "test.averaged.txt", ["--checkpoint_path={run}/averaged"]),
        ("parsing", "test.txt", []),
        ("parsing", "test.two_best.txt", ["--decode_hparams=return_beams=2"]),
        ("parsing", "test.free.txt", ["--decode_hparams=constrained=false"]),
    ],
)
def test_outputs_are_the_same(unpacked, tmp_path, name, recorded, flags):
    task = unpacked[name]
    files = [f"--decode_from_file={task.test_text('inputs')}", f"--decode_to_file={tmp_path / 'x'}"]
    assert task.decode(*files, *(flag.format(run=task.path / "run") for flag in flags)) == 0
    _assert_same_lines((tmp_path / "x").read_text("utf-8"), task.recorded(recorded))


def test_scores_of_given_outputs_are_the_same(task, tmp_path):
    given = [f"--decode_from_file={task.test_text('inputs')}"]
    given += [f"--score_file={task.test_text('targets')}", f"--decode_to_file={tmp_path / 'x'}"]
    assert task.decode(*given) == 0
    found, expected = (
        [list(map(float, line.split("\t"))) for line in text.splitlines()]
        for text in ((tmp_path / "x").read_text("utf-8"), task.recorded("test.scores.txt"))
    )
    # Log-probability, loss of a token, tokens.
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=SCORE)


def test_the_test_splits_figures_are_the_same(task, capsys):
    assert task.decode("--split=test", f"--data_dir={task.path / 'data'}") == 0
    printed = capsys.readouterr().out
    if task.name == "parsing":
        assert printed == task.recorded("test.evalb.txt")
    else:  # figure and name; the signature behind them names sacreBLEU's version
        found, expected = (
            [line.split()[:2] for line in text.splitlines()]
            for text in (printed, task.recorded("test.bleu.txt"))
        )
        assert found == expected


# Exports


def test_an_old_export_that_says_too_little_for_python_is_told(task):
    with pytest.raises(errors.UserError, match="was exported by an earlier version"):
        t2t_lite.load(task.path / "export").translate(["a"])


@pytest.mark.parametrize("which", ["the old export", "an export of the old run"])
def test_an_export_answers_the_same(task, tmp_path, which):
    path = task.path / "export"
    if which != "the old export":
        path, run = tmp_path, task.path / "run"
        flags = [f"--checkpoint_path={run / task.checkpoint}", f"--export_dir={path}"]
        assert exporter.main(["", f"--output_dir={run}", *flags]) == 0
    signatures = tf.saved_model.load(str(path / "1")).signatures
    assert set(signatures) == {"serving_default", "nbest", "score", "tokenize", "from_ids"}
    kinds = {"inputs": tf.string, "targets": tf.string, "ids": tf.int32}
    for name, record in json.loads(task.recorded("export.json")).items():
        inputs = {key: tf.constant(value, kinds[key]) for key, value in record["inputs"].items()}
        outputs = {key: value.numpy() for key, value in signatures[name](**inputs).items()}
        # An export of 0.1.0 may search freely and says how much of a tree it repaired.
        outputs.pop("repairs", None)
        record["outputs"].pop("repairs", None)
        assert outputs.keys() >= record["outputs"].keys()  # later exports say more
        for key, expected in record["outputs"].items():
            if outputs[key].dtype == np.float32:
                np.testing.assert_allclose(outputs[key], expected, rtol=1e-5, atol=SCORE)
            else:
                found = outputs[key]
                found = np.vectorize(bytes.decode)(found) if found.dtype == object else found
                assert found.tolist() == expected, (name, key)
