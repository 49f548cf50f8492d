"""hparams.json, run.json, the flags that change options, and EVALB's parameter files."""

import dataclasses
import json
import pathlib

import tiny_run
from fuzz import inputs
from hypothesis import given
from hypothesis import strategies as st

from t2t_lite import config, fields
from t2t_lite.data import options as generator_options
from t2t_lite.decode import options as decode_options
from t2t_lite.parsing import evalb, trees
from t2t_lite.run import output_dir
from t2t_lite.text import cleaning
from t2t_lite.train import options as trainer_options

_RUN = {
    "problem": "toy_ende",
    "task": "translation",
    "data_dir": "data",
    "vocabulary": "vocab.toy_ende.300.model",
    "vocab_size": 300,
    "hparams_set": "transformer_toy",
    "precision": "float32",
    "random_seed": 1,
    "versions": {"t2t-lite": "0.1.0"},
}
_CLASSES = [
    config.HParams,
    decode_options.DecodeOptions,
    trainer_options.TrainerOptions,
    generator_options.GeneratorOptions,
    cleaning.Cleaning,
]
_VALUES = ["", " ", "0", "-1", "1e999", "nan", "inf", "-inf", "1_000", "true", "٣", "auto", "0x10"]
_VALUES += ["1e400", "9" * 400, inputs.DIGITS, "a=b", "float32", "\0", "\ud800", "x" * 10_000]


@given(inputs.damaged_json(dataclasses.asdict(tiny_run.HPARAMS)))
def test_hparams_json_is_read_or_refused(folder, data):
    path = folder / "fuzzed" / "hparams.json"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    with inputs.answered():
        hparams = config.from_json(path)
        assert json.loads(config.to_json(hparams)) == dataclasses.asdict(hparams)


@given(inputs.damaged_json(_RUN))
def test_run_json_is_read_or_refused(folder, data):
    path = folder / "output_dir"
    path.mkdir(exist_ok=True)
    (path / output_dir.HPARAMS_FILE).write_text(config.to_json(tiny_run.HPARAMS))
    (path / output_dir.RUN_FILE).write_bytes(data)
    with inputs.answered():
        output = output_dir.read(path)
        assert output.vocabulary_path.parent == path
        assert isinstance(pathlib.Path(output.run.data_dir), pathlib.Path)
        assert output.run.vocab_size > 0
        assert [type(text) for text in (output.run.problem, output.run.precision)] == [str, str]


@st.composite
def _changes(draw: st.DrawFn, options_class: type) -> str:
    """Draw a text like beam_size=8,alpha=0.6 with all that may be wrong in it."""
    names = [field.name for field in dataclasses.fields(options_class)]
    items = st.tuples(
        st.sampled_from([*names, *names, *names, "beam-size", "", "x" * 5_000])
        | st.text(max_size=5),
        st.sampled_from(["=", "=", "=", " = ", "", "=="]),
        st.sampled_from(_VALUES)
        | st.integers().map(str)
        | st.floats().map(str)
        | st.text(max_size=9),
    )
    text = ",".join("".join(item) for item in draw(st.lists(items, max_size=4)))
    return draw(st.sampled_from([text, text, text, f",{text},", text * 20]))


@given(st.sampled_from(_CLASSES).flatmap(lambda kind: st.tuples(st.just(kind), _changes(kind))))
def test_changes_of_options_are_taken_or_refused(case):
    options_class, text = case
    with inputs.answered():
        options = options_class(**fields.parse_changes(options_class, text, flag="--hparams"))
        fields.check(options)
        if options_class is decode_options.DecodeOptions:
            decode_options.for_model(config.HParams(), **decode_options.parse(text))


_COLLINS = b"""\
# EVALB
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
_EVALB_CHUNKS = [
    b"MAX_ERROR ",
    b"\nLABELED ",
    b"EQ_LABEL a",
    inputs.DIGITS.encode(),
    b"-",
    b"\xd9\xa3",
]


@given(inputs.damaged([_COLLINS], chunks=_EVALB_CHUNKS))
def test_parameters_are_read_or_refused(data):
    tree = trees.parse("(S (NP (PRP It)) (VP (VBD rained)) (. .))")
    with inputs.answered():
        parameters = evalb.read_parameters(data.decode("utf-8", "replace").split("\n"))
        evalb.report(evalb.score([tree, tree], [tree, None], parameters), per_sentence=True)
