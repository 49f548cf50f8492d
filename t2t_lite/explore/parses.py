"""A parser's tree beside the gold one, for drawing: which phrases EVALB counts, and which match.

    {"label": "NP", "status": "matched", "children": [{"label": "XX", "word": "It"}]}

A phrase's status is "matched", "wrong" (in a predicted tree), "missed" (in a gold tree), or
"uncounted": EVALB leaves out the outermost bracket and phrases of punctuation alone.
"""

import collections
import re
from typing import Any

from t2t_lite import errors
from t2t_lite.parsing import evalb, trees
from t2t_lite.tasks import parsing

_PARAMETERS = evalb.COLLINS
MAX_LEVELS = 400  # of a drawn tree: Python writes some 480 as JSON


def compare(predicted: str, gold: str | None) -> dict[str, Any]:
    """Return the drawn trees and their figures.

    Args:
      predicted: a tree as text; "" where there is none.
      gold: a tree as text, None where there is none.

    Raises UserError for a tree of more than MAX_LEVELS.
    """
    tree = trees.parse(predicted) if predicted else None
    if gold is None:
        return {"predicted": tree and _drawn(tree), "gold": None, "figures": None}
    gold_tree = trees.parse(gold)
    score = parsing.score([predicted], [gold])
    (sentence,) = score.sentences
    if tree is None or sentence.status != "valid":
        problem = sentence.problem or "there is no tree to compare"
        drawn = tree and _drawn(tree)
        return {"predicted": drawn, "gold": _drawn(gold_tree), "figures": {"problem": problem}}
    # Tags decide which words count, so both sides are counted with the gold ones.
    is_counted = [tag not in _PARAMETERS.delete_labels for tag in gold_tree.tags()]
    statuses = _matches(_spans(tree, is_counted), _spans(gold_tree, is_counted))
    return {
        "predicted": _drawn(tree, statuses[0]),
        "gold": _drawn(gold_tree, statuses[1]),
        "figures": {
            "matched": sentence.matched,
            "gold": sentence.gold,
            "predicted": sentence.predicted,
            "recall": sentence.recall,
            "precision": sentence.precision,
            "f1": score.all.f1,
        },
    }


def _spans(tree: trees.Tree, is_counted: list[bool]) -> list[tuple[int, int, str] | None]:
    """Return (start, end, label) of each phrase in the order of opening, None if not counted."""
    spans: list[tuple[int, int, str] | None] = []
    opened: list[tuple[int, int]] = []  # place in `spans`, position at the opening
    word = position = 0
    for node, entering in trees.walk(tree):
        if node.word is not None:
            position += is_counted[word]
            word += 1
        elif entering:
            opened.append((len(spans), position))
            spans.append(None)
        else:
            place, start = opened.pop()
            label = re.split("[-=]", node.label, maxsplit=1)[0]
            if start < position and label not in _PARAMETERS.delete_labels:
                spans[place] = (start, position, _representative(label))
    return spans


def _representative(label: str) -> str:
    """Return one label for all that EVALB takes as equal."""
    for pair in _PARAMETERS.equal_labels:
        if label in pair:
            return min(pair)
    return label


def _matches(predicted, gold) -> tuple[list[str], list[str]]:
    """Return the status of each phrase on both sides; equal brackets match one to one."""
    free = collections.Counter(span for span in gold if span)
    common = free & collections.Counter(span for span in predicted if span)

    def statuses(spans, otherwise: str) -> list[str]:
        left = common.copy()
        found = []
        for span in spans:
            if span is None:
                found.append("uncounted")
            elif left[span]:
                left[span] -= 1
                found.append("matched")
            else:
                found.append(otherwise)
        return found

    return statuses(predicted, "wrong"), statuses(gold, "missed")


def _drawn(tree: trees.Tree, statuses: list[str] | None = None) -> dict[str, Any]:
    """Return a tree as nested objects; without recursion, since trees may be deep."""
    root: dict[str, Any] = {"children": []}
    opened, places = [root], iter(statuses or ())
    for node, entering in trees.walk(tree):
        if node.word is not None:
            opened[-1]["children"].append({"label": node.label, "word": node.word})
        elif entering:
            status = next(places) if statuses else "uncounted"
            phrase = {"label": node.label, "status": status, "children": []}
            opened[-1]["children"].append(phrase)
            opened.append(phrase)
            if len(opened) > MAX_LEVELS:
                raise errors.UserError(
                    f"a tree has more than {MAX_LEVELS} levels: it is too deep to be shown"
                )
        else:
            opened.pop()
    return root["children"][0]
