"""A SavedModel's signatures, run by a Session as TensorFlow Serving runs them.

A search is some hundred small operations a time step, one after the other. Handing them from thread
to thread costs time: here the thread that asks runs them all, as in TensorFlow Serving with
--tensorflow_inter_op_parallelism=-1.
"""

import contextlib
import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  registers the tokenizer's ops
from tensorflow.core.protobuf import rewriter_config_pb2

from t2t_lite import errors, quiet
from t2t_lite.run import plain_paths

_INIT_OP = "__saved_model_init_op"  # a definition that is not a signature
_IN_OWN_THREAD = -1


class Session:
    """The signatures of a SavedModel; any number of threads may run them at a time.

    Args:
      path: its folder.

    Raises UserError or OSError for an incomplete SavedModel.

    Attributes:
      definitions: the SignatureDefs by name.
      specs: the type and shape of each input by name, for each signature by name.
    """

    def __init__(self, path: pathlib.Path):
        v1 = tf.compat.v1
        config = v1.ConfigProto(
            intra_op_parallelism_threads=tf.config.threading.get_intra_op_parallelism_threads(),
            inter_op_parallelism_threads=_IN_OWN_THREAD,
            # Prepare only the part of the graph that a signature runs, and optimize it once, not
            # twice: a quarter less time before the first answer.
            graph_options=v1.GraphOptions(
                place_pruned_graph=True,
                rewrite_options=rewriter_config_pb2.RewriterConfig(
                    meta_optimizer_iterations=rewriter_config_pb2.RewriterConfig.ONE
                ),
            ),
        )
        graph = tf.Graph()
        self._session = v1.Session(graph=graph, config=config)
        try:
            with graph.as_default(), _errors_only(), plain_paths.folder(path) as plain:
                tags = [tf.saved_model.SERVING]
                meta_graph = v1.saved_model.load(self._session, tags, str(plain))
        except ValueError as error:  # its variables are missing
            raise errors.UserError(f"{path} is not a complete SavedModel: {error}") from error
        self.definitions = dict(meta_graph.signature_def)
        self.definitions.pop(_INIT_OP, None)
        self.specs = {name: _specs(signature) for name, signature in self.definitions.items()}
        self._functions = {
            name: self._session.make_callable(
                [signature.outputs[key].name for key in sorted(signature.outputs)],
                [signature.inputs[key].name for key in sorted(signature.inputs)],
            )
            for name, signature in self.definitions.items()
        }
        if "tokenize" in self.definitions:  # the tokenizer's library prints when it is first used
            with quiet.hidden_stderr():
                self.run("tokenize", {"inputs": np.array([b""], object)})

    def run(self, name: str, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return a signature's outputs; raise tf.errors.OpError where an operation fails."""
        outputs = self._functions[name](*(inputs[key] for key in sorted(inputs)))
        return dict(zip(sorted(self.definitions[name].outputs), outputs))


@contextlib.contextmanager
def _errors_only() -> Iterator[None]:
    """Hide TensorFlow's warnings that functions of version 1 are old."""
    logger = tf.get_logger()
    level = logger.level
    logger.setLevel("ERROR")
    try:
        yield
    finally:
        logger.setLevel(level)


def _specs(signature: Any) -> dict[str, tf.TensorSpec]:
    return {
        key: tf.TensorSpec(tf.TensorShape(info.tensor_shape), tf.as_dtype(info.dtype))
        for key, info in signature.inputs.items()
    }
