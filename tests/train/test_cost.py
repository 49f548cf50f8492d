"""What training costs: weights as the model has them."""

import dataclasses

import pytest
import tiny_run

from t2t_lite import registry
from t2t_lite.model import transformer
from t2t_lite.train import cost


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"d_k": 6, "d_v": 10, "num_heads": 3},
        {"pre_norm": True, "num_encoder_layers": 3, "num_decoder_layers": 2},
        {"position_encoding": "learned", "max_length": 50, "d_model": 17},
        {"attention_function": "additive", "attention_window": 4},
        {"parallel_heads": 4},
        {"embeddings": "separate", "source_vocab_size": 51},
    ],
)
def test_parameters_are_those_of_the_model(changes):
    hparams = dataclasses.replace(tiny_run.HPARAMS, **changes)
    model = transformer.Transformer(hparams, 296)
    assert cost.num_parameters(hparams, 296) == model.count_params()


def test_parameters_are_those_of_table_3():
    assert round(cost.num_parameters(registry.hparams("transformer_big"), 37_000), -6) == 214e6
