"""The files of a vocabulary of pieces: a dictionary, and what cuts texts into its pieces."""

import dataclasses
import pathlib
from collections.abc import Callable, Sequence

from t2t_lite import errors
from t2t_lite.text import piece_vocabulary, subword_nmt

_SENTENCEPIECE = (".model", ".spm")
_CODES = ("*codes*", "*.bpe", "bpe.*")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Files:
    """Which files there are.

    Attributes:
      dictionaries: one, or one for each side.
      model: SentencePiece's.
      codes: subword-nmt's or fastBPE's. Without these two, texts are cut at blanks.
    """

    dictionaries: tuple[pathlib.Path, ...]
    model: pathlib.Path | None = None
    codes: pathlib.Path | None = None

    @property
    def name(self) -> str:
        """The vocabulary's name in an output_dir."""
        return f"{(self.model or self.dictionaries[0]).name}.pieces"

    def joined(self, pieces: Sequence[str]) -> bytes:
        """Return the content of the one file that is made of them; pieces by the ids here."""
        try:
            if self.model:
                model = _read(self.model)
                loaded = piece_vocabulary.processor(model)
                if any(loaded.IsByte(i) for i in range(loaded.GetPieceSize())):
                    raise errors.UserError(
                        f"{self.model} spells characters in bytes, which cannot be imported"
                    )
                return piece_vocabulary.joined(pieces, source=model, target=model)
            if self.codes:
                text = _read(self.codes).decode("utf-8")
                subword_nmt.Codes(text)
                return piece_vocabulary.joined(pieces, codes=text)
        except (RuntimeError, ValueError) as error:
            raise errors.UserError(
                f"{self.model or self.codes} cuts no texts: expected SentencePiece's .model, or "
                "the codes of subword-nmt"
            ) from error
        return piece_vocabulary.joined(pieces)


def find(given: str | None, folders: Sequence[pathlib.Path], *, dictionaries: str) -> Files:
    """Return the files that are given, or that lie in one of the folders.

    Args:
      given: paths with commas between: dictionaries are .txt or .vocab, SentencePiece models .model
        or .spm, all others are codes.
      folders: where they are looked for, one after the other.
      dictionaries: how these are called, "dict*.txt".
    """
    if given is not None:
        paths = [pathlib.Path(part.strip()) for part in given.split(",")]
        sides = [path for path in paths if path.suffix in (".txt", ".vocab")]
        models = [path for path in paths if path.suffix in _SENTENCEPIECE]
        codes = [path for path in paths if path not in sides and path not in models]
    else:
        sides = _first(folders, [dictionaries])
        models = _first(folders, [f"*{suffix}" for suffix in _SENTENCEPIECE])
        codes = [p for p in _first(folders, _CODES) if p not in sides] if not models else []
    if not 1 <= len(sides) <= 2 or len(models) + len(codes) > 1:
        names = ", ".join(path.name for path in [*sides, *models, *codes])
        raise errors.UserError(
            f"give the vocabulary as --vocab: {dictionaries.replace('*', '')}, and with a comma "
            "after it SentencePiece's .model or the codes of subword-nmt where texts are cut by "
            f"one of these; got {names or 'nothing, and none lies beside the model'}"
        )
    return Files(
        dictionaries=tuple(sides),
        model=models[0] if models else None,
        codes=codes[0] if codes else None,
    )


def pieces(
    paths: Sequence[pathlib.Path], parse: Callable[[pathlib.Path, Sequence[str]], list[str]]
) -> list[str]:
    """Return the pieces of a dictionary; of two, which are equal.

    Raises UserError where one side has other pieces than the other, or a file is none.
    """
    found = []
    for path in paths:
        try:
            text = _read(path).decode("utf-8")
        except UnicodeDecodeError as error:
            raise errors.UserError(f"{path} is no vocabulary: it is not UTF-8") from error
        found.append(parse(path, text.removesuffix("\n").split("\n")))
    if any(other != found[0] for other in found):
        raise errors.UserError(
            "a model with a vocabulary for each side cannot be imported: "
            f"{' and '.join(map(str, paths))} differ"
        )
    return found[0]


def _first(folders: Sequence[pathlib.Path], patterns: Sequence[str]) -> list[pathlib.Path]:
    for folder in folders:
        paths = {path for pattern in patterns for path in folder.glob(pattern) if path.is_file()}
        if paths:
            return sorted(paths)
    return []


def _read(path: pathlib.Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise errors.UserError(f"there is no vocabulary file {path}") from error
