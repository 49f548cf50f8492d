"""Training cost, counted from shapes: floating-point operations (Table 2).

Only matrix products count, two a multiply-add: the rest is below one percent. Forward
for B rows of S source and T target tokens, with D = d_model, F = d_ff, H heads of d_k and d_v, and
V rows of the embedding:

    self-attention    B L 2 D H (2 d_k + 2 d_v) + B H L^2 2 (d_k + d_v), with L = S or T
                      (restricted: L W for L^2, W keys of a block and its neighbours)
    cross-attention   B (S + T) 2 D H (d_k + d_v) + B H T S 2 (d_k + d_v)
    feed-forward      B L 4 D F
    softmax           B T 2 D V

The backward pass makes two products for each of the forward pass: a step costs three times this.
"""

import time

import tensorflow as tf

from t2t_lite import config


def step_flops(
    hparams: config.HParams, vocab_rows: int, *, batch: int, source: int, target: int
) -> int:
    """Return the operations of one update with inputs [batch, source], targets [batch, target]."""
    encoder = _self_attention(hparams, batch, source, causal=False)
    encoder += _feed_forward(hparams, batch * source)
    decoder = (
        _self_attention(hparams, batch, target, causal=True)
        + _cross_attention(hparams, batch, source, target)
        + _feed_forward(hparams, batch * target)
    )
    forward = hparams.num_encoder_layers * encoder + hparams.num_decoder_layers * decoder
    forward += batch * target * 2 * hparams.d_model * vocab_rows
    return 3 * forward


def matmul_peak(dtype: str, *, seconds: float = 0.3) -> float:
    """Measure the device's matrix multiplication in FLOP/s: the best of products of 2048 x 2048."""
    size = 2048
    x = tf.cast(tf.random.stateless_uniform([size, size], seed=[1, 2]), dtype)
    multiply = tf.function(lambda a: tf.reduce_sum(tf.matmul(a, a)), autograph=False)
    multiply(x).numpy()
    best, end = float("inf"), time.monotonic() + seconds
    while time.monotonic() < end:
        start = time.monotonic()
        multiply(x).numpy()
        best = min(best, time.monotonic() - start)
    return 2 * size**3 / best


def keys_of_a_query(hparams: config.HParams, length: int, *, causal: bool) -> int:
    """Return with how many keys self-attention over so many positions compares each query: with
    all, or of restricted self-attention with those of its block and of the neighbours."""
    if not hparams.attention_window:
        return length
    return (2 if causal else 3) * min(hparams.attention_window, length)


def _self_attention(h: config.HParams, batch: int, length: int, *, causal: bool) -> int:
    projections = 2 * h.d_model * h.num_heads * (2 * h.d_k + 2 * h.d_v)
    products = h.num_heads * keys_of_a_query(h, length, causal=causal) * 2 * (h.d_k + h.d_v)
    return batch * length * (projections + products)


def _cross_attention(h: config.HParams, batch: int, source: int, target: int) -> int:
    projections = 2 * h.d_model * h.num_heads * (h.d_k + h.d_v)
    products = h.num_heads * target * source * 2 * (h.d_k + h.d_v)
    return batch * ((source + target) * projections + products)


def _feed_forward(h: config.HParams, tokens: int) -> int:
    return tokens * 4 * h.d_model * h.d_ff
