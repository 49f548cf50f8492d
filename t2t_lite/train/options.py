"""How one call of the trainer runs (no TensorFlow: `--help` shows these at once)."""

import dataclasses
from typing import Literal

from t2t_lite import errors, fields


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainerOptions:
    """How one call of the trainer runs; the model and its recipe are in HParams."""

    eval_frequency: int = fields.option(
        1000,
        "Steps between evaluations on the dev split. output_dir/best keeps the weights with the "
        "best score: BLEU, for parsers F1, or with --eval_sentences=0 the loss.",
        at_least=1,
    )
    eval_sentences: int = fields.option(
        500, "Dev sentences that each evaluation decodes for a score. 0: only the loss.", at_least=0
    )
    early_stopping_patience: int = fields.option(
        0,
        "Stop after this many evaluations without a better dev score (one machine only). 0: never.",
        at_least=0,
    )
    save_checkpoints_secs: float = fields.option(
        600,
        "Seconds between checkpoints, 10 minutes in the paper. Not together with "
        "--save_checkpoints_steps.",
        at_least=0,
    )
    save_checkpoints_steps: int = fields.option(
        0, "Steps between checkpoints. 0: --save_checkpoints_secs decides.", at_least=0
    )
    keep_checkpoint_max: int = fields.option(20, "How many recent checkpoints to keep.", at_least=1)
    warm_start_from: str | None = fields.option(
        None,
        "An output_dir, whose newest checkpoint is used, or a checkpoint: a new training starts "
        "from its weights, with a new optimizer. The vocabulary must be the same; weights of "
        "other names or sizes are newly initialised.",
    )
    max_skipped_steps: int = fields.option(
        0,
        "How many steps with a NaN or infinite gradient to skip in this call, in all. One more "
        "stops the training; 0: the first one does.",
        at_least=0,
    )
    profile: bool = fields.option(False, "Write a profile of ten steps for TensorBoard.")
    strategy: Literal["auto", "one_device", "mirrored", "multi_worker"] = fields.option(
        "auto",
        "Which devices to use. auto: all GPUs of this machine, or all workers if TF_CONFIG names "
        "them. one_device: the first GPU or the CPU. mirrored: all GPUs of this machine. "
        "multi_worker: the workers of TF_CONFIG.",
    )
    xla: Literal["auto", "on", "off"] = fields.option(
        "auto", "Compile training steps with XLA, TensorFlow's compiler. auto: on GPUs."
    )
    precision: Literal["auto", "float32", "bfloat16"] = fields.option(
        "auto",
        "Precision of matrix products. auto: bfloat16 where the hardware has it; a resumed "
        "training keeps its own.",
    )
    tf32: bool = fields.option(
        True,
        "Use TF32 for float32 matrix products on GPUs from A100 on: faster, with 10 bits of "
        "precision instead of 23.",
    )
    random_seed: int = fields.option(
        1, "Random seed for weights, data order and dropout.", at_least=0
    )
    deterministic: bool = fields.option(
        False,
        "Make GPUs add in a fixed order, so that the same training gives the same bits again. "
        "Slower. CPUs do so always, if the number of cores is the same.",
    )

    def __post_init__(self) -> None:
        fields.check(self)
        usual_secs = TrainerOptions.save_checkpoints_secs
        if self.save_checkpoints_steps and self.save_checkpoints_secs != usual_secs:
            raise errors.UserError(
                "--save_checkpoints_steps and --save_checkpoints_secs: give one of the two"
            )
