"""What an output_dir's export says beside what its decoder says."""

import pathlib
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from t2t_lite.decode import translator
from t2t_lite.serving import export

# Of core TensorFlow and TensorFlow Text: what a stock TensorFlow Serving has.
_OPS = set((pathlib.Path(__file__).parent / "serving" / "allowed_ops.txt").read_text().split())


def says_the_same(
    run_dir: pathlib.Path, export_dir: pathlib.Path, texts: list[str], **changes: Any
) -> tuple[dict[str, Any], list[translator.Translation]]:
    """Export a run and compare the answers to texts; return the signatures and the translations."""
    expected = translator.Translator.from_output_dir(run_dir, **changes).translate(texts)
    export.export(run_dir, export_dir, **changes)
    signatures = tf.saved_model.load(str(export_dir / "1")).signatures
    found = signatures["serving_default"](inputs=tf.constant(texts))
    assert [t.decode() for t in found["outputs"].numpy()] == [t.text for t in expected]
    np.testing.assert_allclose(found["scores"], [t.score for t in expected], atol=1e-5)
    ids = signatures["tokenize"](inputs=tf.constant(texts))["ids"].numpy()
    assert [[*map(int, row.split())] for row in ids] == [[*t.source_ids] or [1] for t in expected]
    return signatures, expected


def is_for_stock_servers(path: pathlib.Path) -> None:
    """Check that the graph has operations that all servers have, for no compiler and no device."""
    proto = saved_model_pb2.SavedModel.FromString((path / "saved_model.pb").read_bytes())
    graph = proto.meta_graphs[0].graph_def
    functions = graph.library.function
    nodes = [*graph.node, *(node for function in functions for node in function.node_def)]
    unknown = {node.op for node in nodes} - _OPS
    assert not unknown, unknown
    assert not any(function.attr["_XlaMustCompile"].b for function in functions)
    # Strings live on the CPU; nothing else is bound to a place.
    assert {node.device for node in nodes} <= {"", "/device:CPU:0", "/device:CPU:*"}
