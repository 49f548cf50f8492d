"""What every command shares: flags of its own, fast help, one-line errors.

A command module defines its flags on its own FlagValues, so that several can live in one process,
and hands one function to `run`:

    FLAGS = command.new_flags()
    flags.DEFINE_string("output_dir", None, "...", flag_values=FLAGS)

    def main(argv=None):
        return command.run(_translate, FLAGS, doc=__doc__, required=["output_dir"], argv=argv)

TensorFlow is imported inside that function, after the flags are parsed.
"""

import contextlib
import os
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator, Sequence

from absl import flags

from t2t_lite import errors, registry

USAGE_ERROR = 2


def new_flags() -> flags.FlagValues:
    """Return empty flags that know --help, --registry_help and --t2t_usr_dir."""
    values = flags.FlagValues()
    flags.DEFINE_bool("help", False, "Show this text.", flag_values=values, short_name="h")
    flags.DEFINE_bool(
        "registry_help", False, "List the problems and hparams sets.", flag_values=values
    )
    flags.DEFINE_string(
        "t2t_usr_dir", None, "A folder of your own problems and hparams sets.", flag_values=values
    )
    return values


def run(
    function: Callable[[], int | None],
    values: flags.FlagValues,
    *,
    doc: str | None,
    required: Sequence[str] = (),
    argv: Sequence[str] | None = None,
) -> int:
    """Parse the flags, call `function`, and turn a user's mistake into one line and a status.

    Returns 0 (or what `function` returned), 1 for an error met at work, 2 for wrong flags, 130
    after Ctrl-C, 141 where the reader of the output has left, as `head` does.
    """
    argv = list(sys.argv if argv is None else argv)
    name = os.path.basename(argv[0])
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ["KERAS_BACKEND"] = "tensorflow"
    try:
        values.unparse_flags()
        rest = values(argv)[1:]
        if values["help"].value:
            print(help_text(values, doc=doc, name=name))
            return 0
        if values["t2t_usr_dir"].value:
            registry.load_user_dir(values["t2t_usr_dir"].value)
        if values["registry_help"].value:
            print(_registry_text())
            return 0
        missing = [f"--{flag}" for flag in required if values[flag].value in (None, "")]
        if rest:
            return _fail(name, f"unexpected argument {rest[0]!r}; flags are --name=value")
        if missing:
            return _fail(name, f"{' and '.join(missing)} must be given; see {name} --help")
    except flags.Error as error:
        return _fail(name, str(error))
    except errors.UserError as error:
        return _fail(name, str(error))
    try:
        return function() or 0
    except errors.UserError as error:
        return _fail(name, str(error), status=1)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # so that nothing fails at the last flush
        return 141
    except OSError as error:  # a full disk, a path that is a folder, no permission
        return _fail(name, str(error), status=1)
    except KeyboardInterrupt:
        return _fail(name, "interrupted", status=130)


def help_text(values: flags.FlagValues, *, doc: str | None, name: str) -> str:
    """Return the command's docstring and its flags in the order of their definition."""
    lines = [f"{name}: {(doc or '').strip()}", "", "Flags:"]
    for flag in values.flags_by_module_dict().get(_module_of(values), []):
        default = "" if flag.default in (None, False) else f" (default: {flag.default})"
        lines.append(f"  --{flag.name}")
        lines += textwrap.wrap(
            f"{flag.help}{default}", 96, initial_indent=" " * 6, subsequent_indent=" " * 6
        )
    return "\n".join(lines)


@contextlib.contextmanager
def quiet_import() -> Iterator[None]:
    """Hide what TensorFlow's libraries print on stderr while they are imported.

    TF_CPP_MIN_LOG_LEVEL does not reach these lines. They are shown where the import fails.
    """
    sys.stderr.flush()
    saved = os.dup(2)
    with tempfile.TemporaryFile() as hidden:
        os.dup2(hidden.fileno(), 2)
        try:
            yield
        except BaseException:
            hidden.seek(0)
            os.write(saved, hidden.read())
            raise
        finally:
            os.dup2(saved, 2)
            os.close(saved)


def _fail(name: str, message: str, *, status: int = USAGE_ERROR) -> int:
    print(f"{name}: {' '.join(message.split())}", file=sys.stderr)
    return status


def _module_of(values: flags.FlagValues) -> str:
    """Return the module under which absl filed these flags (all are defined by one)."""
    return max(values.flags_by_module_dict(), key=lambda m: len(values.flags_by_module_dict()[m]))


def _registry_text() -> str:
    lines = []
    for title, table in (
        ("Problems", registry.problems()),
        ("Hparams sets", registry.hparams_sets()),
    ):
        width = max(map(len, table))
        lines += ["", f"{title}:"]
        lines += [f"  {name:{width}}  {line}" for name, line in table.items()]
    return "\n".join(lines[1:])
