"""BLEU and chrF2 of translations, each figure with the signature of its protocol.

The same output differs by more than a point of BLEU between protocols, so all are given:

    bleu_13a             sacreBLEU's default, on the plain text
    bleu_13a_lowercase   the same, both sides in lower case
    bleu_intl            sacreBLEU's international tokenizer
    chrf2                character n-grams up to 6, recall weighted twice
    bleu_moses           both sides tokenized as Moses does, no smoothing (as multi-bleu.perl)
    bleu_compound_split  the same with hyphenated compounds split: what the paper reports (Table 2)

The last two use sacremoses' port of the Moses tokenizer for the target language. As in the
original protocol, Unicode punctuation is replaced in the translation and not in the reference.
Before these, Chinese, Japanese and Korean have BLEU of sacreBLEU's words for the language (bleu_zh,
bleu_ja-mecab, bleu_ko-mecab), and other text without blanks has bleu_char, of characters.
"""

import contextlib
import dataclasses
import re
from collections.abc import Mapping, Sequence

from sacrebleu.metrics import base, bleu, chrf

from t2t_lite import errors

# sacreBLEU's tokenizers of languages, by two-letter and three-letter codes.
_TOKENIZERS = {
    **dict.fromkeys(("zh", "zho", "cmn"), "zh"),
    **dict.fromkeys(("ja", "jpn"), "ja-mecab"),
    **dict.fromkeys(("ko", "kor"), "ko-mecab"),
}
_LONG_WORDS = 16  # characters a word on average: no language that writes blanks has so many


@dataclasses.dataclass(frozen=True, kw_only=True)
class Score:
    """One figure between 0 and 100, and the protocol that it stands for."""

    name: str
    value: float
    signature: str
    remark: str = ""  # what a reader of the figure must know

    def __str__(self) -> str:
        """Return the figure, name, signature and remark, in columns."""
        remark = f"  ({self.remark})" if self.remark else ""
        return f"{self.value:6.2f}  {self.name:19}  {self.signature}{remark}"


def corpus_score(
    hypotheses: Sequence[str], references: Sequence[str], *, tokenize: str = "13a"
) -> float:
    """Return one of sacreBLEU's figures alone: cheap enough for every evaluation."""
    check_counts({"the hypotheses": len(hypotheses), "the references": len(references)})
    return bleu.BLEU(tokenize=tokenize, force=True).corpus_score(hypotheses, [references]).score


def tokenizer(references: Sequence[str], target_language: str = "") -> str:
    """Return sacreBLEU's tokenizer for a text: "zh", "ja-mecab" or "ko-mecab" by the language.

    "char" for other text that writes no blanks: a line of one word has no word pairs, so that a
    perfect translation would score 0. Also where the package of the language is not installed.
    """
    name = _TOKENIZERS.get(target_language, "")
    if name:
        with contextlib.suppress(RuntimeError):  # sacreBLEU's, about a missing package
            bleu.BLEU(tokenize=name)
            return name
    return "char" if has_no_blanks(references) else "13a"


def has_four_words(references: Sequence[str], tokenize: str) -> bool:
    """Return whether a line has four tokens; else BLEU, whose factors include 4-grams, is 0."""
    tokens = bleu.BLEU(tokenize=tokenize).tokenizer
    return any(len(tokens(line).split()) >= 4 for line in references)


def has_no_blanks(lines: Sequence[str]) -> bool:
    """Return whether a text has nearly no blanks, like Chinese, Japanese or Thai."""
    return _LONG_WORDS * sum(line.count(" ") for line in lines) < sum(map(len, lines))


def corpus_chrf(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Return chrF2 alone, which rewards half a word where BLEU rewards none."""
    check_counts({"the hypotheses": len(hypotheses), "the references": len(references)})
    return chrf.CHRF().corpus_score(hypotheses, [references]).score


def scores(
    hypotheses: Sequence[str], *references: Sequence[str], target_language: str = ""
) -> list[Score]:
    """Score plain (detokenized) hypotheses under every protocol above.

    Each of several references is a full text; an n-gram counts where one of them has it.
    `target_language` is a code such as "de", for the Moses tokenizer; a language whose
    abbreviations Moses does not know gets the English ones, as in Moses. Without a code
    bleu_moses and bleu_compound_split follow the English rules, and have a remark that says so.
    Raises UserError where a side is empty, the counts differ or the code is not one.
    """
    for lines in references:
        check_counts({"the hypotheses": len(hypotheses), "the references": len(lines)})
    moses = _Moses(target_language)
    plain = hypotheses, references
    tokenized = (
        [moses.tokenize_translation(line) for line in hypotheses],
        [[moses.tokenize(line) for line in lines] for lines in references],
    )
    split = (
        [*map(split_compounds, tokenized[0])],
        [[*map(split_compounds, lines)] for lines in tokenized[1]],
    )
    own = tokenizer(references[0], target_language)
    no_blanks = has_no_blanks(references[0])
    wanted = _TOKENIZERS.get(target_language, own)
    missing = f"for bleu_{wanted}: pip install 't2t-lite[{wanted[:2]}]'" if own != wanted else ""
    remark = f"a line without blanks is one word here: rather bleu_{own}" if no_blanks else missing
    moses_remark = remark or moses.remark
    # force: sacreBLEU's warning that a text looks tokenized is wanted once, not with each metric.
    lowercase = bleu.BLEU(lowercase=True, force=True)
    international = bleu.BLEU(tokenize="intl", force=True)
    multi_bleu = bleu.BLEU(tokenize="none", smooth_method="none", force=True)
    split_labels = moses.labels | {"hyphens": "##AT##-##AT##"}
    of_language = bleu.BLEU(tokenize=own, force=True)
    return [
        *([_score(f"bleu_{own}", of_language, *plain, remark=missing)] if own != "13a" else []),
        _score("bleu_13a", bleu.BLEU(), *plain, remark=remark),
        _score("bleu_13a_lowercase", lowercase, *plain, remark=remark),
        _score("bleu_intl", international, *plain, remark=remark),
        _score("chrf2", chrf.CHRF(), *plain),
        _score("bleu_moses", multi_bleu, *tokenized, labels=moses.labels, remark=moses_remark),
        _score("bleu_compound_split", multi_bleu, *split, labels=split_labels, remark=moses_remark),
    ]


def _score(
    name: str,
    metric: base.Metric,
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    labels: Mapping[str, str] = {},
    remark: str = "",
) -> Score:
    """Score one form of the text; `labels` tell what was done to it before, for the signature."""
    value = metric.corpus_score(hypotheses, references).score
    signature = metric.get_signature()
    for key, label in labels.items():
        signature.update(key, label)
    return Score(name=name, value=value, signature=signature.format(), remark=remark)


def split_compounds(line: str) -> str:
    """Split hyphenated words: "rich-text format" becomes "rich ##AT##-##AT## text format".

    As in the original substitution, one split consumes its characters before the next is sought:
    "y-a-t-il" becomes "y ##AT##-##AT## a-t ##AT##-##AT## il".
    """
    return re.sub(r"(\S)-(\S)", r"\1 ##AT##-##AT## \2", line)


def check_counts(counts: Mapping[str, int]) -> None:
    """Raise UserError where a side (by name) has no lines or another count than the others."""
    for name, count in counts.items():
        if not count:
            raise errors.UserError(f"expected at least one line to score; {name}: 0 lines")
    if len(set(counts.values())) > 1:
        sides = ", ".join(
            f"{name}: {errors.counted(count, 'line')}" for name, count in counts.items()
        )
        hint = "give the same sentences in the same order"
        if set(counts.values()) == {2737, 3003}:
            hint = "newstest2014 has a form of 2,737 and one of 3,003 lines; give the same of both"
        raise errors.UserError(f"expected the same text line for line; {sides}; {hint}")


def check_language(code: str) -> None:
    """Raise UserError where `code` is not a language code such as "de"."""
    if not re.fullmatch("[a-z]{2,3}", code):
        raise errors.UserError(f"expected a language code such as de, got {code!r}")


class _Moses:
    """The two Moses scripts that precede a tokenized BLEU, for one language ("": unknown)."""

    def __init__(self, language: str):
        self.remark = "" if language else "English rules: no --target_language was given"
        language = language or "en"
        check_language(language)
        import sacremoses  # 0.3 s that a command's --help need not wait for

        self._tokenizer = sacremoses.MosesTokenizer(lang=language)
        self._normalizer = sacremoses.MosesPunctNormalizer(lang=language)
        self.labels = {
            "tok": f"moses-{language}",
            "hyp": "replace-unicode-punctuation",
            "sacremoses": sacremoses.__version__,
        }

    def tokenize(self, line: str) -> str:
        return str(self._tokenizer.tokenize(line, return_str=True))

    def tokenize_translation(self, line: str) -> str:
        # This step of the normalizer alone is replace-unicode-punctuation.perl; its `normalize`
        # is another script, which would change quotes and numbers as well.
        return self.tokenize(self._normalizer.replace_unicode_punct(line))
