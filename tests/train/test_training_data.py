"""What a training reads, it reads once."""

import tiny_training

from t2t_lite.bin import trainer
from t2t_lite.data import buckets, manifest


def test_a_training_reads_the_manifest_and_chooses_buckets_once(tiny_data, tmp_path, monkeypatch):
    calls = []

    def count(function):
        def counted(*args, **kwargs):
            calls.append(function.__name__)
            return function(*args, **kwargs)

        return counted

    monkeypatch.setattr(manifest, "read", count(manifest.read))
    monkeypatch.setattr(buckets, "choose", count(buckets.choose))
    flags = ["--train_steps=3", "--eval_frequency=1", "--eval_sentences=2"]
    assert trainer.main(tiny_training.arguments(tiny_data, tmp_path / "run", *flags)) == 0
    assert sorted(calls) == ["choose", "read"]
