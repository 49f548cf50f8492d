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
    batch *= passes(hparams)
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


def passes(hparams: config.HParams) -> int:
    """Return how often an update computes each row: R-Drop compares two."""
    return 2 if hparams.r_drop else 1


def num_parameters(hparams: config.HParams, vocab_rows: int) -> int:
    """Return the number of weights; Table 3's last column."""
    h = hparams
    heads = h.num_heads * (h.d_k + h.d_v)
    attention = 2 * h.d_model * heads  # queries, keys, values, output
    attention += h.attention_bias * (h.num_heads * h.d_k + h.d_model)
    if h.attention_function == "additive":
        attention += h.num_heads * h.d_k
    feed_forward = 2 * h.d_model * h.d_ff + h.d_ff + h.d_model
    norm = 2 * h.d_model
    encoder = attention + feed_forward + 2 * norm
    decoder = 2 * attention + feed_forward + 3 * norm
    positions = h.max_length * h.d_model if h.position_encoding == "learned" else 0
    # A vector from which the first tokens are guessed, an attention and its norm.
    parallel_heads = (h.d_model + attention + norm) * (h.parallel_heads > 0)
    parallel_heads += max(h.parallel_heads - 1, 0) * (feed_forward + norm)
    rows = vocab_rows
    if h.embeddings == "separate":
        rows = config.rows(h, vocab_rows)[0] + 2 * vocab_rows
    return (
        rows * h.d_model
        + h.d_model * (h.source_vector + h.start_vector)
        + vocab_rows * h.logits_bias
        + positions
        + h.num_encoder_layers * encoder
        + h.num_decoder_layers * decoder
        + 2 * norm * h.pre_norm
        + parallel_heads
    )


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
