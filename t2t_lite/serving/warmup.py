"""Requests that TensorFlow Serving runs once when it loads a model.

Without them the first clients wait until TensorFlow has prepared its functions.
"""

import os
from collections.abc import Iterable

import tensorflow as tf

from t2t_lite.serving import protocol
from t2t_lite.text import vocabulary as vocabularies

FILE = "tf_serving_warmup_requests"
_NUM_TOKENS = 12


def write(path: str | os.PathLike[str], vocabulary, signature_names: Iterable[str]) -> None:
    """Write a request for each signature, of one row.

    TensorFlow prepares a graph once for all sizes, and a server that has a max_batch_size below a
    record's rows would never load the model.
    """
    # Any tokens will do: a learnt vocabulary's most frequent ones, after its bytes.
    first = vocabulary.byte_ids.stop or 3
    sizes = vocabulary.size, vocabulary.targets.size
    tokens = list(range(first, min(first + _NUM_TOKENS, *sizes)))
    text = vocabulary.decode(tokens)
    ids = " ".join(map(str, [*tokens, vocabularies.EOS_ID]))
    with tf.io.TFRecordWriter(os.fsencode(path)) as file:
        for name in sorted(signature_names):
            inputs = {
                "from_ids": {"ids": [ids]},
                "score": {"inputs": [text], "targets": [vocabulary.targets.decode(tokens)]},
            }.get(name, {"inputs": [text]})
            request = protocol.request("model", inputs, signature_name=name)
            record = protocol.PredictionLog()
            record.predict_log.request.CopyFrom(request)
            file.write(record.SerializeToString())
