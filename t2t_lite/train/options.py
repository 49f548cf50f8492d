"""How one call of the trainer runs (no TensorFlow: `--help` shows these at once)."""

import dataclasses
from typing import Literal

from t2t_lite import errors, fields


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainerOptions:
    """How one call of the trainer runs; the model and its recipe are in HParams."""

    eval_frequency: int = fields.option(
        1000,
        "Steps between evaluations on the dev split. output_dir/best keeps the best weights.",
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
        600, "Seconds between checkpoints (the paper: 10 minutes).", at_least=0
    )
    save_checkpoints_steps: int = fields.option(
        0, "Steps between checkpoints. 0: use --save_checkpoints_secs.", at_least=0
    )
    keep_checkpoint_max: int = fields.option(20, "How many recent checkpoints to keep.", at_least=1)
    warm_start_from: str | None = fields.option(
        None,
        "An output_dir or checkpoint: a new run starts from its weights, with a new optimizer. "
        "Sizes and vocabulary must be the same.",
    )
    max_skipped_steps: int = fields.option(
        0, "How many steps with a NaN or infinite gradient to skip before stopping.", at_least=0
    )
    profile: bool = fields.option(False, "Profile ten steps for TensorBoard.")
    strategy: Literal["auto", "one_device", "mirrored", "multi_worker"] = fields.option(
        "auto",
        "Which devices to use. auto: all GPUs of this machine, or all workers if TF_CONFIG names "
        "them. one_device: the first GPU or the processor. mirrored: all GPUs of this machine. "
        "multi_worker: the workers of TF_CONFIG.",
    )
    xla: Literal["auto", "on", "off"] = fields.option(
        "auto", "Compile training steps with XLA, TensorFlow's compiler. auto: on GPUs."
    )
    precision: Literal["auto", "float32", "bfloat16"] = fields.option(
        "auto", "Precision of matrix products. auto: bfloat16 where the hardware has it."
    )
    tf32: bool = fields.option(
        True,
        "Faster, slightly less exact float32 products on GPUs from A100 on. --notf32: exact.",
    )
    random_seed: int = fields.option(
        1, "Random seed for weights, data order and dropout.", at_least=0
    )
    deterministic: bool = fields.option(
        False,
        "Make GPUs add in a fixed order, so that each run gives the same bits. Slower. Processors "
        "always do so.",
    )

    def __post_init__(self) -> None:
        fields.check(self)
        usual_secs = TrainerOptions.save_checkpoints_secs
        if self.save_checkpoints_steps and self.save_checkpoints_secs != usual_secs:
            raise errors.UserError(
                "--save_checkpoints_steps and --save_checkpoints_secs: give one of the two"
            )
