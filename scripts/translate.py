"""Translate with an exported model, in a process that knows nothing of t2t-lite.

  python scripts/translate.py export "A dog runs." "Two men talk."

`export` is the folder of versions; the largest is taken, as TensorFlow Serving does.
"""

import contextlib
import gc
import os
import pathlib
import sys
from collections.abc import Iterator


def newest(folder: pathlib.Path) -> pathlib.Path:
    """Return the newest version in a folder of versions."""
    versions = [p for p in folder.glob("*/saved_model.pb") if p.parent.name.isdecimal()]
    if not versions:
        sys.exit(
            f"translate.py: {folder} has no exported version (no 1/saved_model.pb or the like): "
            f"run t2t-lite-exporter --export_dir={folder}"
        )
    return max(versions, key=lambda path: int(path.parent.name)).parent


def translate(version: pathlib.Path, texts: list[str]) -> list[bytes]:
    """Return the translation of each text."""
    gc.disable()  # there is no garbage, and looking for it is a tenth of the time
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  registers the tokenizer's ops

    v1 = tf.compat.v1  # a Session loads one signature, tf.saved_model.load all of them
    tf.get_logger().setLevel("ERROR")  # it says that v1 is old
    options = v1.GraphOptions(place_pruned_graph=True)
    with v1.Session(graph=tf.Graph(), config=v1.ConfigProto(graph_options=options)) as session:
        os.chdir(version)  # TensorFlow takes *?[] in a path for a pattern
        signatures = v1.saved_model.load(session, ["serve"], ".").signature_def
        signature = signatures["serving_default"]
        inputs = {signature.inputs["inputs"].name: texts}
        return session.run(signature.outputs["outputs"].name, inputs)


@contextlib.contextmanager
def hidden_stderr() -> Iterator[None]:
    """Hide what TensorFlow and its libraries print; an exception is shown as always."""
    saved = os.dup(2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)


def main() -> None:
    """Translate the arguments."""
    if "--help" in sys.argv[1:]:
        print((__doc__ or "").strip())
        return
    if len(sys.argv) < 3:
        sys.exit("translate.py: expected a folder of versions and texts; see --help")
    folder, *texts = sys.argv[1:]
    version = newest(pathlib.Path(folder))

    with hidden_stderr():
        outputs = translate(version, texts)
    for output in outputs:
        sys.stdout.buffer.write(output + b"\n")


if __name__ == "__main__":
    main()
