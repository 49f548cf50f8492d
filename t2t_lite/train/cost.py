"""What a training step costs, counted from shapes: operations (Table 2) and memory.

Only matrix products count, two operations a multiply-add: the rest is below one percent. Forward
for B rows of S source and T target tokens, with D = d_model, F = d_ff, H heads of d_k and d_v, and
V rows of the embedding:

    self-attention    B L 2 D H (2 d_k + 2 d_v) + B H L^2 2 (d_k + d_v), with L = S or T
                      (restricted: L W for L^2, W keys of a block and its neighbours)
    cross-attention   B (S + T) 2 D H (d_k + d_v) + B H T S 2 (d_k + d_v)
    feed-forward      B L 4 D F
    softmax           B T 2 D V

The backward pass makes two products for each of the forward pass: a step costs three times this.
"""

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


def activation_bytes(
    hparams: config.HParams, vocab_rows: int, *, batch: int, source: int, target: int
) -> int:
    """Return the bytes that the backward pass needs at least, of the rows computed at a time.

    Each sub-layer keeps its input, its output and their norm, in float32. Attention weights, hidden
    layers, logits and probabilities count two bytes a number. TensorFlow's copies come on top.
    """
    h = hparams
    if h.max_tokens_per_device:
        batch = max(1, min(batch, h.max_tokens_per_device // max(source, target)))
    states = 3 * h.d_model * (2 * h.num_encoder_layers * source + 3 * h.num_decoder_layers * target)
    encoder = h.num_heads * source * keys_of_a_query(h, source, causal=False) + source * h.d_ff
    num_keys = keys_of_a_query(h, target, causal=True) + source
    decoder = h.num_heads * target * num_keys + target * h.d_ff
    others = h.num_encoder_layers * encoder + h.num_decoder_layers * decoder
    others += 2 * target * vocab_rows
    return batch * (4 * states + 2 * others)


def evaluation_bytes(hparams: config.HParams, vocab_rows: int, *, source: int, target: int) -> int:
    """Return the bytes that evaluating one pair needs at least: the scores and weights of one
    attention, or the logits; two bytes a number."""
    attention = max(
        source * keys_of_a_query(hparams, source, causal=False),
        target * keys_of_a_query(hparams, target, causal=True),
        target * source,
    )
    return 2 * max(2 * hparams.num_heads * attention, target * vocab_rows)


def keys_of_a_query(hparams: config.HParams, length: int, *, causal: bool) -> int:
    """Return how many keys self-attention compares with each query: all of `length`, or in
    restricted self-attention those of the query's block and of its neighbours."""
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
