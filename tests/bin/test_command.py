"""What commands share: all flags in their help, flags of option classes, one line for a mistake."""

import dataclasses
import importlib
import os
import pathlib
import subprocess
import sys

import pytest
from absl import flags

from t2t_lite import config, fields
from t2t_lite.bin import command
from t2t_lite.decode import options as decode_options
from t2t_lite.train import options as train_options

ROOT = pathlib.Path(__file__).parents[2]
SHARED = ("__init__", "command", "prompt")
COMMANDS = [p.stem for p in sorted(ROOT.glob("t2t_lite/bin/*.py")) if p.stem not in SHARED]


def _help(name, capsys):
    module = importlib.import_module(f"t2t_lite.bin.{name}")
    assert module.main([name, "--help"]) == 0
    return module.FLAGS, capsys.readouterr().out


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_every_flag_with_a_line_about_it(name, capsys):
    values, text = _help(name, capsys)
    lines = text.splitlines()
    for flag in (values[flag] for flag in values):
        place = lines.index(f"  --{flag.name}")
        assert lines[place + 1].strip(), f"--{flag.name} has no help"
    assert lines.index("  --help") == len(lines) - 6  # what all have comes last
    assert max(map(len, lines[lines.index("Flags:") :])) <= 100


@pytest.mark.parametrize(
    ("name", "options_class"),
    [
        ("trainer", config.HParams),
        ("decoder", decode_options.DecodeOptions),
        ("exporter", decode_options.DecodeOptions),
    ],
)
def test_help_has_every_field_with_its_default(name, options_class, capsys):
    _, text = _help(name, capsys)
    for field in dataclasses.fields(options_class):
        default = str(field.default)
        default = default.lower() if isinstance(field.default, bool) else default
        (line,) = [x for x in text.splitlines() if x.strip().startswith(f"{field.name}={default} ")]
        assert field.metadata["help"].split()[-1] in text
        assert line.split(maxsplit=1)[1]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tea:
    cups: int = fields.option(1, "How many.", at_least=1)
    pot: str | None = fields.option(None, "Which.")
    milk: bool = fields.option(True, "Added.")


def _run(capsys, *argv):
    values = command.new_flags()
    command.define_flags(values, Tea)
    flags.DEFINE_float("sugar", 0, "Spoons.", flag_values=values)
    flags.DEFINE_string("tea_dir", None, "Cupboard.", flag_values=values)
    made = []

    def make():
        made.append(command.options(values, Tea))

    status = command.run(make, values, doc="Makes tea.", argv=["tea", *argv])
    return status, made, capsys.readouterr().err


def test_flags_make_the_options(capsys):
    assert _run(capsys) == (0, [Tea()], "")
    argv = ["--cups=3", "--pot=blue", "--nomilk"]
    assert _run(capsys, *argv) == (0, [Tea(cups=3, pot="blue", milk=False)], "")


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--cups=0", "tea: flag --cups=0: expected a whole number, at least 1"),
        ("--cups=two", "tea: flag --cups=two: expected a whole number, at least 1"),
        ("--sugar=nan", "tea: flag --sugar=nan: expected a number"),
        (
            "--tea_dir=gs://shop/tea",
            "tea: flag --tea_dir=gs://shop/tea: expected a local path; mount the bucket "
            "(gcsfuse, mount-s3, hdfs-fuse) or copy it",
        ),
        ("cups=3", "tea: unexpected argument 'cups=3'; flags are --name=value"),
        ("--cup=3", "tea: Unknown command line flag 'cup'. Did you mean: cups ?"),
    ],
)
def test_a_wrong_flag_is_one_line(capsys, argument, message):
    assert _run(capsys, argument) == (2, [], f"{message}\n")


def test_choices_and_bounds_of_a_command_are_those_of_its_options(capsys):
    trainer = importlib.import_module("t2t_lite.bin.trainer")
    for argument, expected in [
        ("--xla=maybe", "one of auto, on, off"),
        ("--save_checkpoints_secs=nan", "a number, at least 0"),
        ("--keep_checkpoint_max=0", "a whole number, at least 1"),
    ]:
        assert trainer.main(["trainer", argument]) == 2
        assert capsys.readouterr().err == f"trainer: flag {argument}: expected {expected}\n"
    names = {field.name for field in dataclasses.fields(train_options.TrainerOptions)}
    assert names <= set(trainer.FLAGS)


def test_the_import_of_tensorflow_leaves_the_garbage_collector_on():
    """In a process of its own: here TensorFlow may have been imported already."""
    code = (
        "import gc\n"
        "from t2t_lite.bin import command\n"
        "with command.quiet_import():\n"
        "    assert not gc.isenabled()\n"
        "    import tensorflow\n"
        "assert gc.isenabled() and gc.get_freeze_count()\n"
        "with command.quiet_import():\n"
        "    assert gc.isenabled()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_who_reads_the_help_may_leave():
    reader, writer = os.pipe()
    os.close(reader)
    trainer = [sys.executable, "-m", "t2t_lite.bin.trainer", "--help"]
    done = subprocess.run(trainer, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (done.stderr, done.returncode) == (b"", 141)
