"""Apache Beam for the commands: --beam_pipeline_options, and UserErrors raised by workers."""

import contextlib
import re
from collections.abc import Iterator
from typing import Any

from t2t_lite import errors, quiet

# An extra: pyright does not resolve it where it is not installed.
try:
    with quiet.hidden_stderr():
        import apache_beam  # pyright: ignore
        from apache_beam.options import pipeline_options  # pyright: ignore
except ImportError as error:
    raise errors.UserError(
        "--beam_pipeline_options needs Apache Beam: pip install 't2t-lite[beam]'"
    ) from error

# Not DirectRunner: it first tries to download another runner.
_RUNNER = "FnApiRunner"


def options(text: str) -> Any:
    """Return Beam's PipelineOptions for name=value,name=value: Beam's flags without dashes.

    The default runner is FnApiRunner, on this machine. Raises UserError for options that Beam
    rejects.
    """
    flags = [f"--{option.strip()}" for option in text.split(",") if option.strip()]
    if not any(flag.startswith("--runner=") for flag in flags):
        flags.append(f"--runner={_RUNNER}")
    parsed = pipeline_options.PipelineOptions(flags, pickle_library="cloudpickle")
    try:
        apache_beam.Pipeline(options=parsed)
    except (SystemExit, ValueError, ImportError, AttributeError) as error:
        raise errors.UserError(f"--beam_pipeline_options={text}: {error}") from error
    return parsed


@contextlib.contextmanager
def running(parsed: Any) -> Iterator[None]:
    """Hide what a local runner prints; raise a worker's UserError as UserError."""
    is_here = parsed.view_as(pipeline_options.StandardOptions).runner == _RUNNER
    with quiet.hidden_stderr() if is_here else contextlib.nullcontext():
        try:
            yield
        except Exception as error:
            mistake = re.search(r"t2t_lite\.errors\.UserError: (.*)", str(error))
            if mistake is None:
                raise
            raise errors.UserError(mistake[1]) from error
