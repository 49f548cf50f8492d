"""The cached decoder with room for all time steps from the start: no size changes while it runs.

LiteRT and XLA want that. The search is `beam_search.search_in_room`.
"""

import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops

from t2t_lite.decode import cached_decoder
from t2t_lite.decode.cached_decoder import KeysValues, State


class StaticDecoder(cached_decoder.CachedDecoder):
    """A CachedDecoder whose caches hold the slots of all times, in their order.

    Keys lie transposed, [B, H, d_k, C], so that queries times keys is a plain product. Memory is
    not folded: LiteRT saves little by fewer operations, and its loop copies what it reads from
    outside at every step.
    """

    folds_memory = False

    def grow(self, state: State, ancestry: tf.Tensor, num_steps: tf.Tensor) -> State:
        """Return the initial state with room for num_steps times."""
        num_slots = int(tf.get_static_value(num_steps)) * self.beam_size
        batch_size, num_heads = ancestry.shape[0], self.hparams.num_heads
        # No bias is positive. A zero that only running tells keeps the file of a model free of
        # constants as large as the caches.
        zero = tf.cast(state.memory_bias[0, 0, 0, 0] > 0, self.dtype)
        caches = tuple(
            KeysValues(
                tf.fill([batch_size, num_heads, self.hparams.d_k, num_slots], zero),
                tf.fill([batch_size, num_heads, num_slots, self.hparams.d_v], zero),
            )
            for _ in state.caches
        )
        words = state.words
        if words:
            words = words._replace(passes=tf.zeros([batch_size, num_slots], tf.bool))
        slots = tf.tile(tf.range(num_slots)[None], [batch_size, 1])
        return state._replace(slots=slots, caches=caches, words=words)

    def caches_of(self, state: State):
        """See beam_search.StaticDecoder."""
        return state.caches, state.words

    def with_caches(self, state: State, caches) -> State:
        """See beam_search.StaticDecoder."""
        return state._replace(caches=caches[0], words=caches[1])

    def _place(self, slots: tf.Tensor, position: tf.Tensor, steps_left: tf.Tensor) -> tf.Tensor:
        return position * self.beam_size

    def _write(self, cache: KeysValues, new: KeysValues, place: tf.Tensor) -> KeysValues:
        zero = tf.constant(0)
        return KeysValues(
            gen_xla_ops.xla_dynamic_update_slice(
                cache.keys, _transposed(new.keys), tf.stack([zero, zero, zero, place])
            ),
            gen_xla_ops.xla_dynamic_update_slice(
                cache.values, new.values, tf.stack([zero, zero, place, zero])
            ),
        )

    def _readable(self, cache: KeysValues) -> KeysValues:
        return cache._replace(keys=_transposed(cache.keys))


def rooms(source: int, extra_length: int) -> list[int]:
    """Return a room that is enough for most outputs of sources of a length, then the whole one.

    >>> rooms(16, extra_length=50)
    [32, 66]
    """
    whole = max(source + extra_length, 1)
    return sorted({min(source + max(source // 2, 16), whole), whole})


def _transposed(keys: tf.Tensor) -> tf.Tensor:
    return tf.transpose(keys, [0, 1, 3, 2])
