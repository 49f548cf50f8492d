"""Table 3 of the paper: sizes, parameter counts, peak learning rates."""

import pytest

from t2t_lite import registry
from t2t_lite.train import describe, schedule

# Parameters in millions as printed and as counted. With a vocabulary of 41,000 all rows come out
# within 0.52 M of what is printed, except big, whose 213 needs about 36,000.
TABLE_3 = {
    "transformer_base": (65, 65.09),
    "transformer_base_b1": (58, 58.02),
    "transformer_base_b2": (60, 60.38),
    "transformer_base_c1": (36, 35.69),
    "transformer_base_c2": (50, 50.39),
    "transformer_base_c3": (80, 79.79),
    "transformer_base_c4": (28, 27.84),
    "transformer_base_c5": (168, 167.91),
    "transformer_base_c6": (53, 52.50),
    "transformer_base_c7": (90, 90.28),
}


def parameters(hparams, vocab_size):
    """Count by hand: attention without biases, feed-forward with, norms with scale and bias."""
    attention = hparams.d_model * hparams.num_heads * 2 * (hparams.d_k + hparams.d_v)
    feed_forward = 2 * hparams.d_model * hparams.d_ff + hparams.d_ff + hparams.d_model
    norm = 2 * hparams.d_model
    encoder = hparams.num_encoder_layers * (attention + feed_forward + 2 * norm)
    decoder = hparams.num_decoder_layers * (2 * attention + feed_forward + 3 * norm)
    return vocab_size * hparams.d_model + encoder + decoder


@pytest.mark.parametrize(("name", "printed", "computed"), [(n, *v) for n, v in TABLE_3.items()])
def test_parameters_are_those_of_table_3(name, printed, computed):
    hparams = registry.hparams(name)
    assert describe.describe(hparams, 41_000).parameters == parameters(hparams, 41_000)
    count = parameters(hparams, 41_000) / 1e6
    assert count == pytest.approx(printed, abs=0.52)
    assert count == pytest.approx(computed, abs=0.005)  # d_ff 1,100 would still round to c6's 53


def test_big_has_213_million_at_36000():
    assert parameters(registry.hparams("transformer_big"), 36_000) / 1e6 == pytest.approx(
        213, 0.003
    )
    assert parameters(registry.hparams("transformer_big"), 37_000) / 1e6 == pytest.approx(
        214.17, 1e-4
    )


def test_every_row_of_table_3_is_a_set():
    rows = ["a1", "a2", "a3", "a4", "b1", "b2", "c1", "c2", "c3", "c4", "c5", "c6", "c7"]
    rows += ["d1", "d2", "d3", "d4", "e"]
    sets = registry.hparams_sets()
    assert {f"transformer_base_{row}" for row in rows} <= sets.keys()


@pytest.mark.parametrize(
    ("name", "step", "peak"),
    [
        ("transformer_base", 4000, 6.99e-4),
        ("transformer_big", 4000, 4.94e-4),
        ("transformer_tiny", 2000, 5e-3),
        ("transformer_parsing_4layer", 16_000, 0.5 * (1024 * 16_000) ** -0.5),
        ("transformer_parsing_4layer_semisupervised", 4_000, 0.5 * (1024 * 4_000) ** -0.5),
        ("transformer_parsing_small", 1_000, 3e-3),
        ("transformer_parsing_toy", 400, 3e-3),
    ],
)
def test_peak_learning_rate(name, step, peak):
    hparams = registry.hparams(name)

    def rate(step):
        return schedule.learning_rate(
            step,
            d_model=hparams.d_model,
            warmup_steps=hparams.warmup_steps,
            scale=hparams.learning_rate_scale,
        )

    assert rate(step) == pytest.approx(peak, rel=1e-3)
    assert rate(step) > max(rate(step - 1), rate(step + 1))
    assert hparams.train_steps > step
