"""How a problem's data are made (no TensorFlow: `--help` shows these at once)."""

import dataclasses

from t2t_lite import fields


@dataclasses.dataclass(frozen=True, kw_only=True)
class GeneratorOptions:
    """How `generate.generate` makes data; which pairs it drops is in text/cleaning.py."""

    vocab_size: int | None = fields.option(
        None, "Entries of the vocabulary. Default: the problem's own number.", at_least=1
    )
    vocab_from: str | None = fields.option(
        None,
        "An output_dir, whose vocabulary is taken instead of learning one: to train it further, "
        "as an imported model.",
    )
    num_workers: int | None = fields.option(
        None, "Processes. Default: as many as there are cores.", at_least=1
    )
    beam_pipeline_options: str | None = fields.option(
        None,
        "Make the data on Apache Beam, with these of its options: "
        "runner=FlinkRunner,parallelism=8. The data are the same. All its workers must see the "
        "folders.",
    )
    random_seed: int = fields.option(0, "Seed of the shuffle and of samples.")
    overwrite: bool = fields.option(False, "Replace data that are already there.")
    verify: bool = fields.option(
        False, "Check finished data by every file's hash, not only by its size."
    )

    def __post_init__(self) -> None:
        fields.check(self)
