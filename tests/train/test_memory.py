"""The memory that training needs, as shapes say it, and what a machine or container has."""

import dataclasses
import os

from t2t_lite import config
from t2t_lite.train import cost, memory


def test_memory_by_hand():
    hparams = config.HParams(
        d_model=2, d_ff=3, num_heads=1, d_k=1, d_v=1, num_encoder_layers=1, num_decoder_layers=2
    )
    weights, batch = memory.needed(hparams, 8, batch=4, source=5, target=6)
    assert weights == 16 * cost.num_parameters(hparams, 8)
    # Of one pair: states 3 * 2 * (2 * 5 + 3 * 2 * 6); encoder 25 + 5 * 3, decoder 6 * 11 + 6 * 3,
    # twice, and logits 2 * 6 * 8.
    assert batch == 4 * (4 * 276 + 2 * (40 + 2 * 84 + 96))
    parts = dataclasses.replace(hparams, max_tokens_per_device=12)  # two pairs
    assert memory.needed(parts, 8, batch=4, source=5, target=6) == (weights, batch // 2)


def test_memory_is_what_is_free_within_a_containers_limit(monkeypatch, tmp_path):
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 1 << 24 < memory.available() <= whole
    file = tmp_path / "limit"
    meminfo, limit = list(memory._MEMORY_LIMITS.values())[:2]
    for number, text, expected in [
        (meminfo, "MemTotal:  900 kB\nMemAvailable:     7 kB\n", 7 << 10),
        (limit, "1000000\n", 1_000_000),
        (limit, "max\n", whole),
        (limit, f"{1 << 63}\n", whole),
    ]:
        file.write_text(text)
        monkeypatch.setattr(memory, "_MEMORY_LIMITS", {str(file): number})
        assert memory.available() == expected
