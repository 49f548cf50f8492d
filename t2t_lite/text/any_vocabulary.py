"""Reads vocabulary files of any kind; their content tells which."""

import os
import pathlib

from t2t_lite import errors
from t2t_lite.text import piece_vocabulary, sentencepiece_vocabulary, t2t_vocabulary, vocabulary


def load(path: str | os.PathLike[str]) -> vocabulary.Vocabulary:
    """Read a vocabulary file; raise UserError where it is missing or not one."""
    try:
        return from_bytes(pathlib.Path(path).read_bytes())
    except FileNotFoundError as error:
        raise errors.UserError(
            f"there is no vocabulary file {path}{errors.missing_folder(path)}"
        ) from error
    except RuntimeError as error:  # SentencePiece's, which names a line of its source
        raise errors.UserError(
            f"{path} is not a vocabulary: expected a SentencePiece model, or a file of "
            "t2t-lite-import or of tensor2tensor"
        ) from error
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise errors.UserError(f"{path} is not a vocabulary: {error}") from error


def from_bytes(model_bytes: bytes) -> vocabulary.Vocabulary:
    """Return the vocabulary whose file has this content."""
    for start, kind in (
        (piece_vocabulary.START, piece_vocabulary.PieceVocabulary),
        (b"'<pad>", t2t_vocabulary.SubwordVocabulary),
        (b'"<pad>', t2t_vocabulary.SubwordVocabulary),
        (b"<pad>\n<EOS>\n", t2t_vocabulary.TokenVocabulary),
        (b"<pad>\r\n<EOS>\r\n", t2t_vocabulary.TokenVocabulary),
    ):
        if model_bytes.startswith(start):
            return kind(model_bytes)
    return sentencepiece_vocabulary.SentencePieceVocabulary(model_bytes)
