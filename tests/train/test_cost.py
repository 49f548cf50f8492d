"""What training costs: weights as the model has them, memory as shapes say it."""

import dataclasses

import pytest
import tiny_run

from t2t_lite import config, registry
from t2t_lite.model import transformer
from t2t_lite.train import cost


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"d_k": 6, "d_v": 10, "num_heads": 3},
        {"pre_norm": True, "num_encoder_layers": 3, "num_decoder_layers": 2},
        {"position_encoding": "learned", "max_length": 50, "d_model": 17},
    ],
)
def test_parameters_are_those_of_the_model(changes):
    hparams = dataclasses.replace(tiny_run.HPARAMS, **changes)
    model = transformer.Transformer(hparams, 296)
    assert cost.num_parameters(hparams, 296) == model.count_params()


def test_parameters_are_those_of_table_3():
    assert round(cost.num_parameters(registry.hparams("transformer_big"), 37_000), -6) == 214e6


def test_memory_by_hand():
    hparams = config.HParams(
        d_model=2, d_ff=3, num_heads=1, d_k=1, d_v=1, num_encoder_layers=1, num_decoder_layers=2
    )
    weights, batch = cost.memory(hparams, 8, batch=4, source=5, target=6)
    assert weights == 16 * cost.num_parameters(hparams, 8)
    # Of one pair: states 3 * 2 * (2 * 5 + 3 * 2 * 6); encoder 25 + 5 * 3, decoder 6 * 11 + 6 * 3,
    # twice, and logits 2 * 6 * 8.
    assert batch == 4 * (4 * 276 + 2 * (40 + 2 * 84 + 96))
    parts = dataclasses.replace(hparams, max_tokens_per_device=12)  # two pairs
    assert cost.memory(parts, 8, batch=4, source=5, target=6) == (weights, batch // 2)
