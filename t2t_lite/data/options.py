"""How a problem's data are made (no TensorFlow: `--help` shows these at once)."""

import dataclasses

from t2t_lite import fields


@dataclasses.dataclass(frozen=True, kw_only=True)
class GeneratorOptions:
    """How `generate.generate` makes data; which pairs it drops is in text/cleaning.py."""

    vocab_size: int | None = fields.option(
        None, "Entries of the vocabulary; the problem's own unless given.", at_least=1
    )
    num_workers: int | None = fields.option(
        None, "Processes; as many as there are cores unless given.", at_least=1
    )
    beam_pipeline_options: str | None = fields.option(
        None,
        "Make the data on Apache Beam, with these options of it: runner=FlinkRunner,parallelism=8; "
        "the same bytes. All its workers must see the folders.",
    )
    random_seed: int = fields.option(0, "Seed of the shuffle and of samples.")
    overwrite: bool = fields.option(False, "Make the data anew where there are some.")
    verify: bool = fields.option(
        False, "Of finished data compare every file's hash with the manifest, not only its size."
    )

    def __post_init__(self) -> None:
        fields.check(self)
