"""BLEU and chrF of translations, each figure with the signature of its protocol.

The same output differs by more than a point of BLEU between protocols, so all of them are given:

    bleu_13a             sacreBLEU's default, on the plain text
    bleu_13a_lowercase   the same, both sides in lower case
    bleu_intl            sacreBLEU's international tokenizer
    chrf2                character n-grams up to 6, recall weighted twice
    bleu_moses           both sides tokenized as Moses does, no smoothing (as multi-bleu.perl)
    bleu_compound_split  the same with hyphenated compounds split: what the paper reports (Table 2)

For the last two a translation first has its Unicode punctuation replaced, a reference has not; the
tokenizer is that of Moses for the target language, by way of sacremoses.
"""

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, cast

from sacrebleu import significance
from sacrebleu.metrics import base, bleu, chrf

from t2t_lite import errors

_LONG_WORDS = 16  # characters on average: no language that writes blanks has such
NUM_RESAMPLES = 1000  # sacreBLEU's own default for intervals and for the paired test


@dataclasses.dataclass(frozen=True, kw_only=True)
class Score:
    """One figure between 0 and 100, and the protocol that it stands for."""

    name: str
    value: float
    signature: str
    mean: float | None = None  # of the bootstrap resamples
    half_width: float | None = None  # of their 95 % interval
    remark: str = ""  # what a reader of the figure must know

    @property
    def label(self) -> str:
        """What stands behind the figure: name, signature and remark, in columns."""
        remark = f"  ({self.remark})" if self.remark else ""
        return f"{self.name:19}  {self.signature}{remark}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two translations of one text under one protocol; a small p-value says that they differ."""

    score: Score
    other: Score
    p_value: float


def corpus_score(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Return sacreBLEU's default figure (13a) alone: cheap enough for every evaluation.

    Of a language that writes no blanks it is BLEU of characters (sacreBLEU's "char"), since a line
    of one word has no word pairs, and a perfect translation would have 0.
    """
    check_counts({"the hypotheses": len(hypotheses), "the references": len(references)})
    tokenize = "char" if has_no_blanks(references) else "13a"
    return bleu.BLEU(tokenize=tokenize, force=True).corpus_score(hypotheses, [references]).score


def has_no_blanks(lines: Sequence[str]) -> bool:
    """Return whether a text has nearly no blanks, as Chinese, Japanese or Thai."""
    return _LONG_WORDS * sum(line.count(" ") for line in lines) < sum(map(len, lines))


def corpus_chrf(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Return chrF2 alone, which sees half a word where BLEU sees none."""
    check_counts({"the hypotheses": len(hypotheses), "the references": len(references)})
    return chrf.CHRF().corpus_score(hypotheses, [references]).score


def scores(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    target_language: str = "",
    confidence: bool = False,
) -> list[Score]:
    """Score plain (detokenized) hypotheses under every protocol above.

    `target_language` is a code such as "de", for the Moses tokenizer; a language whose
    abbreviations Moses does not know gets the English ones, as in Moses. Without a code
    bleu_moses and bleu_compound_split follow the English rules, and have a remark that says so.
    With `confidence` each score has the mean and the 95 % interval of sacreBLEU's seeded bootstrap.
    Raises UserError where a side is empty, the counts differ or the code is not one.
    """
    check_counts({"the hypotheses": len(hypotheses), "the references": len(references)})
    moses = _Moses(target_language)
    system = _forms(hypotheses, moses.tokenize_translation)
    truth = _forms(references, moses.tokenize)
    if confidence:
        return [
            _bootstrap(protocol, [system], truth)[0][0]
            for protocol in _protocols(moses, references)
        ]
    results = []
    for protocol in _protocols(moses, references):
        form, metric = protocol.form, protocol.metric
        value = metric.corpus_score(system[form], [truth[form]]).score
        signature = protocol.sign(metric.get_signature())
        score = Score(name=protocol.name, value=value, signature=signature, remark=protocol.remark)
        results.append(score)
    return results


def compare(
    hypotheses: Sequence[str],
    other_hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    target_language: str = "",
) -> list[Comparison]:
    """Test under every protocol whether two translations differ: sacreBLEU's paired bootstrap.

    Both scores come with their interval. Equal scores have a p-value of 1 (the test itself would
    call a difference of nothing significant). Memory grows by about 0.1 GB for each 1,000 lines.
    Raises UserError as `scores` does.
    """
    check_counts(
        {
            "the hypotheses": len(hypotheses),
            "the other hypotheses": len(other_hypotheses),
            "the references": len(references),
        }
    )
    moses = _Moses(target_language)
    other_system = _forms(other_hypotheses, moses.tokenize_translation)
    system = _forms(hypotheses, moses.tokenize_translation)
    truth = _forms(references, moses.tokenize)
    results = []
    for protocol in _protocols(moses, references):
        (other, score), p_value = _bootstrap(protocol, [other_system, system], truth)
        p_value = 1.0 if score.value == other.value else p_value
        results.append(Comparison(score=score, other=other, p_value=p_value))
    return results


def split_compounds(line: str) -> str:
    """Split hyphenated words: "rich-text format" becomes "rich ##AT##-##AT## text format".

    The characters of one split are not seen again by the next, as in the original substitution:
    "y-a-t-il" becomes "y ##AT##-##AT## a-t ##AT##-##AT## il".
    """
    return re.sub(r"(\S)-(\S)", r"\1 ##AT##-##AT## \2", line)


def check_counts(counts: Mapping[str, int]) -> None:
    """Raise UserError where a side (by name) has no lines, or not as many as the others."""
    for name, count in counts.items():
        if not count:
            raise errors.UserError(f"expected at least one line to score; {name}: 0 lines")
    if len(set(counts.values())) > 1:
        sides = ", ".join(f"{name}: {count:,} lines" for name, count in counts.items())
        hint = "give the same sentences in the same order"
        if set(counts.values()) == {2737, 3003}:
            hint = "newstest2014 has a form of 2,737 and one of 3,003 lines; give the same of both"
        raise errors.UserError(f"expected line for line the same text; {sides}; {hint}")


def check_language(code: str) -> None:
    """Raise UserError where that is no language code such as "de"."""
    if not re.fullmatch("[a-z]{2,3}", code):
        raise errors.UserError(f"expected a language code such as de, got {code!r}")


_Forms = dict[str, Sequence[str]]  # one text as "plain", "moses" and "compound_split"


def _forms(lines: Sequence[str], tokenize: Callable[[str], str]) -> _Forms:
    tokenized = [tokenize(line) for line in lines]
    split = [split_compounds(line) for line in tokenized]
    return {"plain": lines, "moses": tokenized, "compound_split": split}


class _Protocol(NamedTuple):
    name: str
    form: str  # a key of _Forms
    metric: base.Metric
    labels: Mapping[str, str] = {}  # what sacreBLEU cannot know of the text that it is given
    remark: str = ""

    def sign(self, signature: base.Signature) -> str:
        for key, value in self.labels.items():
            signature.update(key, value)
        return signature.format()


def _protocols(moses: "_Moses", references: Sequence[str]) -> Iterator[_Protocol]:
    no_blanks = has_no_blanks(references)
    remark = "a line without blanks is one word here: rather chrf2" if no_blanks else ""
    # force: sacreBLEU's warning that a text looks tokenized is wanted once, not with each metric.
    yield _Protocol("bleu_13a", "plain", bleu.BLEU(), remark=remark)
    lowercase = bleu.BLEU(lowercase=True, force=True)
    yield _Protocol("bleu_13a_lowercase", "plain", lowercase, remark=remark)
    yield _Protocol("bleu_intl", "plain", bleu.BLEU(tokenize="intl", force=True), remark=remark)
    yield _Protocol("chrf2", "plain", chrf.CHRF())
    multi_bleu = bleu.BLEU(tokenize="none", smooth_method="none", force=True)
    remark = remark or moses.remark
    yield _Protocol("bleu_moses", "moses", multi_bleu, moses.labels, remark)
    labels = moses.labels | {"hyphens": "##AT##-##AT##"}
    yield _Protocol("bleu_compound_split", "compound_split", multi_bleu, labels, remark)


def _bootstrap(
    protocol: _Protocol, systems: Sequence[_Forms], truth: _Forms
) -> tuple[list[Score], float]:
    """Return each system's score and interval, and the p-value of the last against the first."""
    # One protocol at a time: PairedTest would file them all under the one name "BLEU".
    signatures, table = significance.PairedTest(
        [(str(number), system[protocol.form]) for number, system in enumerate(systems)],
        {protocol.name: protocol.metric},
        [truth[protocol.form]],
        test_type="bs",
        n_samples=NUM_RESAMPLES,
    )()
    [(key, signature)] = signatures.items()
    results = cast(list[significance.Result], table[key])
    text = protocol.sign(signature)
    scored = [
        Score(
            name=protocol.name,
            value=result.score,
            signature=text,
            mean=float(cast(float, result.mean)),
            half_width=float(cast(float, result.ci)),
            remark=protocol.remark,
        )
        for result in results
    ]
    return scored, results[-1].p_value or 1.0  # None where there is one system only


class _Moses:
    """The two Moses scripts that precede a tokenized BLEU, for one language ("": not known)."""

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
