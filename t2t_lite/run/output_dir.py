"""An output_dir without its checkpoints.

    hparams.json          the model and its training
    run.json              problem, task, data_dir, vocabulary file, precision, seed, weights at
                          the start, versions
    vocab.<problem>...    a copy of the vocabulary
    lock                  held by the process that is writing

With these, decoding, averaging, scoring and exporting need neither the data_dir nor a flag.
"""

import contextlib
import dataclasses
import json
import pathlib
import shutil
from importlib import metadata

from t2t_lite import config, errors, fields, locks
from t2t_lite.run import identity
from t2t_lite.text import text_files

HPARAMS_FILE = "hparams.json"
RUN_FILE = "run.json"
_LOCK_FILE = "lock"
_WITH_WEIGHTS = (".", "averaged", "best")  # folders of checkpoints
_VERSIONED = ("t2t-lite", "tensorflow", "keras", "tensorflow-text", "sentencepiece")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
    """A training run's identity; `vocabulary` is a file name inside the output_dir.

    Where each side has a vocabulary of its own the file holds both, and `vocab_size` is that of
    targets; that of sources is in the hparams.
    """

    problem: str
    task: str
    data_dir: str
    data_sha256: str | None = None  # of vocabulary and training shards; None: an imported model
    vocabulary: str
    vocabulary_sha256: str = ""  # `open_or_create` records it
    vocab_size: int
    hparams_set: str
    precision: str
    random_seed: int
    warm_start: str | None = None  # the fingerprint of the checkpoint that it began with
    warm_start_from: str | None = None  # where that was: a run there may have trained on since
    imported_from: str | None = None  # the name and revision of a model of Hugging Face's hub
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

    @property
    def identity(self) -> identity.Identity:
        """Return what the run's weights mean; UserError where the vocabulary was changed."""
        found = identity.of(self.hparams, self.vocabulary_path)
        if found.vocabulary != self.run.vocabulary_sha256:
            raise errors.UserError(
                f"{self.vocabulary_path} is not the vocabulary that the run was trained with: its "
                f"SHA-256 begins with {identity.shown(found.vocabulary)}, that of "
                f"{RUN_FILE} with {identity.shown(self.run.vocabulary_sha256)}; copy it from the "
                f"data, {self.run.data_dir}"
            )
        return found

    @property
    def has_weights(self) -> bool:
        """Return whether there is a checkpoint of any kind."""
        folders = (self.path / folder for folder in _WITH_WEIGHTS)
        return any(any(folder.glob("ckpt-*.index")) for folder in folders)


def read(path: str | pathlib.Path) -> OutputDir:
    """Read an output_dir; raise UserError where files are missing or damaged."""
    path = pathlib.Path(path)
    hparams = config.from_json(path / HPARAMS_FILE)
    try:
        values = json.loads((path / RUN_FILE).read_text("utf-8"))
        fields.refuse_unknown(Run, values, path / RUN_FILE)
        run = Run(**values)
        _check(run)
    except FileNotFoundError as error:
        raise errors.UserError(f"{path} is not an output_dir (no {RUN_FILE} in it)") from error
    except (TypeError, ValueError, RecursionError) as error:
        raise errors.UserError(f"{path / RUN_FILE} is damaged: {error}") from error
    return OutputDir(path, hparams, run)


def open_or_create(
    path: str | pathlib.Path, *, hparams: config.HParams, run: Run, vocabulary_path: pathlib.Path
) -> OutputDir:
    """Return the output_dir of a run, made if it is new; raise UserError as `check` does."""
    path = pathlib.Path(path)
    check(path, hparams=hparams, run=run, vocabulary_path=vocabulary_path)
    run = dataclasses.replace(run, vocabulary_sha256=text_files.sha256(vocabulary_path))
    existing = read(path) if (path / RUN_FILE).exists() else None
    if existing and existing.has_weights:
        recorded = ("task", "data_dir", "data_sha256", "vocabulary_sha256")
        now = {name: getattr(run, name) for name in recorded}
        kept = dataclasses.replace(existing.run, **now)
        if (existing.hparams, existing.run) == (hparams, kept):
            return existing
    else:
        path.mkdir(parents=True, exist_ok=True)
        with text_files.replacing(path / run.vocabulary) as file:
            shutil.copyfileobj(vocabulary_path.open("rb"), file)
        versions = {name: metadata.version(name) for name in _VERSIONED}
        kept = dataclasses.replace(run, versions=versions)
    text_files.write_lines(path / HPARAMS_FILE, config.to_json(hparams).splitlines())
    record = json.dumps(dataclasses.asdict(kept), indent=2)
    text_files.write_lines(path / RUN_FILE, record.splitlines())
    return OutputDir(path, hparams, kept)


def check(
    path: str | pathlib.Path, *, hparams: config.HParams, run: Run, vocabulary_path: pathlib.Path
) -> None:
    """Raise UserError that says what differs where `path` holds a run that is not this one.

    The data may have moved, and hparams that do not change what is learnt may differ. Any other
    difference is refused, unless there are no weights yet: a run has one setting.
    """
    path = pathlib.Path(path)
    if path.exists() and not path.is_dir():
        raise errors.UserError(f"--output_dir={path} is a file: expected a folder, or none yet")
    if not (path / RUN_FILE).exists() or not (existing := read(path)).has_weights:
        return
    old, new = existing.identity.vocabulary, text_files.sha256(vocabulary_path)
    changes = [config.difference(existing.hparams, hparams)]
    if old != new:
        changes.append(f"vocabulary {identity.shown(old)} -> {identity.shown(new)}")
    elif (before := existing.run.data_sha256) not in (None, run.data_sha256):
        after = identity.shown(run.data_sha256)
        changes.append(f"training data {identity.shown(before)} -> {after}")
    for name in ("problem", "precision", "random_seed", "warm_start"):
        before, after = getattr(existing.run, name), getattr(run, name)
        if name == "warm_start" and existing.run.warm_start_from == run.warm_start_from:
            continue
        if before != after and None not in (before, after):
            changes.append(f"{name} {before} -> {after}")
    differences = ", ".join(filter(None, changes))
    if differences:
        other = "another --output_dir"
        if old == new:
            other += f" (with --warm_start_from={path} it begins with these weights)"
        raise errors.UserError(
            f"{path} holds a run with other settings or data ({differences}); give the same to "
            f"resume it, or {other}"
        )


def only_one(path: pathlib.Path) -> contextlib.AbstractContextManager[None]:
    """Hold the folder's lock, which goes with its process; UserError if another has it."""
    return locks.only_one(path / _LOCK_FILE, otherwise="wait for it or give another --output_dir")


def _check(run: Run) -> None:
    """Raise ValueError for a value of another kind than its field's."""
    for field in dataclasses.fields(run):
        value, kind = getattr(run, field.name), field.type
        kind = dict if field.name == "versions" else kind
        if isinstance(value, bool) or not isinstance(value, kind):  # pyright: ignore[reportArgumentType]
            raise ValueError(f"{field.name} cannot be {value!r:.60}")
    if run.vocab_size < 1:
        raise ValueError(f"vocab_size cannot be {run.vocab_size}")
    if pathlib.PurePath(run.vocabulary).name != run.vocabulary or not run.vocabulary.isprintable():
        raise ValueError(f"vocabulary is not a file name: {run.vocabulary!r:.60}")
