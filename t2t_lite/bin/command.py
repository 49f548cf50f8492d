"""What every command shares: common flags, fast help, one-line errors.

A command module defines its flags on its own FlagValues, so that one process can hold several
commands, and passes one function to `run`:

    FLAGS = command.new_flags()
    command.define_strings(FLAGS, output_dir="...")
    command.define_flags(FLAGS, options.TrainerOptions)
    REQUIRED = command.require(FLAGS, "output_dir")

    def main(argv=None):
        return command.run(_train, FLAGS, doc=__doc__, required=REQUIRED, argv=argv)

TensorFlow is imported inside that function, after the flags are parsed.
"""

import contextlib
import dataclasses
import gc
import io
import math
import os
import sys
import textwrap
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from absl import flags

from t2t_lite import errors, fields, machine, quiet, registry

_USAGE_ERROR = 2  # exit status
_WIDTH = 90  # of a line of help
_NAMES_WIDTH = 34  # of the first column of `table`
_OF_ABSL = ";\n    repeat this option to specify a list of values"
OUTPUT_DIR = "Folder of a trained model, written by t2t-lite-trainer or t2t-lite-import."
DATA_DIR = "Data folder for --split. Default: the one the model was trained on."
MODEL_DEFAULTS = (
    "Defaults of beam_size, alpha and extra_length are the model's hyperparameters; an imported "
    "model may have other defaults, too."
)
COMPRESSED = "Compressed files end in .gz, .xz, .bz2 or .zst."
_MAY_BE_REMOTE = ("data_dir", "raw_dir")  # flags that take gs://bucket/folder (data/remote)

_Options = TypeVar("_Options")


@contextlib.contextmanager
def quiet_import() -> Iterator[None]:
    """Import TensorFlow silently, with the garbage collector off.

    TF_CPP_MIN_LOG_LEVEL does not silence what its libraries print at import. The import creates a
    million objects that all stay; looking for garbage among them took a sixth of the time.
    """
    is_first = "tensorflow" not in sys.modules
    if is_first:
        machine.prepare_gpus()
        gc.disable()
    try:
        with quiet.hidden_stderr():
            yield
    finally:
        if is_first:
            gc.freeze()  # later collections skip these objects, too
            gc.enable()


def new_flags() -> flags.FlagValues:
    """Return FlagValues with --help, --registry_help and --t2t_usr_dir."""
    values = flags.FlagValues()
    flags.DEFINE_bool("help", False, "Show this help.", flag_values=values, short_name="h")
    define_bools(values, registry_help="List all problems and hyperparameter sets.")
    define_strings(
        values,
        t2t_usr_dir="Folder of Python files that register problems and sets of your own.",
    )
    return values


def define_strings(values: flags.FlagValues, **helps: str) -> None:
    """Define a flag that takes text for each name=help; without a value it is None."""
    for name, text in helps.items():
        flags.DEFINE_string(name, None, text, flag_values=values)


def define_bools(values: flags.FlagValues, **helps: str) -> None:
    """Define a flag that is false unless given for each name=help."""
    for name, text in helps.items():
        flags.DEFINE_bool(name, False, text, flag_values=values)


def define_integers(values: flags.FlagValues, at_least: int, **helps: str) -> None:
    """Define a flag that takes a whole number for each name=help; without a value it is None."""
    for name, text in helps.items():
        flags.DEFINE_integer(name, None, text, at_least, flag_values=values)


def define_run(values: flags.FlagValues) -> None:
    """Define --output_dir and --checkpoint_path, for commands that use a run's weights."""
    define_strings(
        values,
        output_dir=OUTPUT_DIR,
        checkpoint_path="Checkpoint to use: a path without ending, such as output_dir/ckpt-1000, "
        "or a folder, whose newest is used, such as output_dir/averaged or output_dir/best. "
        "Several, separated by commas, form an ensemble: their probabilities are averaged. "
        "Default: the newest checkpoint in output_dir.",
    )


def require(values: flags.FlagValues, *names: str, text: str = "Required.") -> Sequence[str]:
    """Say in the help of flags that they are required; return their names, for `run`."""
    for name in names:
        values[name].help = f"{_without_absls(values[name].help)} {text}"
    return names


_COMMON_FLAGS = tuple(new_flags())


def define_flags(values: flags.FlagValues, options_class: type) -> None:
    """Define a flag for each field of an options dataclass (see `fields`)."""
    for field in dataclasses.fields(options_class):
        name, default, help_line = field.name, typing.cast(Any, field.default), _help(field)
        if fields.kind(field) is bool:  # --name and --noname
            flags.DEFINE_bool(name, default, help_line, flag_values=values)
        else:
            parser = _FieldParser(field)
            flags.DEFINE(parser, name, default, help_line, flag_values=values)


def options(values: flags.FlagValues, options_class: type[_Options]) -> _Options:
    """Return an options dataclass from the parsed flags of `define_flags`."""
    names = [field.name for field in dataclasses.fields(options_class)]  # pyright: ignore[reportArgumentType]
    return options_class(**{name: values[name].value for name in names})


def table(options_class: type, *, without: Sequence[str] = ()) -> str:
    """Return a table of a dataclass's options, for the help of a flag such as --decode_hparams."""
    rows = []
    for field in fields.by_name(options_class).values():
        if field.name in without:
            continue
        default = str(field.default).lower() if fields.kind(field) is bool else field.default
        name = f"  {field.name}={default}".ljust(_NAMES_WIDTH)
        rows += _wrapped(_help(field), first=name, further=" " * _NAMES_WIDTH)
    return "\n".join(rows)


def refuse(mistakes: Mapping[str, object]) -> None:
    """Raise UserError with the first message whose value is true."""
    for message, is_mistake in mistakes.items():
        if is_mistake:
            raise errors.UserError(message)


def run(
    function: Callable[[], int | None],
    values: flags.FlagValues,
    *,
    doc: str | None,
    required: Sequence[str] | Callable[[], Sequence[str]] = (),
    argv: Sequence[str] | None = None,
) -> int:
    """Parse the flags, call `function`, and turn a user's mistake into one line and a status.

    `required` names the flags that must be given, or is a function that returns them.
    Returns 0 (or what `function` returned), 1 for an error while working, 2 for wrong flags, 130
    after Ctrl-C, 141 if the reader of a pipe has closed it, as `head` does.
    """
    argv = list(sys.argv if argv is None else argv)
    name = os.path.basename(argv[0])
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ["KERAS_BACKEND"] = "tensorflow"
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # for terminals, and paths, without UTF-8
    status = _USAGE_ERROR
    try:
        values.unparse_flags()
        rest = values(argv)[1:]
        if values["help"].value:
            print(help_text(values, doc=doc, name=name), flush=True)
            return 0
        if values["t2t_usr_dir"].value:
            registry.load_user_dir(values["t2t_usr_dir"].value)
        if values["registry_help"].value:
            print(_registry_text(), flush=True)
            return 0
        _check_usage(values, rest)
        required = required() if callable(required) else required
        missing = [f"--{flag}" for flag in required if values[flag].value in (None, "", [])]
        if missing:
            raise errors.UserError(f"{' and '.join(missing)} must be given; see {name} --help")
        status = 1
        return function() or 0
    except (flags.Error, errors.UserError) as error:
        return _fail(name, str(error), status=status)
    except BrokenPipeError:
        quiet.silence(1)  # so that the flush at exit does not fail
        return 141
    except OSError as error:  # a full disk, a path that is a folder, no permission
        return _fail(name, str(error), status=1)
    except KeyboardInterrupt:
        return _fail(name, "interrupted", status=130)
    except Exception as error:
        mistake = registry.user_mistake(error)
        if mistake is None:
            raise
        return _fail(name, f"--t2t_usr_dir: {mistake}", status=1)


def help_text(values: flags.FlagValues, *, doc: str | None, name: str) -> str:
    """Return the command's docstring and its flags in the order of their definition.

    The common flags come last. The first line of a flag's help is wrapped; further lines are
    printed as they are.
    """
    own = [flag for flag in values if flag not in _COMMON_FLAGS]
    lines = [f"{name}: {(doc or '').strip()}", "", "Flags:"]
    for flag in (values[flag] for flag in (*own, *_COMMON_FLAGS) if len(flag) > 1):
        text, *table_rows = _without_absls(flag.help).split("\n")
        if flag.default is True:
            text += f" (default: true; off: --no{flag.name})"
        elif flag.default not in (None, "", []) and flag.default is not False:
            text += f" (default: {flag.default})"
        lines.append(f"  --{flag.name}")
        lines += [f"      {line}" for line in [*_wrapped(text), *table_rows]]
    return "\n".join(lines)


def _without_absls(text: str | None) -> str:
    """Return a flag's help without what absl adds to that of a flag that may be repeated."""
    return (text or "").removesuffix(_OF_ABSL)


def _wrapped(text: str, *, first: str = "", further: str = "") -> list[str]:
    """Return lines of help with these indents of the first line and of all further ones."""
    return textwrap.wrap(
        text, _WIDTH, initial_indent=first, subsequent_indent=further, break_on_hyphens=False
    )


class _FieldParser(flags.ArgumentParser):
    """Parses a flag like the field of an options dataclass."""

    def __init__(self, field: dataclasses.Field):
        self._field = field

    def parse(self, argument: Any) -> Any:
        try:
            return fields.parse(self._field, str(argument))
        except errors.UserError:
            raise ValueError(f"expected {fields.expectation(self._field)}") from None


def _help(field: dataclasses.Field) -> str:
    """Return a field's help, with its choices before it."""
    choices = f"<{'|'.join(fields.choices(field))}>: " if fields.choices(field) else ""
    return choices + field.metadata["help"]


def _check_usage(values: flags.FlagValues, rest: Sequence[str]) -> None:
    """Raise UserError for extra arguments, NaN and unsupported remote paths."""
    if rest:
        raise errors.UserError(f"unexpected argument {rest[0]!r}; flags are --name=value")
    for flag in (values[flag] for flag in values):
        if isinstance(flag.value, float) and math.isnan(flag.value):
            raise errors.UserError(f"flag --{flag.name}=nan: expected a number")
        names_files = flag.name.endswith(("_dir", "_file")) and flag.name not in _MAY_BE_REMOTE
        if names_files and "://" in str(flag.value):
            raise errors.UserError(
                f"flag --{flag.name}={flag.value}: expected a local path; "
                "mount the bucket (gcsfuse, mount-s3, hdfs-fuse) or copy it"
            )


def _fail(name: str, message: str, *, status: int) -> int:
    print(f"{name}: {' '.join(message.split())}", file=sys.stderr)
    return status


def _registry_text() -> str:
    lines = []
    sets = (
        'Hyperparameter sets; scores are those of "Attention Is All You Need", on the dev set '
        "unless the line names another"
    )
    for title, table in (
        ("Problems", registry.problems()),
        (sets, registry.hparams_sets()),
    ):
        width = max(map(len, table))
        lines += ["", f"{title}:"]
        lines += [f"  {name:{width}}  {line}" for name, line in table.items()]
    return "\n".join(lines[1:])
