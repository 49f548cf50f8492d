"""The files of a vocabulary of pieces: a dictionary, and what cuts texts into its pieces."""

import dataclasses
import pathlib
from collections.abc import Callable, Sequence

import sentencepiece

from t2t_lite import errors
from t2t_lite.text import piece_vocabulary, sentencepiece_vocabulary, subword_nmt

_SENTENCEPIECE = (".model", ".spm")
_CODES = ("*codes*", "*.bpe", "bpe.*")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Files:
    """Which files there are.

    Attributes:
      dictionaries: one, or the source's and the target's.
      models: SentencePiece's, as many.
      codes: subword-nmt's or fastBPE's, as many. Without these two, texts are cut at blanks.
    """

    dictionaries: tuple[pathlib.Path, ...]
    models: tuple[pathlib.Path, ...] = ()
    codes: tuple[pathlib.Path, ...] = ()

    @property
    def name(self) -> str:
        """The vocabulary's name in an output_dir."""
        return f"{(self.models or self.dictionaries)[0].name}.pieces"

    def joined(self, pieces: Sequence[str], target_pieces: Sequence[str]) -> bytes:
        """Return the content of the one file that is made of them; pieces by the ids here."""
        models = [sentencepiece_model(path) for path in self.models] or [None]
        codes = [_codes(path) for path in self.codes] or [None]
        return piece_vocabulary.joined(
            piece_vocabulary.side(pieces, model=models[0], codes=codes[0]),
            piece_vocabulary.side(target_pieces, model=models[-1], codes=codes[-1]),
        )


def find(
    given: str | None,
    folders: Sequence[pathlib.Path],
    *,
    dictionaries: str,
    names: Sequence[str] = (),
) -> Files:
    """Return the files that are given, or that lie in one of the folders.

    Args:
      given: paths with commas between: dictionaries are .txt or .vocab, SentencePiece models .model
        or .spm, all others are codes. Of two of a kind the first is the source's.
      folders: where they are looked for, one after the other.
      dictionaries: how these are called, "dict*.txt".
      names: of the source's and the target's, where they are known.
    """
    if given is not None:
        paths = [pathlib.Path(part.strip()) for part in given.split(",")]
        sides = [path for path in paths if path.suffix in (".txt", ".vocab")]
        models = [path for path in paths if path.suffix in _SENTENCEPIECE]
        codes = [path for path in paths if path not in sides and path not in models]
    else:
        sides = _first(folders, names) or _first(folders, [dictionaries])
        models = _first(folders, [f"*{suffix}" for suffix in _SENTENCEPIECE])
        codes = [p for p in _first(folders, _CODES) if p not in sides] if not models else []
    is_named = len(names) == 2 and {path.name for path in sides} == set(names)
    if is_named:
        sides.sort(key=lambda path: path.name != names[0])
    counts = len(sides), len(models), len(codes)
    if not sides or max(counts) > 2 or (models and codes):
        got = ", ".join(path.name for path in [*sides, *models, *codes])
        raise errors.UserError(
            f"give the vocabulary as --vocab: {dictionaries.replace('*', '')}, and with a comma "
            "after it SentencePiece's .model or the codes of subword-nmt where texts are cut by "
            "one of these; or two of each, the source's first; got "
            f"{got or 'nothing, and none lies beside the model'}"
        )
    told = [*([] if is_named else [sides]), models, codes]
    if given is None and any(
        len(paths) == 2 and len(set(map(_read, paths))) == 2 for paths in told
    ):
        raise errors.UserError(
            "which vocabulary is the source's? Give them as --vocab, the source's first: beside "
            f"the model lie {', '.join(path.name for path in [*sides, *models, *codes])}"
        )
    return Files(dictionaries=tuple(sides), models=tuple(models), codes=tuple(codes))


def pieces(
    paths: Sequence[pathlib.Path], parse: Callable[[pathlib.Path, Sequence[str]], list[str]]
) -> list[list[str]]:
    """Return the pieces of each dictionary; raise UserError where a file is none."""
    found = []
    for path in paths:
        try:
            text = _read(path).decode("utf-8")
        except UnicodeDecodeError as error:
            raise errors.UserError(f"{path} is no vocabulary: it is not UTF-8") from error
        found.append(parse(path, text.removesuffix("\n").split("\n")))
    return found


def _first(folders: Sequence[pathlib.Path], patterns: Sequence[str]) -> list[pathlib.Path]:
    for folder in folders:
        paths = {path for pattern in patterns for path in folder.glob(pattern) if path.is_file()}
        if paths:
            return sorted(paths)
    return []


def sentencepiece_model(path: pathlib.Path) -> bytes:
    """Return a SentencePiece model; raise UserError where the file is none."""
    model = _read(path)
    try:
        loaded = sentencepiece_vocabulary.processor(model)
    except RuntimeError as error:
        raise errors.UserError(f"{path} cuts no texts: expected a SentencePiece model") from error
    refuse_bytes(loaded, path)
    return model


def refuse_bytes(model: sentencepiece.SentencePieceProcessor, path: pathlib.Path) -> None:
    """Raise UserError for a SentencePiece model that spells rare characters in bytes."""
    if any(model.IsByte(i) for i in range(model.GetPieceSize())):
        raise errors.UserError(f"{path} spells characters in bytes, which cannot be imported")


def _codes(path: pathlib.Path) -> str:
    try:
        text = _read(path).decode("utf-8")
        subword_nmt.Codes(text)
    except ValueError as error:
        raise errors.UserError(
            f"{path} cuts no texts: expected SentencePiece's .model, or the codes of subword-nmt"
        ) from error
    return text


def _read(path: pathlib.Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise errors.UserError(f"there is no vocabulary file {path}") from error
