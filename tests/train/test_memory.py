"""The memory that training needs, as shapes say it, and what a machine or container has."""

import dataclasses
import types
from typing import Any

import numpy as np
import pytest

from t2t_lite import config, errors, machine, registry
from t2t_lite.data import pipeline, token_batches
from t2t_lite.train import cost, describe, memory


def _data(*lengths) -> Any:
    """Return data whose dev split has these rows (source, target, pairs)."""
    table = np.array(lengths, np.int64).reshape(-1, 3)
    return types.SimpleNamespace(lengths=lambda split: table)


def test_memory_by_hand():
    hparams = config.HParams(
        d_model=2, d_ff=3, num_heads=1, d_k=1, d_v=1, num_encoder_layers=1, num_decoder_layers=2
    )
    described = describe.describe(hparams, 8)
    assert described.weight_bytes == 16 * described.parameters
    sizes = {"batch": 4, "source": 5, "target": 6}
    batch = cost.activation_bytes(hparams, 8, **sizes)
    # Of one pair: states 3 * 2 * (2 * 5 + 3 * 2 * 6); encoder 25 + 5 * 3, decoder 6 * 11 + 6 * 3,
    # twice, and logits 2 * 6 * 8.
    assert batch == 4 * (4 * 276 + 2 * (40 + 2 * 84 + 96))
    parts = dataclasses.replace(hparams, max_tokens_per_device=12)  # two pairs
    assert cost.activation_bytes(parts, 8, **sizes) == batch // 2


def test_a_gpu_computes_what_its_memory_holds():
    hparams = registry.hparams("transformer_base")  # 25,000 tokens a step
    tokens = [
        memory.tokens_per_device(hparams, 37_000, replicas=replicas, memory=gib * 2**30)
        for gib, replicas in ((141, 1), (24, 1), (24, 2), (8, 8), (1, 1))
    ]
    assert tokens[0] == tokens[2] == tokens[3] == 0
    # Under XLA on a processor 25,000 tokens took 19 GiB, beside 1 of weights, gradients, moments.
    assert 15_000 < tokens[1] < 24_000
    assert tokens[4] == 1
    limited = dataclasses.replace(hparams, max_tokens_per_device=9)
    assert memory.tokens_per_device(limited, 37_000, replicas=1, memory=2**40) == 9


def test_a_dev_text_that_no_memory_holds_is_refused(monkeypatch):
    hparams = config.HParams(num_heads=4, num_encoder_layers=1, num_decoder_layers=1)
    assert cost.evaluation_bytes(hparams, 8, source=26_112, target=5) == 16 * 26_112**2
    assert cost.evaluation_bytes(hparams, 9_000, source=5, target=6) == 2 * 6 * 9_000
    shape = token_batches.Shape(8, 10, 10)
    monkeypatch.setattr(pipeline, "bucket_shapes", lambda *_, **__: [shape])
    monkeypatch.setattr(machine, "memory", lambda: 10**10)
    memory.check(_data([2, 3, 9], [10, 10, 9]), hparams=hparams, vocab_size=8)
    with pytest.raises(errors.UserError, match="longest texts have 26,112 source and 5 "):
        memory.check(_data([2, 3, 9], [26_112, 5, 1]), hparams=hparams, vocab_size=8)


def test_each_of_several_workers_needs_its_share(monkeypatch):
    hparams = config.HParams(num_encoder_layers=1, num_decoder_layers=1)
    shape = token_batches.Shape(800, 25, 25)
    monkeypatch.setattr(pipeline, "bucket_shapes", lambda *_, **__: [shape])
    weights = describe.describe(hparams, 8).weight_bytes
    whole, quarter = (
        weights + cost.activation_bytes(hparams, 8, batch=batch, source=25, target=25)
        for batch in (800, 200)
    )
    monkeypatch.setattr(machine, "memory", lambda: (whole + quarter) // 2)
    memory.check(_data(), hparams=hparams, vocab_size=8, workers=4)
    with pytest.raises(errors.UserError, match=r"training .* needs at least"):
        memory.check(_data(), hparams=hparams, vocab_size=8)
