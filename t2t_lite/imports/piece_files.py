"""The files of a vocabulary of pieces: a dictionary, and what cuts texts into its pieces."""

import dataclasses
import pathlib
import re
from collections.abc import Callable, Sequence

import sentencepiece

from t2t_lite import errors
from t2t_lite.text import piece_vocabulary, sentencepiece_vocabulary, subword_nmt

_SENTENCEPIECE = (".model", ".spm")
_CODES = ("*codes*", "*.bpe", "bpe.*")
_COUNTS = re.compile(rb"[^ \n]+ \d+\r?(\n[^ \n]+ \d+\r?)*\n?")  # "piece count" on each line


@dataclasses.dataclass(frozen=True, kw_only=True)
class Files:
    """Which files there are.

    Attributes:
      dictionaries: one, or the source's and the target's.
      models: SentencePiece's, as many.
      codes: subword-nmt's or fastBPE's, as many. Without these two, texts are cut at white space.
      filters: the files of subword-nmt's --vocabulary, as many or none.
    """

    dictionaries: tuple[pathlib.Path, ...]
    models: tuple[pathlib.Path, ...] = ()
    codes: tuple[pathlib.Path, ...] = ()
    filters: tuple[pathlib.Path, ...] = ()

    @property
    def remarks(self) -> list[str]:
        """What the user should know of them."""
        if not self.codes or self.filters:
            return []
        return [
            "texts are cut by the codes alone; if subword-nmt had --vocabulary and "
            "--vocabulary-threshold, add that vocabulary to --vocab and give "
            "--vocabulary_threshold, too"
        ]

    @property
    def name(self) -> str:
        """The vocabulary's name in an output_dir."""
        return f"{(self.models or self.dictionaries)[0].name}.pieces"

    def joined(
        self,
        pieces: Sequence[str],
        target_pieces: Sequence[str],
        *,
        threshold: int | None,
        ascii_space: bool | None = None,
    ) -> bytes:
        """Return the content of the one file that is made of them.

        Args:
          pieces: of sources, by the ids here.
          target_pieces: of targets.
          threshold: subword-nmt's --vocabulary-threshold.
          ascii_space: see `piece_vocabulary.Side`.
        """
        if (self.filters and not self.codes) or (threshold is not None and not self.filters):
            raise errors.UserError(
                "--vocabulary_threshold is for the codes of subword-nmt and the file of its "
                "--vocabulary, with 'piece count' on each line: give both in --vocab"
            )
        models = [sentencepiece_model(path) for path in self.models] or [None]
        codes = [_codes(path) for path in self.codes] or [None]
        filters = [_code_pieces(path, threshold or 0) for path in self.filters] or [None]
        sides = [
            piece_vocabulary.side(
                side,
                model=models[i],
                codes=codes[i],
                code_pieces=filters[i],
                ascii_space=ascii_space,
            )
            for i, side in ((0, pieces), (-1, target_pieces))
        ]
        return piece_vocabulary.joined(*sides)


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
        or .spm; of all others those with a number on each line are filters, the rest codes. Of two
        of a kind the first is the source's.
      folders: where they are looked for, one after the other; filters are not.
      dictionaries: how these are called, "dict*.txt".
      names: of the source's and the target's, where they are known.
    """
    filters: list[pathlib.Path] = []
    if given is not None:
        paths = [pathlib.Path(part.strip()) for part in given.split(",")]
        sides = [path for path in paths if path.suffix in (".txt", ".vocab")]
        models = [path for path in paths if path.suffix in _SENTENCEPIECE]
        others = [path for path in paths if path not in sides and path not in models]
        filters = [path for path in others if _COUNTS.fullmatch(_read(path))]
        codes = [path for path in others if path not in filters]
    else:
        sides = _first(folders, names) or _first(folders, [dictionaries])
        models = _first(folders, [f"*{suffix}" for suffix in _SENTENCEPIECE])
        codes = [p for p in _first(folders, _CODES) if p not in sides] if not models else []
    is_named = len(names) == 2 and {path.name for path in sides} == set(names)
    if is_named:
        sides.sort(key=lambda path: path.name != names[0])
    counts = len(sides), len(models), len(codes)
    if not sides or max(*counts, len(filters)) > 2 or (models and codes):
        got = ", ".join(path.name for path in [*sides, *models, *codes, *filters])
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
    return Files(
        dictionaries=tuple(sides),
        models=tuple(models),
        codes=tuple(codes),
        filters=tuple(filters),
    )


def pieces(
    paths: Sequence[pathlib.Path], parse: Callable[[pathlib.Path, Sequence[str]], list[str]]
) -> list[list[str]]:
    """Return the pieces of each dictionary; raise UserError where a file is none."""
    found = []
    for path in paths:
        try:
            text = _read(path).decode("utf-8")
        except UnicodeDecodeError as error:
            raise errors.UserError(f"{path} is not a vocabulary: it is not UTF-8") from error
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


def _code_pieces(path: pathlib.Path, threshold: int) -> list[str]:
    """Return the pieces of subword-nmt's --vocabulary that occurred often enough."""
    lines = _read(path).decode("utf-8").removesuffix("\n").split("\n")
    rows = (line.split(" ") for line in lines)
    return [piece for piece, count in rows if int(count) >= threshold]


def _read(path: pathlib.Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise errors.UserError(f"there is no vocabulary file {path}") from error
