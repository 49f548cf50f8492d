"""Jacobi iteration (Santilli et al. 2023): blockwise decoding without heads, on any output_dir.

  python benchmarks/jacobi.py --output_dir=run --source=test.en --blocks=2,3,4,8,32

What a block of k proposes is what the model itself chose a step before, behind the last choice that
stands. Those choices came after a wrong token, so they may be wrong as well. Where the block moves
on and there are none, its last choice is repeated. A block as long as the longest output makes it
the iteration over whole sentences. Outputs are greedy decoding's.

Prints RESULT {json} for greedy decoding and for each k: of all sentences how many outputs are as
greedy decoding's, and tokens a step; of the first --sentences, one by one, all ways in turns, the
medians of the clock over --rounds and least processor times. `speed` is greedy's time over its own.
"""

import argparse
import json
import os
import pathlib
from typing import Any

import blockwise as timing
import tensorflow as tf

from t2t_lite.decode import blockwise, cached_decoder, candidates, translator
from t2t_lite.decode import options as decode_options
from t2t_lite.model import transformer


class JacobiDecoder(blockwise.BlockDecoder):
    """A block decoder whose proposals are the model's choices of the step before.

    What a step computes is kept until it is asked for proposals, within one trace.
    """

    def __init__(self, model: transformer.Transformer, options: decode_options.DecodeOptions):
        self.model, self.block_size = model, options.parallel_heads
        self._cached = cached_decoder.CachedDecoder(model, self.block_size, options.products_dtype)

    def encode(self, inputs: tf.Tensor) -> cached_decoder.State:
        """Return the state before the first step of inputs [B, S]."""
        return self._cached.encode(inputs)

    def first_proposals(self, state: cached_decoder.State) -> tf.Tensor:
        """Return [B, k - 1] of PAD: nothing is known."""
        return tf.zeros([tf.shape(state.slots)[0], self.block_size - 1], tf.int32)

    def step(self, ids, lengths, state, *, steps_left):
        """See BlockDecoder."""
        self._ids = ids
        return super().step(ids, lengths, state, steps_left=steps_left)

    def logits(self, outputs: tf.Tensor) -> candidates.Logits:
        """See BlockDecoder."""
        logits = super().logits(outputs)
        choices = tf.argmax(logits, axis=1, output_type=tf.int32)
        self._choices = tf.reshape(choices, [-1, self.block_size])
        return logits

    def proposals(self, outputs, ids, state) -> tf.Tensor:
        """Return int32 [B, k - 1]: the choices behind those that stand, the last one repeated."""
        del outputs, ids, state
        follows = tf.cast(self._ids[:, 1:] == self._choices[:, :-1], tf.int32)
        num_new = 1 + tf.reduce_sum(tf.math.cumprod(follows, axis=1), axis=1)
        places = num_new[:, None] + tf.range(self.block_size - 1)
        return tf.gather(self._choices, tf.minimum(places, self.block_size - 1), batch_dims=1)


class JacobiTranslator(translator.Translator):
    """A translator that needs no heads for blocks of options.parallel_heads."""

    def _new_decoder(self) -> JacobiDecoder:
        with tf.init_scope():
            return JacobiDecoder(self.models[0], self.options)


def main() -> None:
    """Measure, and print a line for each way of decoding."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output_dir", required=True)
    parser.add_argument("--checkpoint_path")
    parser.add_argument("--source", type=pathlib.Path, required=True, help="sentences, one a line")
    parser.add_argument("--blocks", default="2,3,4,8,32", help="sizes")
    parser.add_argument("--sentences", type=int, default=100, help="timed one by one; 0: none")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    flags = parser.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(flags.threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)

    lines = flags.source.read_text("utf-8").splitlines()
    load = (flags.output_dir, flags.checkpoint_path)
    ways = {"greedy": translator.Translator.from_output_dir(*load, beam_size=1)}
    for k in map(int, flags.blocks.split(",")):
        ways[f"blocks of {k}"] = JacobiTranslator.from_output_dir(
            *load, beam_size=1, parallel_heads=k
        )
    results: dict[str, dict[str, Any]] = {name: {"decoding": name} for name in ways}
    greedy = [one.ids for one in ways["greedy"].translate(lines)]
    for name, model in ways.items():
        if model.options.parallel_heads:
            outputs = [one.ids for one in model.translate(lines)]
            results[name]["equal"] = sum(map(tuple.__eq__, outputs, greedy))
            results[name]["tokens_per_step"] = round(model.tokens_per_step(lines), 3)
    some = lines[: flags.sentences]
    if some:
        timing.add_times(
            results,
            "one",
            timing.one_by_one(ways, some),
            rounds=flags.rounds,
            per=len(some),
        )
    for result in results.values():
        print(f"RESULT {json.dumps(result | {'of': len(lines)})}", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    main()
