"""What an output_dir holds beside its checkpoints.

    hparams.json          the model and its training
    run.json              problem, task, data_dir, vocabulary file, precision, seed, versions
    vocab.<problem>...    a copy of the vocabulary

With these, decoding, averaging, scoring and exporting need neither the data_dir nor a flag.
"""

import dataclasses
import json
import pathlib
import shutil
from importlib import metadata

from t2t_lite import config, errors
from t2t_lite.text import text_files

HPARAMS_FILE = "hparams.json"
RUN_FILE = "run.json"
_VERSIONED = ("t2t-lite", "tensorflow", "keras", "tensorflow-text", "sentencepiece")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
    """A training run's identity; `vocabulary` is a file name inside the output_dir."""

    problem: str
    task: str | None = None  # None in runs written before it was recorded
    data_dir: str
    vocabulary: str
    vocab_size: int
    hparams_set: str
    precision: str
    random_seed: int
    versions: dict[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class OutputDir:
    """An output_dir that was read: its path, hparams and run."""

    path: pathlib.Path
    hparams: config.HParams
    run: Run

    @property
    def vocabulary_path(self) -> pathlib.Path:
        """Return the path of the copied vocabulary."""
        return self.path / self.run.vocabulary


def read(path: str | pathlib.Path) -> OutputDir:
    """Read an output_dir; raise UserError where it is none."""
    path = pathlib.Path(path)
    hparams = config.from_json(path / HPARAMS_FILE)
    try:
        run = Run(**json.loads((path / RUN_FILE).read_text("utf-8")))
        _check(run)
    except FileNotFoundError as error:
        raise errors.UserError(f"{path} is no output_dir: it has no {RUN_FILE}") from error
    except (TypeError, ValueError, RecursionError) as error:
        raise errors.UserError(f"{path / RUN_FILE} is damaged: {error}") from error
    return OutputDir(path, hparams, run)


def open_or_create(
    path: str | pathlib.Path, *, hparams: config.HParams, run: Run, vocabulary_path: pathlib.Path
) -> OutputDir:
    """Return the output_dir of a run, made if it is new.

    Training may go on for more or fewer steps and read its data from another place; every other
    difference is refused, because a run that silently mixes two settings is worth nothing.
    Raises UserError that says what differs.
    """
    path = pathlib.Path(path)
    if not (path / RUN_FILE).exists():
        path.mkdir(parents=True, exist_ok=True)
        with text_files.replacing(path / run.vocabulary) as file:
            shutil.copyfileobj(vocabulary_path.open("rb"), file)
        versions = {name: metadata.version(name) for name in _VERSIONED}
        _write(path / HPARAMS_FILE, config.to_json(hparams))
        _write(path / RUN_FILE, _json(dataclasses.replace(run, versions=versions)))
        return read(path)
    existing = read(path)
    _refuse_differences(existing, hparams=hparams, run=run)
    kept = dataclasses.replace(existing.run, data_dir=run.data_dir)
    if (existing.hparams, existing.run) != (hparams, kept):
        _write(path / HPARAMS_FILE, config.to_json(hparams))
        _write(path / RUN_FILE, _json(kept))
    return OutputDir(path, hparams, kept)


def _refuse_differences(existing: OutputDir, *, hparams: config.HParams, run: Run) -> None:
    steps = existing.hparams.train_steps
    changes = [config.difference(existing.hparams, dataclasses.replace(hparams, train_steps=steps))]
    for name in ("problem", "vocabulary", "vocab_size", "precision", "random_seed"):
        old, new = getattr(existing.run, name), getattr(run, name)
        if old != new:
            changes.append(f"{name} {old} -> {new}")
    differences = ", ".join(filter(None, changes))
    if differences:
        raise errors.UserError(
            f"{existing.path} holds a run with other settings ({differences}); "
            "give the same flags to continue it, or another --output_dir"
        )


def _check(run: Run) -> None:
    """Raise ValueError for a value of another kind than its field's."""
    for field in dataclasses.fields(run):
        value, kind = getattr(run, field.name), field.type
        kind = dict if field.name == "versions" else kind
        if isinstance(value, bool) or not isinstance(value, kind):  # pyright: ignore[reportArgumentType]
            raise ValueError(f"{field.name} cannot be {value!r:.60}")
    if pathlib.PurePath(run.vocabulary).name != run.vocabulary or not run.vocabulary.isprintable():
        raise ValueError(f"vocabulary is no file's name: {run.vocabulary!r:.60}")


def _json(run: Run) -> str:
    return json.dumps(dataclasses.asdict(run), indent=2) + "\n"


def _write(path: pathlib.Path, text: str) -> None:
    with text_files.replacing(path) as file:
        file.write(text.encode("utf-8"))
