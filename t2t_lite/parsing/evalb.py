"""Labelled bracket recall, precision and F1 by the rules of EVALB.

    recall    = matched brackets / brackets of the gold trees
    precision = matched brackets / brackets of the predicted trees
    F1        = 2 * precision * recall / (precision + recall)

The rules are those of EVALB (Sekine and Collins 1997); its released sample comes out to the digit:

- A word is deleted where its tag is in `delete_labels`, in either tree by that tree's own tags, and
  so is a bracket that is left without words. The remaining words must agree, or the sentence is an
  error; a prediction without any is skipped. Neither enters the totals.
- The label of a bracket ends before its first "-" or "="; then brackets whose label is in
  `delete_labels` are deleted. Several brackets of one label on one span match one for one.
- A predicted bracket crosses where it overlaps a gold one without nesting. A sentence is complete
  where all brackets match.
- Tags are compared as they stand. The length, for the cut-off, is that of the gold sentence before
  deletion, traces left out.
- Scoring stops after `max_error` + 1 errors (EVALB compares before it counts).

Two things are stricter than in EVALB, which only warns: an unknown keyword of a parameter file, and
files of unequal length, are errors.
"""

import collections
import dataclasses
import itertools
import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from t2t_lite import errors
from t2t_lite.parsing import trees

Status = Literal["valid", "error", "skipped"]
# A prediction may be one tree, several parts side by side, none (skipped), or unreadable (None).
Prediction = trees.Tree | Sequence[trees.Tree] | None

# The keywords of a parameter file, and the parameter that each sets.
_KEYWORDS = {
    "DEBUG": "",
    "MAX_ERROR": "max_error",
    "CUTOFF_LEN": "cutoff_length",
    "LABELED": "labeled",
    "DELETE_LABEL": "delete_labels",
    "DELETE_LABEL_FOR_LENGTH": "delete_labels_for_length",
    "QUOTE_LABEL": "quote_labels",
    "EQ_LABEL": "equal_labels",
    "EQ_WORD": "equal_words",
}
_NUMBERS = ("MAX_ERROR", "CUTOFF_LEN", "LABELED")
_PAIRS = ("EQ_LABEL", "EQ_WORD")

_QUOTE_MARKS = ("'", '"', "/")
_STATUS_NUMBERS = {"valid": 0, "error": 1, "skipped": 2}
_RULE = "=" * 76
_MISSING: Any = object()  # a tree of the side that ended first


@dataclasses.dataclass(frozen=True, kw_only=True)
class Parameters:
    """What an EVALB parameter file sets; the defaults are those of EVALB without one."""

    max_error: int = 10
    cutoff_length: int = 40
    labeled: bool = True
    delete_labels: frozenset[str] = frozenset()
    delete_labels_for_length: frozenset[str] = frozenset()
    equal_labels: frozenset[frozenset[str]] = frozenset()
    equal_words: frozenset[frozenset[str]] = frozenset()
    # A quote mark may be a possessive: where only one of the trees would delete it, both keep it.
    quote_labels: frozenset[str] = frozenset()


# The parameters of COLLINS.prm, by which parsing results on the WSJ are reported.
COLLINS = Parameters(
    delete_labels=frozenset(("TOP", "-NONE-", ",", ":", "``", "''", ".")),
    delete_labels_for_length=frozenset(("-NONE-",)),
    equal_labels=frozenset((frozenset(("ADVP", "PRT")),)),
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sentence:
    """The counts of one sentence; those of brackets are 0 unless its status is "valid"."""

    number: int
    length: int
    status: Status
    problem: str = ""  # of an error
    matched: int = 0
    gold: int = 0
    predicted: int = 0
    crossing: int = 0
    words: int = 0
    correct_tags: int = 0

    @property
    def recall(self) -> float:
        """The percentage of the gold brackets that match."""
        return _percent(self.matched, self.gold)

    @property
    def precision(self) -> float:
        """The percentage of the predicted brackets that match."""
        return _percent(self.matched, self.predicted)

    @property
    def tagging_accuracy(self) -> float:
        """The percentage of the words whose tags agree."""
        return _percent(self.correct_tags, self.words)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Summary:
    """Figures in percent over the valid sentences, and the counts that they come from."""

    recall: float
    precision: float
    f1: float
    complete_match: float
    average_crossing: float  # brackets a sentence, not percent
    no_crossing: float
    two_or_less_crossing: float
    tagging_accuracy: float
    num_sentences: int
    num_errors: int
    num_skipped: int
    num_valid: int
    matched: int
    gold: int
    predicted: int
    crossing: int
    words: int
    correct_tags: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Score:
    """The summaries over all sentences and over those up to the cut-off, and each sentence."""

    all: Summary
    up_to_cutoff: Summary
    cutoff_length: int
    sentences: tuple[Sentence, ...]


def score(
    gold: Iterable[trees.Tree | Sequence[trees.Tree]],
    predicted: Iterable[Prediction],
    parameters: Parameters = COLLINS,
) -> Score:
    """Score predicted trees against gold ones, pairwise and in order.

    The tags decide which words count, so that trees of a parser without tags must get the gold ones
    (`trees.delinearize(..., tags=gold.tags())`). Raises UserError where the numbers of trees differ
    or more sentences are errors than `parameters.max_error` admits.
    """
    sentences: list[Sentence] = []
    num_errors = 0
    pairs = itertools.zip_longest(gold, predicted, fillvalue=_MISSING)
    for number, (gold_tree, predicted_tree) in enumerate(pairs, 1):
        if gold_tree is _MISSING or predicted_tree is _MISSING:
            side = "gold" if gold_tree is _MISSING else "predicted"
            raise errors.UserError(
                f"the numbers of gold and predicted trees differ: sentence {number} has no {side} "
                "one; give one line a sentence, an empty one where there is no parse"
            )
        sentence = _score_sentence(number, gold_tree, predicted_tree, parameters)
        sentences.append(sentence)
        num_errors += sentence.status == "error"
        if num_errors > parameters.max_error + 1:
            raise errors.UserError(
                f"{num_errors} sentences cannot be compared, the last at {number}: "
                f"{sentence.problem}; check that both sides hold the same sentences, or raise "
                f"MAX_ERROR ({parameters.max_error}) in the parameter file"
            )
    return Score(
        all=_summarize(sentences),
        up_to_cutoff=_summarize([s for s in sentences if s.length <= parameters.cutoff_length]),
        cutoff_length=parameters.cutoff_length,
        sentences=tuple(sentences),
    )


def read_parameters(lines: Iterable[str], *, name: str = "parameters") -> Parameters:
    """Return the parameters of an EVALB parameter file (.prm); UserError with the line at fault."""
    settings: dict[str, Any] = {}
    for number, line in enumerate(lines, 1):
        key, *values = line.split()[:4] or ["#"]
        if key.startswith("#"):
            continue
        expected = 2 if key in _PAIRS else 1
        if key not in _KEYWORDS:
            problem = f"unknown keyword {key!r}; expected one of {', '.join(_KEYWORDS)}"
        elif len(values) != expected:
            problem = f"{key} takes {expected} value{'s' * (expected > 1)}, got {len(values)}"
        elif key in _NUMBERS and not re.fullmatch(r"-?\d{1,18}", values[0]):
            problem = f"{key} takes a whole number, got {values[0]!r}"
        else:
            problem = ""
        if problem:
            raise errors.UserError(f"{name}, line {number}: {problem}")
        field = _KEYWORDS[key]
        if key in _NUMBERS:
            settings[field] = int(values[0])
        elif field:
            label = frozenset(values) if key in _PAIRS else values[0]
            settings[field] = settings.get(field, frozenset()) | {label}
    settings["labeled"] = bool(settings.get("labeled", True))
    return Parameters(**settings)


def report(result: Score, *, per_sentence: bool = False) -> str:
    """Return the score in EVALB's layout, with the table of its sentences on request.

    As in EVALB's released results, the total under "Cross" counts the sentences without crossing.
    """
    lines = _table(result) if per_sentence else []
    for title, summary in (
        ("All", result.all),
        (f"len<={result.cutoff_length}", result.up_to_cutoff),
    ):
        lines += [
            "",
            f"-- {title} --",
            f"Number of sentence        = {summary.num_sentences:6d}",
            f"Number of Error sentence  = {summary.num_errors:6d}",
            f"Number of Skip  sentence  = {summary.num_skipped:6d}",
            f"Number of Valid sentence  = {summary.num_valid:6d}",
            f"Bracketing Recall         = {summary.recall:6.2f}",
            f"Bracketing Precision      = {summary.precision:6.2f}",
            f"Bracketing FMeasure       = {summary.f1:6.2f}",
            f"Complete match            = {summary.complete_match:6.2f}",
            f"Average crossing          = {summary.average_crossing:6.2f}",
            f"No crossing               = {summary.no_crossing:6.2f}",
            f"2 or less crossing        = {summary.two_or_less_crossing:6.2f}",
            f"Tagging accuracy          = {summary.tagging_accuracy:6.2f}",
        ]
    return "\n".join(lines if per_sentence else lines[1:])


def _table(result: Score) -> list[str]:
    total = result.all
    no_crossing = sum(s.status == "valid" and s.crossing == 0 for s in result.sentences)
    return [
        "  Sent.                        Matched  Bracket   Cross        Correct Tag",
        " ID  Len.  Stat. Recal  Prec.  Bracket gold test Bracket Words  Tags Accracy",
        _RULE,
        *(
            f"{s.number:4d}  {s.length:3d}    {_STATUS_NUMBERS[s.status]}  "
            f"{s.recall:6.2f} {s.precision:6.2f}   {s.matched:3d}    {s.gold:3d}  "
            f"{s.predicted:3d}    {s.crossing:3d}   {s.words:4d}  {s.correct_tags:4d}   "
            f"{s.tagging_accuracy:6.2f}"
            for s in result.sentences
        ),
        _RULE,
        f"{'':16}{total.recall:6.2f} {total.precision:6.2f} {total.matched:6d} {total.gold:6d} "
        f"{total.predicted:4d} {no_crossing:6d}  {total.words:5d} {total.correct_tags:5d}   "
        f"{total.tagging_accuracy:6.2f}",
        "=== Summary ===",
    ]


@dataclasses.dataclass(slots=True)
class _Word:
    """A terminal, whether it counts, and whether it is a quote mark or a possessive."""

    word: str
    tag: str
    kept: bool
    quote: bool


def _score_sentence(
    number: int,
    gold: trees.Tree | Sequence[trees.Tree],
    predicted: Prediction,
    parameters: Parameters,
) -> Sentence:
    gold = [gold] if isinstance(gold, trees.Tree) else gold
    predicted = [predicted] if isinstance(predicted, trees.Tree) else predicted
    gold_words = _terminals(gold, parameters)
    words = _kept(gold_words)
    length = sum(w.tag not in parameters.delete_labels_for_length for w in gold_words)
    if predicted is None:
        return _unscored(number, length, words, "the prediction is not a tree")
    predicted_words = _terminals(predicted, parameters)
    guesses = _kept(predicted_words)
    if not guesses:
        return _unscored(number, length, words, "")
    if len(words) != len(guesses):
        _keep_quotes(gold_words, predicted_words)
        words, guesses = _kept(gold_words), _kept(predicted_words)
    if len(words) != len(guesses):
        problem = f"{len(words)} gold words and {len(guesses)} predicted ones"
        return _unscored(number, length, words, problem)
    for word, guess in zip(words, guesses):
        if not _equal(word.word, guess.word, parameters.equal_words):
            problem = f"the gold word {word.word!r} is {guess.word!r} in the prediction"
            return _unscored(number, length, words, problem)
    gold_brackets = _brackets(gold, gold_words, parameters)
    predicted_brackets = _brackets(predicted, predicted_words, parameters)
    return Sentence(
        number=number,
        length=length,
        status="valid",
        matched=_count_matches(gold_brackets, predicted_brackets, parameters),
        gold=len(gold_brackets),
        predicted=len(predicted_brackets),
        crossing=_count_crossing(gold_brackets, predicted_brackets),
        words=len(words),
        correct_tags=sum(
            _equal(word.tag, guess.tag, parameters.equal_labels)
            for word, guess in zip(words, guesses)
        ),
    )


def _unscored(number: int, length: int, words: Sequence[_Word], problem: str) -> Sentence:
    status = "error" if problem else "skipped"
    return Sentence(number=number, length=length, status=status, problem=problem, words=len(words))


def _terminals(parts: Sequence[trees.Tree], parameters: Parameters) -> list[_Word]:
    words = []
    for node in itertools.chain.from_iterable(part.preterminals() for part in parts):
        word, tag = node.word or "", node.label
        quote = tag in parameters.quote_labels and word in _QUOTE_MARKS
        words.append(_Word(word, tag, tag not in parameters.delete_labels, quote))
    return words


def _kept(words: Sequence[_Word]) -> list[_Word]:
    return [word for word in words if word.kept]


def _keep_quotes(gold: Sequence[_Word], predicted: Sequence[_Word]) -> None:
    """Keep a quote mark in both trees where the tag of only one of them would delete it."""
    pairs = [[w for w in words if w.kept or w.quote] for words in (gold, predicted)]
    for word, guess in zip(*pairs):
        if word.quote and guess.quote and (word.kept or guess.kept):
            word.kept = guess.kept = True


def _brackets(
    parts: Sequence[trees.Tree], words: Sequence[_Word], parameters: Parameters
) -> list[tuple[int, int, str]]:
    """Return (start, end, label) of each bracket that counts, in the order of their opening."""
    brackets: list[tuple[int, int, str]] = []
    opened: list[int] = []  # places in `brackets`
    remaining = iter(words)
    position = 0
    for node, entering in itertools.chain.from_iterable(map(trees.walk, parts)):
        if node.word is not None:
            position += next(remaining).kept
        elif entering:
            opened.append(len(brackets))
            brackets.append((position, position, re.split("[-=]", node.label, maxsplit=1)[0]))
        else:
            start, _, label = brackets[opened[-1]]
            brackets[opened.pop()] = (start, position, label)
    deleted = parameters.delete_labels.union(
        *(pair for pair in parameters.equal_labels if pair & parameters.delete_labels)
    )
    return [(i, k, label) for i, k, label in brackets if i < k and label not in deleted]


def _count_matches(gold, predicted, parameters: Parameters) -> int:
    """Match each gold bracket with the first free predicted one that equals it."""
    free = collections.defaultdict(list)
    for start, end, label in predicted:
        free[start, end].append(label)
    matches = 0
    for start, end, label in gold:
        for guess in free[start, end]:
            if not parameters.labeled or _equal(label, guess, parameters.equal_labels):
                free[start, end].remove(guess)
                matches += 1
                break
    return matches


def _count_crossing(gold, predicted) -> int:
    """Count the predicted brackets that overlap a gold one without nesting."""
    spans = {(start, end) for start, end, _ in gold}
    return sum(
        any(i < start < k < end or start < i < end < k for i, k in spans)
        for start, end, _ in predicted
    )


def _equal(one: str, other: str, pairs: frozenset[frozenset[str]]) -> bool:
    return one == other or frozenset((one, other)) in pairs


def _summarize(sentences: Sequence[Sentence]) -> Summary:
    status = collections.Counter(s.status for s in sentences)
    valid = [s for s in sentences if s.status == "valid"]
    counts = ("matched", "gold", "predicted", "crossing", "words", "correct_tags")
    total = {field: sum(getattr(s, field) for s in valid) for field in counts}
    recall = _percent(total["matched"], total["gold"])
    precision = _percent(total["matched"], total["predicted"])
    both = recall + precision
    return Summary(
        recall=recall,
        precision=precision,
        f1=2 * precision * recall / both if both else 0.0,
        complete_match=_percent(sum(s.matched == s.gold == s.predicted for s in valid), len(valid)),
        average_crossing=total["crossing"] / len(valid) if valid else 0.0,
        no_crossing=_percent(sum(s.crossing == 0 for s in valid), len(valid)),
        two_or_less_crossing=_percent(sum(s.crossing <= 2 for s in valid), len(valid)),
        tagging_accuracy=_percent(total["correct_tags"], total["words"]),
        num_sentences=len(sentences),
        num_errors=status["error"],
        num_skipped=status["skipped"],
        num_valid=len(valid),
        **total,
    )


def _percent(part: int, whole: int) -> float:
    return 100.0 * part / whole if whole else 0.0
