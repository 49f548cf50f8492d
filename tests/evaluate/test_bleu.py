"""BLEU under each protocol, against the original tools' figures."""

import math

import pytest
import sacrebleu

from t2t_lite import errors
from t2t_lite.evaluate import bleu
from t2t_lite.text import text_files

NAMES = [
    "bleu_13a",
    "bleu_13a_lowercase",
    "bleu_intl",
    "chrf2",
    "bleu_moses",
    "bleu_compound_split",
]
GERMAN = "newstest2014.uedin-wmt14.3122.en-de.gz"
FRENCH = "newstest2014.uedin-wmt14.3023.en-fr.gz"


def _by_name(hypotheses, references, language=""):
    scores = bleu.scores(hypotheses, references, target_language=language)
    return {score.name: score for score in scores}


# The figures of the original Moses scripts and of sacreBLEU 2.6.0's own command on two real
# systems. The tolerance of the first four is rounding's; sacremoses is a port of the scripts, and
# their own output has two decimals.
@pytest.mark.parametrize(
    ("language", "output", "figures"),
    [
        ("de", GERMAN, (20.1043, 20.5247, 20.8973, 53.3775, 20.16, 20.77)),
        ("fr", FRENCH, (35.7963, 36.6477, 38.9892, 62.5721, 37.03, 37.65)),
    ],
)
def test_agrees_with_the_original_tools(shared_data, language, output, figures):
    hypotheses = list(text_files.read_lines(shared_data / "bleu" / output))
    reference_file = shared_data / "bleu" / f"reference.en-{language}.gz"
    references = list(text_files.read_lines(reference_file))
    scores = bleu.scores(hypotheses, references, target_language=language)
    assert [score.name for score in scores] == NAMES
    values = [score.value for score in scores]
    assert values[:4] == pytest.approx(figures[:4], abs=0.01)
    assert values[4:] == pytest.approx(figures[4:], abs=0.02)
    assert bleu.corpus_score(hypotheses, references) == values[0]
    assert bleu.corpus_chrf(hypotheses, references) == values[3]


def test_13a_is_the_formula():
    # 6 words against 6: 5 of 6 unigrams match, 4 of 5 bigrams, 3 of 4 trigrams, 2 of 3 4-grams.
    expected = 100 * (5 / 6 * 4 / 5 * 3 / 4 * 2 / 3) ** (1 / 4)
    assert bleu.corpus_score(["a b c d e f"], ["a b c d e g"]) == pytest.approx(expected)
    # A hypothesis of 4 words where 6 are due has all n-grams right and the penalty exp(1 - 6/4).
    assert bleu.corpus_score(["a b c d"], ["a b c d e f"]) == pytest.approx(100 * math.exp(-0.5))


def test_lowercase_ignores_case_and_13a_does_not():
    scores = _by_name(["ALL in CAPITALS here"], ["all in capitals here"])
    assert scores["bleu_13a_lowercase"].value == pytest.approx(100)
    assert scores["bleu_13a"].value < 50


def test_only_the_translation_has_its_unicode_punctuation_replaced():
    # As the protocol has it: the reference's typographic apostrophe and dots stay what they are.
    straight, curly = ["it 's a b c ..."], ["it ’s a b c …"]
    tokenized = {
        (h[0], r[0]): _by_name(h, r)["bleu_moses"].value
        for h in (straight, curly)
        for r in (straight, curly)
    }
    assert tokenized[straight[0], straight[0]] == pytest.approx(100)
    assert tokenized[curly[0], straight[0]] == pytest.approx(100)
    assert tokenized[curly[0], curly[0]] < 100


def test_quotes_and_dashes_that_replace_unicode_punctuation_leaves_are_left():
    # The wider script of Moses, normalize-punctuation, would turn all of these into ASCII.
    lines = ["„ a – b ‚ c « d"]
    assert _by_name(lines, lines)["bleu_moses"].value == pytest.approx(100)


def test_moses_tokenizer_is_of_the_target_language():
    hypotheses, references = ["a b c l'été"], ["a b c l'hiver"]
    french = _by_name(hypotheses, references, "fr")["bleu_moses"]
    german = _by_name(hypotheses, references, "de")["bleu_moses"]
    # French: a b c l' été. German, which has no such rule: a b c l ' été. Only the last differs.
    assert french.value == pytest.approx(100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** (1 / 4))
    assert german.value == pytest.approx(100 * (5 / 6 * 4 / 5 * 3 / 4 * 2 / 3) ** (1 / 4))


@pytest.mark.parametrize(
    ("line", "split"),
    [
        ("rich-text format", "rich ##AT##-##AT## text format"),
        ("a - b", "a - b"),
        ("-5 and 5-", "-5 and 5-"),
        ("rock-and-roll", "rock ##AT##-##AT## and ##AT##-##AT## roll"),
        # What one match has consumed cannot begin the next: the "a" of "y-a" is gone.
        ("y-a-t-il", "y ##AT##-##AT## a-t ##AT##-##AT## il"),
        ("a--b", "a ##AT##-##AT## -b"),
    ],
)
def test_split_compounds(line, split):
    assert bleu.split_compounds(line) == split


def test_compound_split_rewards_a_part_of_a_compound():
    hypotheses, references = ["the rich-text format of it"], ["the plain-text format of it"]
    scores = _by_name(hypotheses, references)
    # Moses: 4 of 5 words, no 4-gram. Split (7 words, "rich" differs): 6/7 5/6... less the n-grams
    # that hold "rich": bigrams 4 of 6, trigrams 3 of 5, 4-grams 2 of 4.
    assert scores["bleu_moses"].value == 0
    expected = 100 * (6 / 7 * 4 / 6 * 3 / 5 * 2 / 4) ** (1 / 4)
    assert scores["bleu_compound_split"].value == pytest.approx(expected)


def test_a_language_without_blanks_has_bleu_of_characters():
    references = ["两个年轻人在街上走着。", "一只狗在 iPhone 旁边睡觉。", "犬が公園で走っている。"]
    assert bleu.tokenizer(references) == "char"
    assert bleu.corpus_score(references, references, tokenize="char") == pytest.approx(100)
    worse = ["两个年轻人在街上。", *references[1:]]
    assert 50 < bleu.corpus_score(worse, references, tokenize="char") < 100
    scores = _by_name(references, references)
    remarks = {name for name in scores if "rather bleu_char" in scores[name].remark}
    assert remarks == {*NAMES} - {"chrf2"}
    assert scores["bleu_char"].value == pytest.approx(100)
    assert not bleu.has_no_blanks(["Zwei junge Männer gehen.", "Donaudampfschifffahrt."])


# sacreBLEU's documentation of its tokenizers has the names.
@pytest.mark.parametrize(
    ("language", "name"), [("zh", "zh"), ("ja", "ja-mecab"), ("kor", "ko-mecab")]
)
@pytest.mark.parametrize("is_installed", [True, False])
def test_chinese_japanese_and_korean_have_their_own_words(
    monkeypatch, language, name, is_installed
):
    class Bleu(sacrebleu.BLEU):
        def __init__(self, **settings):
            if settings.get("tokenize") == name:
                if not is_installed:
                    raise RuntimeError("pip install sacrebleu[...]")
                settings["tokenize"] = "char"  # stands for it where it is not installed
            super().__init__(**settings)

    monkeypatch.setattr(bleu.bleu, "BLEU", Bleu)
    lines = ["两个年轻人在街上走着。"]
    first, *_ = bleu.scores(lines, lines, target_language=language)
    assert first.name == f"bleu_{name if is_installed else 'char'}"
    assert first.value == pytest.approx(100)
    install = f"for bleu_{name}: pip install 't2t-lite[{name[:2]}]'"
    assert first.remark == ("" if is_installed else install)


def test_each_n_gram_may_be_that_of_any_reference():
    scores = bleu.scores(["a b c d e f"], ["a b c x y z"], ["u v w d e f"])
    # 6 of 6 words, 4 of 5 bigrams (not "c d"), 2 of 4 trigrams, and no 4-gram: 1/2 of 3 by "exp".
    expected = 100 * (6 / 6 * 4 / 5 * 2 / 4 * 1 / 6) ** (1 / 4)
    assert scores[0].value == pytest.approx(expected)
    assert all("nrefs:2" in score.signature for score in scores)


def test_signatures_name_the_protocols():
    scores = _by_name(["a b"], ["a b"], "de")
    signatures = {name: score.signature for name, score in scores.items()}
    assert len(set(signatures.values())) == len(NAMES)
    assert "tok:13a" in signatures["bleu_13a"]
    assert "case:lc" in signatures["bleu_13a_lowercase"]
    assert "tok:intl" in signatures["bleu_intl"]
    for name in ("bleu_moses", "bleu_compound_split"):
        assert "tok:moses-de|" in signatures[name]
        assert "hyp:replace-unicode-punctuation|" in signatures[name]
    assert "hyphens:##AT##-##AT##" in signatures["bleu_compound_split"]
    assert "hyphens" not in signatures["bleu_moses"]


def test_empty_hypotheses_score_zero():
    scores = bleu.scores(["", ""], ["a b", "c"])
    assert [score.value for score in scores] == [0.0] * len(NAMES)


def test_mistakes_are_refused():
    with pytest.raises(errors.UserError, match="hypotheses: 2 lines, the references: 1 line"):
        bleu.scores(["a", "b"], ["a"])
    with pytest.raises(errors.UserError, match="at least one line"):
        bleu.corpus_score([], [])
    with pytest.raises(errors.UserError, match=r"newstest2014 has a form of 2,737 and one of"):
        bleu.check_counts({"out.de": 3003, "ref.de": 2737})
    with pytest.raises(errors.UserError, match="language code such as de, got 'German'"):
        bleu.scores(["a"], ["a"], target_language="German")
