"""hparams.json, run.json, manifests, the flags that change options, and EVALB's parameter files."""

import dataclasses
import json
import pathlib
import shutil

import tiny_run
from fuzz import inputs
from hypothesis import given
from hypothesis import strategies as st

from t2t_lite import config, fields, registry
from t2t_lite.data import data_dir, manifest
from t2t_lite.data import options as generator_options
from t2t_lite.decode import options as decode_options
from t2t_lite.parsing import evalb, trees
from t2t_lite.run import output_dir
from t2t_lite.text import cleaning
from t2t_lite.train import options as trainer_options

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
    path = folder / "hparams.json"
    path.write_bytes(data)
    with inputs.answered():
        hparams = config.from_json(path)
        assert json.loads(config.to_json(hparams)) == dataclasses.asdict(hparams)


@given(st.data())
def test_run_json_is_read_or_refused(folder, run_dir, data):
    path = folder / "output_dir"
    if not path.exists():
        shutil.copytree(run_dir, path)
    run = json.loads((run_dir / output_dir.RUN_FILE).read_text())
    (path / output_dir.RUN_FILE).write_bytes(data.draw(inputs.damaged_json(run)))
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
        st.sampled_from([*names * 3, "beam-size", "", "x" * 5_000]) | st.text(max_size=5),
        st.sampled_from(["=", "=", "=", " = ", "", "=="]),
        st.sampled_from(_VALUES) | (st.integers() | st.floats()).map(str) | st.text(max_size=9),
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


_COLLINS = (
    b"# EVALB\nMAX_ERROR 10\nCUTOFF_LEN 40\nLABELED 1\nDELETE_LABEL TOP\nDELETE_LABEL -NONE-\n"
    b"DELETE_LABEL ,\nDELETE_LABEL_FOR_LENGTH -NONE-\nQUOTE_LABEL ''\nEQ_LABEL A B\nEQ_WORD a b\n"
)
_EVALB_CHUNKS = [b"MAX_ERROR ", b"\nLABELED ", b"EQ_LABEL a", inputs.DIGITS.encode(), b"-"]
_EVALB_CHUNKS.append("٣".encode())


@given(inputs.damaged([_COLLINS], chunks=_EVALB_CHUNKS))
def test_parameters_are_read_or_refused(data):
    tree = trees.parse("(S (NP (PRP It)) (VP (VBD rained)) (. .))")
    with inputs.answered():
        parameters = evalb.read_parameters(data.decode("utf-8", "replace").split("\n"))
        evalb.report(evalb.score([tree, tree], [tree, None], parameters), per_sentence=True)


@given(st.data())
def test_a_damaged_manifest_is_refused(folder, tiny_data, data):
    problem = registry.problem("parallel_text")
    name = manifest.file_name(problem.base_name)
    intact = json.loads((tiny_data / name).read_text("utf-8"))
    (folder / name).write_bytes(data.draw(inputs.damaged_json(intact)))
    with inputs.answered():
        data_dir.read(folder, problem)
        assert json.loads((folder / name).read_bytes()) == intact
