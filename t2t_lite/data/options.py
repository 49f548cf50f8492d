"""How a problem's data are made (no TensorFlow: `--help` shows these at once)."""

import dataclasses
from typing import Any

from t2t_lite import errors, fields

_OF_VOCABULARY = ("character_coverage", "user_defined_symbols", "split_digits")


@dataclasses.dataclass(frozen=True, kw_only=True)
class GeneratorOptions:
    """How `generate.generate` makes data; which pairs it drops is in text/cleaning.py."""

    vocab_size: int | None = fields.option(
        None,
        "Number of entries of the vocabulary. Default: the problem's, 32,000 for parallel_text. "
        "It is in the name of the vocabulary's file, vocab.PROBLEM.SIZE.model.",
        at_least=1,
    )
    vocab_from: str | None = fields.option(
        None,
        "Use the vocabulary of this output_dir, of t2t-lite-trainer or t2t-lite-import, instead of "
        "learning one, to train its model further.",
    )
    character_coverage: float = fields.option(
        0.99995,
        "Share of the text's characters that the vocabulary has; rarer ones are spelt in bytes. "
        "Use 0.9995 for languages with thousands of characters, such as Chinese and Japanese.",
        above=0,
        at_most=1,
    )
    user_defined_symbols: str = fields.option(
        "",
        "Symbols that are never split into subwords, separated by commas, e.g. placeholders and "
        "language labels: --user_defined_symbols='<nl>,<2de>'.",
    )
    split_digits: bool = fields.option(False, "Make each digit a subword of its own.")
    columns: str = fields.option(
        "",
        "Source and target column of tables (.tsv, .csv, .jsonl) that have more than two, by "
        "number from 1, or by name: 3,4 or en,de.",
    )
    num_workers: int | None = fields.option(
        None, "Number of processes. Default: the number of cores.", at_least=1
    )
    beam_pipeline_options: str | None = fields.option(
        None,
        "Make the same data on Apache Beam, with these pipeline options, e.g. "
        "runner=FlinkRunner,parallelism=8. All workers must read --raw_dir, and read and write "
        "--data_dir and --tmp_dir, under the same paths.",
    )
    random_seed: int = fields.option(
        0, "Random seed for shuffling and for the text sample that the vocabulary is learnt from."
    )
    overwrite: bool = fields.option(False, "Replace existing data.")
    verify: bool = fields.option(
        False, "Check every file's hash, not only its size, if the data exist already."
    )

    def __post_init__(self) -> None:
        fields.check(self)
        if self.beam_pipeline_options is not None and self.num_workers:
            raise errors.UserError(
                "--num_workers is for processes of this machine: give Beam's number of workers in "
                "--beam_pipeline_options"
            )
        if self.overwrite and self.verify:
            raise errors.UserError(
                "--verify checks the data that --overwrite replaces: leave one out"
            )
        asked = [name for name in ("vocab_size", *_OF_VOCABULARY) if self._is_changed(name)]
        if self.vocab_from and asked:
            raise errors.UserError(
                f"--{asked[0]} is that of --vocab_from's vocabulary: leave one of the two out"
            )

    def symbols(self) -> list[str]:
        """Return `user_defined_symbols` one by one."""
        return [symbol for symbol in self.user_defined_symbols.split(",") if symbol]

    def not_default(self) -> dict[str, Any]:
        """Return the options, of those that change the data, that are not the defaults."""
        names = [*_OF_VOCABULARY, "columns"]
        return {name: getattr(self, name) for name in names if self._is_changed(name)}

    def _is_changed(self, name: str) -> bool:
        return getattr(self, name) != fields.by_name(type(self))[name].default
