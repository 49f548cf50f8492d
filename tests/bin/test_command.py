"""What commands share: all flags in their help, flags of option classes, one line for a mistake."""

import dataclasses
import gc
import importlib
import pathlib
import re
import sys

import pytest
from absl import flags

from t2t_lite import config, fields
from t2t_lite.bin import command, exporter
from t2t_lite.decode import options as decode_options

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
        ("exporter", decode_options.DecodeOptions),  # without those that it refuses
    ],
)
def test_help_has_every_field_with_its_default(name, options_class, capsys):
    _, text = _help(name, capsys)
    for field in dataclasses.fields(options_class):
        default = str(field.default).lower() if isinstance(field.default, bool) else field.default
        if "bounds" in field.metadata:  # not a nested dataclass, which no flag sets
            start = re.escape(f"{field.name}={default} ")
            is_refused = name == "exporter" and field.name in exporter.REFUSED
            assert len(re.findall(rf"^ *{start} *\S", text, re.MULTILINE)) == (not is_refused)
            assert is_refused or field.metadata["help"].split()[-1] in text


@pytest.mark.parametrize("name", COMMANDS)
def test_help_says_which_flags_are_required(name, capsys):
    module = importlib.import_module(f"t2t_lite.bin.{name}")
    assert module.main([name]) != 0
    missing, is_about_flags, _ = capsys.readouterr().err.partition(" must be given")
    _, text = _help(name, capsys)
    helps = re.findall(r"^  --(\w+)\n((?:      .*\n)+)", text, re.MULTILINE)
    required = re.compile(r"\sRequired(,\s+except\s+with\s+--describe)?\.$")
    said = [flag for flag, lines in helps if required.search(lines.strip())]
    assert said == (re.findall(r"--(\w+)", missing) if is_about_flags else [])


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


def test_help_says_what_is_required_and_how_to_switch_off():
    values = command.new_flags()
    command.define_flags(values, Tea)
    assert command.require(values, "pot") == ("pot",)
    text = command.help_text(values, doc="Makes tea.", name="tea")
    assert "  --pot\n      Which. Required.\n" in text
    assert "  --milk\n      Added. (default: true; off: --nomilk)\n" in text


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


def test_the_import_of_tensorflow_leaves_the_garbage_collector_on(monkeypatch):
    monkeypatch.delitem(sys.modules, "tensorflow", raising=False)
    with command.quiet_import():
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.unfreeze()
