"""A tiny corpus and how to train on it: what tests of the trainer share."""

import pathlib
import subprocess
import sys
import time

from t2t_lite import registry
from t2t_lite.bin import trainer
from t2t_lite.data import generate

PATIENCE = 300  # seconds: the machine may be busy
HPARAMS = (
    "d_model=16,d_ff=32,num_heads=2,d_k=8,d_v=8,num_encoder_layers=1,num_decoder_layers=1,"
    "batch_tokens=512,max_buckets=1,warmup_steps=10"
)


def arguments(data: pathlib.Path, output: pathlib.Path, *more: str) -> list[str]:
    """Return the command that trains on `data`; `more` may say otherwise."""
    return [
        "t2t-lite-trainer",
        "--problem=parallel_text",
        f"--data_dir={data}",
        f"--output_dir={output}",
        "--hparams_set=transformer_toy",
        f"--hparams={HPARAMS}",
        "--precision=float32",
        "--eval_sentences=0",
        *more,
    ]


def train(data: pathlib.Path, output: pathlib.Path, *more: str) -> int:
    """Train by the command; return its status."""
    return trainer.main(arguments(data, output, *more))


def wait_for(path: pathlib.Path, *processes: subprocess.Popen) -> None:
    """Wait until running processes have written a file; fail if one of them ends."""
    deadline = time.monotonic() + PATIENCE
    while not path.exists():
        ended = [process for process in processes if process.poll() is not None]
        assert not ended, ended[0].stdout and ended[0].stdout.read()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def command(arguments: list[str]) -> list[str]:
    """Return what starts a process of the trainer."""
    return [sys.executable, "-m", "t2t_lite.bin.trainer", *arguments[1:]]


def generate_data(folder: pathlib.Path, *, backwards: bool = False) -> pathlib.Path:
    """Make a data_dir of `parallel_text`: 300 pairs of the toy grammar, English to German.

    Read backwards they are other text with as many lines and a vocabulary of the same size.
    """
    samples = registry.problem("toy_ende").samples("train")
    for split, count in (("train", 300), ("dev", 20), ("test", 20)):
        pairs = [next(samples) for _ in range(count)]
        for side, key in (("source", "inputs"), ("target", "targets")):
            text = "\n".join(pair[key] for pair in pairs)
            (folder / f"{split}.{side}").write_text(text[:: -1 if backwards else 1] + "\n", "utf-8")
    generate.generate(
        registry.problem("parallel_text"),
        data_dir=folder / "data",
        raw_dir=folder,
        vocab_size=600,
        num_workers=1,
    )
    return folder / "data"
