"""A parser's outputs against gold trees, as the paper scores them (Section 6.3)."""

import dataclasses
from collections.abc import Sequence

from t2t_lite import errors
from t2t_lite.parsing import evalb, trees

# A sentence that cannot be compared is counted, and never stops an evaluation.
_PARAMETERS = dataclasses.replace(evalb.COLLINS, max_error=10**9)


def score(outputs: Sequence[str], references: Sequence[str]) -> evalb.Score:
    """Return the score of trees, one a string, against gold trees by EVALB with COLLINS.prm.

    The outputs get the gold tags: tags decide which words EVALB leaves out, and a parser of words
    finds none. An empty output counts as skipped, one over other words as an error.
    """
    gold = [trees.parse(reference) for reference in references]
    return evalb.score(gold, map(_with_gold_tags, outputs, gold), _PARAMETERS)


def _with_gold_tags(output: str, gold: trees.Tree) -> evalb.Prediction:
    if not output.strip():
        return ()
    try:
        tree = trees.parse(output)
    except errors.UserError:
        return None
    # Words are compared as a parser reads them.
    if tree.words() != trees.sentence(" ".join(gold.words())).split(" "):
        return None
    return trees.delinearize(trees.linearize(tree), gold.words(), tags=gold.tags())
