"""Workload W of train_step.py in OpenNMT-tf: prints the same RESULT line.

  python3 -m venv other
  other/bin/pip install "OpenNMT-tf[tensorflow]==2.32.0" "tensorflow<2.13" "setuptools<81"
  python benchmarks/compare.py "python benchmarks/train_step.py" \
    "other/bin/python benchmarks/train_step_opennmt_tf.py"

It is OpenNMT-tf's own update (Adam, dropout 0.1, label smoothing 0.1) in a tf.function, without
XLA, with which it was slower on a CPU.
"""

import argparse
import importlib
import json
import os
import statistics
import tempfile
import time

VOCABULARY, ROWS, LENGTH = 8000, 64, 32


def main() -> None:
    """Time it and print the line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=int(os.environ.get("BENCH_STEPS", "20")))
    num_steps = parser.parse_args().steps
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

    update = _update()
    for _ in range(3):
        update()
    times, cpu = [], time.process_time()
    for _ in range(num_steps):
        start = time.perf_counter()
        update()
        times.append(time.perf_counter() - start)
    cpu = (time.process_time() - cpu) / num_steps
    median, tokens = statistics.median(times), 2 * ROWS * LENGTH
    result = {
        "peer": "OpenNMT-tf",
        "load1": round(os.getloadavg()[0], 2),
        "task": "train",
        "tok_s": round(tokens / median),
        "step_ms_median": round(median * 1e3, 1),
        "cpu_s_per_step": round(cpu, 3),
        "tok_per_cpu_s": round(tokens / cpu),
    }
    print(f"RESULT {json.dumps(result)}", flush=True)


def _update():
    """Return a function that does one step."""
    import numpy as np
    import tensorflow as tf

    opennmt = importlib.import_module("opennmt")  # not among the project's own packages

    embedder = opennmt.inputters.WordEmbedder
    model = opennmt.models.Transformer(
        embedder(embedding_size=256),
        embedder(embedding_size=256),
        num_layers=3,
        num_units=256,
        num_heads=4,
        ffn_inner_dim=1024,
        dropout=0.1,
        attention_dropout=0.0,
        ffn_dropout=0.0,
        share_embeddings=opennmt.models.EmbeddingsSharingLevel.ALL,
        pre_norm=False,
    )
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        words = [f"w{i}" for i in range(VOCABULARY - 4)]
        file.write("\n".join(["<blank>", "<s>", "</s>", *words]) + "\n")
        file.flush()
        data = {"source_vocabulary": file.name, "target_vocabulary": file.name}
        model.initialize(data, params={"label_smoothing": 0.1})
        model.create_variables()
    adam = tf.keras.optimizers.legacy.Adam(1e-4, beta_1=0.9, beta_2=0.98, epsilon=1e-9)
    random = np.random.default_rng(0)

    def ids():
        return tf.constant(random.integers(10, VOCABULARY, (ROWS, LENGTH)), tf.int64)

    lengths = tf.fill([ROWS], LENGTH)
    source = {"ids": ids(), "length": lengths}
    target = {"ids": ids(), "ids_out": ids(), "length": lengths}

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            outputs, _ = model(source, target, training=True, step=tf.constant(1, tf.int64))
            total, num_tokens, *_ = model.compute_loss(outputs, target, training=True)
            loss = total / num_tokens
        gradients = tape.gradient(loss, model.trainable_weights)
        adam.apply_gradients(zip(gradients, model.trainable_weights))
        return loss

    return lambda: step().numpy()


if __name__ == "__main__":
    main()
