"""EVALB's parameter files."""

from fuzz import inputs
from hypothesis import given

from t2t_lite.parsing import evalb, trees

_COLLINS = b"""\
##------------------------------------------##
DEBUG 0
MAX_ERROR 10
CUTOFF_LEN 40
LABELED 1
DELETE_LABEL TOP
DELETE_LABEL -NONE-
DELETE_LABEL ,
DELETE_LABEL_FOR_LENGTH -NONE-
QUOTE_LABEL ''
EQ_LABEL ADVP PRT
EQ_WORD a b
"""
_CHUNKS = [b"MAX_ERROR ", b"\nLABELED ", b"EQ_LABEL a", inputs.DIGITS.encode(), b"-", b"\xd9\xa3"]


@given(inputs.damaged([_COLLINS], chunks=_CHUNKS))
def test_parameters_are_read_or_refused(data):
    tree = trees.parse("(S (NP (PRP It)) (VP (VBD rained)) (. .))")
    with inputs.answered():
        parameters = evalb.read_parameters(data.decode("utf-8", "replace").split("\n"))
        evalb.report(evalb.score([tree, tree], [tree, None], parameters), per_sentence=True)
