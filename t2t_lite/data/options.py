"""How a problem's data are made (no TensorFlow: `--help` shows these at once)."""

import dataclasses

from t2t_lite import errors, fields


@dataclasses.dataclass(frozen=True, kw_only=True)
class GeneratorOptions:
    """How `generate.generate` makes data; which pairs it drops is in text/cleaning.py."""

    vocab_size: int | None = fields.option(
        None, "Number of entries of the vocabulary. Default: the problem's.", at_least=1
    )
    vocab_from: str | None = fields.option(
        None,
        "An output_dir. Use its vocabulary instead of learning one: to train its model further.",
    )
    num_workers: int | None = fields.option(
        None, "Number of processes. Default: the number of cores.", at_least=1
    )
    beam_pipeline_options: str | None = fields.option(
        None,
        "Make the same data on Apache Beam, with these pipeline options, e.g. "
        "runner=FlinkRunner,parallelism=8. All workers must see the folders.",
    )
    random_seed: int = fields.option(
        0, "Random seed for shuffling and for the vocabulary's sample."
    )
    overwrite: bool = fields.option(False, "Replace existing data.")
    verify: bool = fields.option(
        False, "Check every file's hash, not only its size, if the data exist already."
    )

    def __post_init__(self) -> None:
        fields.check(self)
        if self.vocab_from and self.vocab_size is not None:
            raise errors.UserError(
                "--vocab_size is that of --vocab_from's vocabulary: leave one of the two out"
            )
