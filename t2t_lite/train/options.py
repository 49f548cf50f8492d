"""How one call of the trainer runs (no TensorFlow: `--help` shows these at once)."""

import dataclasses
from typing import Literal

from t2t_lite import fields


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainerOptions:
    """How one call of the trainer runs; the model and its recipe are in HParams."""

    eval_frequency: int = fields.option(1000, "Steps between evaluations.", at_least=1)
    eval_sentences: int = fields.option(
        500, "Dev sentences that each evaluation decodes for its score; 0: none.", at_least=0
    )
    early_stopping_patience: int = fields.option(
        0, "Evaluations without a better dev score after which to stop; 0: never.", at_least=0
    )
    save_checkpoints_secs: float = fields.option(
        600, "Seconds between checkpoints; the paper wrote them every 10 minutes.", at_least=0
    )
    save_checkpoints_steps: int = fields.option(
        0, "Steps between checkpoints, used instead of seconds if it is not 0.", at_least=0
    )
    keep_checkpoint_max: int = fields.option(20, "How many checkpoints stay.", at_least=1)
    warm_start_from: str | None = fields.option(
        None, "An output_dir or checkpoint whose weights a new run takes."
    )
    max_skipped_steps: int = fields.option(
        0, "How many steps without a finite gradient to skip before stopping.", at_least=0
    )
    profile: bool = fields.option(False, "Write a TensorFlow profile of ten steps.")
    strategy: Literal["auto", "one_device", "mirrored", "multi_worker"] = fields.option(
        "auto", "How to use several devices."
    )
    xla: Literal["auto", "on", "off"] = fields.option("auto", "Compile; auto: on GPUs.")
    precision: Literal["auto", "float32", "bfloat16"] = fields.option(
        "auto", "Of the matrix products; auto: bfloat16 where the hardware has it."
    )
    tf32: bool = fields.option(
        True,
        "GPUs of compute capability 8 and above multiply float32 with 10 bits of mantissa, several "
        "times as fast as with all 23.",
    )
    random_seed: int = fields.option(1, "Of weights, data order and dropout.", at_least=0)
    deterministic: bool = fields.option(
        False,
        "Make GPUs add numbers in a fixed order, so that each run gives the same bits. This is "
        "slower; a CPU does it anyway.",
    )

    def __post_init__(self) -> None:
        fields.check(self)
