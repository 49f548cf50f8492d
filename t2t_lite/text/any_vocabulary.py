"""A vocabulary of any kind: this package's own, tensor2tensor's, or another framework's pieces."""

import os
import pathlib

from t2t_lite.text import piece_vocabulary, t2t_vocabulary, vocabulary

AnyVocabulary = (
    vocabulary.Vocabulary | t2t_vocabulary.SubwordVocabulary | piece_vocabulary.PieceVocabulary
)


def load(path: str | os.PathLike[str]) -> AnyVocabulary:
    """Read a vocabulary file of any kind: `.model` (ours), tensor2tensor's, `.pieces`."""
    path = pathlib.Path(path)
    if path.suffix in piece_vocabulary.SUFFIXES:
        return piece_vocabulary.PieceVocabulary.load(path)
    if path.suffix == ".subwords":
        return t2t_vocabulary.SubwordVocabulary.load(path)
    if path.suffix != ".model" and path.is_file():  # T2T's older names tell nothing
        with path.open("rb") as file:
            of_t2t = t2t_vocabulary.kind(file.read(20))
        if of_t2t:
            return of_t2t.load(path)
    return vocabulary.Vocabulary.load(path)


def from_bytes(model_bytes: bytes) -> AnyVocabulary:
    """Return the vocabulary of a file's content, its `model_bytes`; the kind is seen from these."""
    if model_bytes.startswith(b'{"pieces"'):
        return piece_vocabulary.PieceVocabulary(model_bytes)
    return (t2t_vocabulary.kind(model_bytes[:20]) or vocabulary.Vocabulary)(model_bytes)
