"""The search under XLA: the graph's results, few compilations, nothing left to the host."""

from typing import Any

import pytest
import tensorflow as tf
import tiny_run
from tensorflow.python.framework import kernels, op_def_registry

from t2t_lite import errors
from t2t_lite.decode import translator

TEXTS = ["two dogs run in the park", "a dog runs", "he sleeps", "", "x"]


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    return tiny_run.write(tmp_path_factory.mktemp("xla"), seeds=(1, 2))


def _load(run_dir, checkpoints="ckpt-1", **changes):
    paths = ",".join(f"{run_dir}/{name}" for name in checkpoints.split(","))
    return translator.Translator.from_output_dir(run_dir, paths, **changes)


def test_equals_the_graph_with_few_compilations(run_dir):
    # Batches of 48 tokens: three rows of 16. Outputs need more than the small room of 32.
    changes: dict[str, Any] = {"beam_size": 2, "return_beams": 2, "extra_length": 40}
    changes.update(min_length=34, batch_tokens=48)
    graph, xla = _load(run_dir, engine="graph", **changes), _load(run_dir, xla=True, **changes)
    prefixes = ["a dog", *[""] * (len(TEXTS) - 1)]
    pairs = zip(*(model.translate(TEXTS, prefixes=prefixes) for model in (graph, xla)))
    for expected, result in pairs:
        for one, other in zip(result.hypotheses, expected.hypotheses, strict=True):
            assert (one.ids, one.finished) == (other.ids, other.finished)
            assert one.score == pytest.approx(other.score, abs=1e-4)
    before = _functions(xla)
    assert {tuple(each.structured_input_signature[0][0].shape) for each in before} == {
        (3, 16),
        (1, 16),
    }
    assert len(before) == 4
    xla.translate(TEXTS[:3], prefixes=prefixes[:3])
    assert len(_functions(xla)) == len(before)


def _functions(model):
    return model.xla.search._list_all_concrete_functions()


def _is_on_the_host(node):
    """Return whether a GPU's kernel of an operation writes into the host's memory alone."""
    definition = op_def_registry.get(node.op)
    outputs = {argument.name for argument in definition.output_arg} if definition else set()
    for kernel in kernels.get_registered_kernels_for_op(node.op).kernel:
        fits = all(
            node.attr[part.name].type in part.allowed_values.list.type for part in kernel.constraint
        )
        if kernel.device_type == "GPU" and fits:
            return bool(outputs) and outputs <= set(kernel.host_memory_arg)
    return False


def test_the_host_only_starts_the_search(run_dir):
    graph, xla = _load(run_dir, engine="graph"), _load(run_dir, xla=True)
    ids = tf.TensorSpec([2, 16], tf.int32), tf.TensorSpec([2, 8], tf.int32)
    assert xla.xla is not None
    compiled = xla.xla.search.get_concrete_function(*ids, room=24)
    assert compiled.function_def.attr["_XlaMustCompile"].b
    library = compiled.graph.as_graph_def().library.function
    nodes = [*compiled.function_def.node_def, *(n for f in library for n in f.node_def)]
    without_kernel = {node.op for node in nodes if not _runs_under_xla(node.op)}
    assert without_kernel <= {"NoOp"}
    # What the host does at each step of the graph's search.
    functions = graph.translate_ids.get_concrete_function().graph.as_graph_def().library.function
    assert sum(_is_on_the_host(node) for f in functions for node in f.node_def) > 20


def _runs_under_xla(op):
    registered = kernels.get_registered_kernels_for_op(op).kernel
    return any(kernel.device_type == "XLA_GPU_JIT" for kernel in registered)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"sampling": True}, "sampling"),
        ({"checkpoints": "ckpt-1,ckpt-2"}, "ensemble"),
        ({"precision": "mixed_int8"}, "mixed_int8"),
        ({"engine": "litert"}, "exclude each other"),
    ],
    ids=str,
)
def test_what_it_does_not_do(run_dir, changes, reason):
    with pytest.raises(errors.UserError, match=reason):
        _load(run_dir, xla=True, **changes)
