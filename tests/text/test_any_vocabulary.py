"""Whatever is no vocabulary is refused with its name."""

import pytest

from t2t_lite import errors
from t2t_lite.text import any_vocabulary


def test_files_that_are_none_are_refused(tmp_path):
    with pytest.raises(errors.UserError, match="no vocabulary file"):
        any_vocabulary.load(tmp_path / "vocab.model")
    (tmp_path / "vocab.model").write_bytes(b"text")
    with pytest.raises(errors.UserError, match="not a SentencePiece model"):
        any_vocabulary.load(tmp_path / "vocab.model")
