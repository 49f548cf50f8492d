"""Translate with an exported model, in a process that knows nothing of t2t-lite.

  python scripts/translate.py export "A dog runs." "Two men talk."

`export` is the folder of versions; the largest is taken, as TensorFlow Serving does.
"""

import pathlib
import sys

import tensorflow as tf
import tensorflow_text  # noqa: F401  registers the tokenizer's ops

folder, *texts = sys.argv[1:]
version = max(int(path.name) for path in pathlib.Path(folder).iterdir() if path.name.isdecimal())
model = tf.saved_model.load(f"{folder}/{version}").signatures["serving_default"]
for output in model(inputs=tf.constant(texts, tf.string))["outputs"].numpy():
    print(output.decode())
