"""What the page shows of an export: what it answers, and which texts are blank."""

import pytest

from t2t_lite import errors
from t2t_lite.explore import export_explorer
from t2t_lite.serving import exported


class _Export:
    """Answers every text with the same outputs."""

    def __init__(self, *texts):
        self._outputs = [exported.Output(text, -1.0, False, False, True) for text in texts]

    def nbest(self, texts):
        return [self._outputs for _ in texts]

    def score(self, texts, targets):
        return [(-1.0, 1) for _ in texts]


def test_a_text_is_blank_by_itself_and_one_without_an_output_is_a_users_mistake():
    options = {"alpha": 0.6, "length_penalty": "gnmt", "max_source_length": 9}
    one = export_explorer.ExportExplorer(_Export(""), name="export/1", options=options)
    shown = one.translation("a dog", "ein Hund")
    assert not shown["is_blank"]
    assert shown["given"]["text"] == "ein Hund"
    assert one.translation(" \t")["is_blank"]
    none = export_explorer.ExportExplorer(_Export(), name="export/1", options=options)
    with pytest.raises(errors.UserError, match="export/1 gives no output"):
        none.translation("a dog")
