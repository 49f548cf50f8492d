"""The ids that every vocabulary shares."""

import numpy as np

from t2t_lite.text import special_ids


def test_text_ends_at_eos_and_has_no_padding():
    assert list(special_ids.text_ids(np.array([0, 5, 6, 0, 1, 7]))) == [5, 6]
    assert list(special_ids.text_ids([5, -1])) == [5, -1]
