"""Requests that TensorFlow Serving runs once when it loads a model.

Without them the first clients wait until TensorFlow has prepared its functions.
"""

import os
from collections.abc import Iterable

import tensorflow as tf

from t2t_lite.serving import protocol
from t2t_lite.text import vocabulary as vocabularies

FILE = "tf_serving_warmup_requests"
# The sizes of batches that are met first: a single request, and what gathers under load.
BATCH_SIZES = (1, 8, 32)
_NUM_TOKENS = 12


def write(path: str | os.PathLike[str], vocabulary, signature_names: Iterable[str]) -> None:
    """Write requests for each signature: for the one that translates, one a batch size."""
    # Any tokens will do: a learnt vocabulary's most frequent ones, after its bytes.
    first = vocabulary.byte_ids.stop or 3
    sizes = vocabulary.size, vocabulary.targets.size
    tokens = list(range(first, min(first + _NUM_TOKENS, *sizes)))
    text = vocabulary.decode(tokens)
    ids = [*tokens, vocabularies.EOS_ID]
    with tf.io.TFRecordWriter(os.fsencode(path)) as file:
        for name in sorted(signature_names):
            for size in BATCH_SIZES if name in ("serving_default", "from_ids") else (1,):
                inputs = {
                    "from_ids": {"ids": [ids] * size},
                    "score": {"inputs": [text], "targets": [vocabulary.targets.decode(tokens)]},
                }.get(name, {"inputs": [text] * size})
                request = protocol.request("model", inputs, signature_name=name)
                record = protocol.PredictionLog()
                record.predict_log.request.CopyFrom(request)
                file.write(record.SerializeToString())
