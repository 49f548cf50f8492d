"""Make a problem's training data: shards, vocabulary and manifest in --data_dir.

    t2t-lite-datagen --problem=toy_ende --data_dir=data
    t2t-lite-datagen --problem=parallel_text --raw_dir=my_corpus --data_dir=data

Run again after it was interrupted, it goes on; run again when all is done, it changes nothing.
"""

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from absl import flags

from t2t_lite import progress, registry
from t2t_lite.bin import command

if TYPE_CHECKING:
    from t2t_lite.data import generate

FLAGS = command.new_flags()
flags.DEFINE_string("problem", None, "Name of the problem.", flag_values=FLAGS)
flags.DEFINE_string("data_dir", None, "Where the data go.", flag_values=FLAGS)
flags.DEFINE_string(
    "raw_dir", None, "Folder with the raw files; toy problems need none.", flag_values=FLAGS
)
flags.DEFINE_string(
    "tmp_dir", None, "Folder for unfinished work and downloads; within data_dir unless given.",
    flag_values=FLAGS,
)  # fmt: skip
flags.DEFINE_integer(
    "vocab_size", None, "Entries of the vocabulary; the problem's own unless given.",
    lower_bound=1, flag_values=FLAGS,
)  # fmt: skip
flags.DEFINE_integer(
    "num_workers", None, "Processes; as many as there are cores unless given.",
    lower_bound=1, flag_values=FLAGS,
)  # fmt: skip
flags.DEFINE_integer("random_seed", 0, "Seed of the shuffle and of samples.", flag_values=FLAGS)
flags.DEFINE_bool("drop_empty", True, "Drop pairs with an empty side.", flag_values=FLAGS)
flags.DEFINE_integer(
    "max_length", 0, "Drop pairs with more subwords than this on a side (0: none).",
    lower_bound=0, flag_values=FLAGS,
)  # fmt: skip
flags.DEFINE_float(
    "max_length_ratio", 0.0, "Drop pairs with a side this many times longer (0: none).",
    lower_bound=0.0, flag_values=FLAGS,
)  # fmt: skip
flags.DEFINE_bool(
    "drop_duplicates", False, "Drop all but the first of equal pairs.", flag_values=FLAGS
)
flags.DEFINE_bool("overwrite", False, "Make the data anew where there are some.", flag_values=FLAGS)


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    return command.run(_generate, FLAGS, doc=__doc__, required=["problem", "data_dir"], argv=argv)


def _generate() -> None:
    from t2t_lite.data import generate
    from t2t_lite.text import cleaning

    problem = registry.problem(FLAGS.problem)
    with _stages() as show:
        made = generate.generate(
            problem,
            data_dir=FLAGS.data_dir,
            raw_dir=FLAGS.raw_dir,
            tmp_dir=FLAGS.tmp_dir,
            vocab_size=FLAGS.vocab_size,
            num_workers=FLAGS.num_workers,
            random_seed=FLAGS.random_seed,
            cleaning=cleaning.Cleaning(
                drop_empty=FLAGS.drop_empty,
                max_length=FLAGS.max_length,
                max_length_ratio=FLAGS.max_length_ratio,
                drop_duplicates=FLAGS.drop_duplicates,
            ),
            overwrite=FLAGS.overwrite,
            progress=show,
        )
    for line in _summary(made):
        print(line)


@contextlib.contextmanager
def _stages() -> Iterator["generate.Progress"]:
    """Yield what shows the stages of the work one after the other."""
    with contextlib.ExitStack() as stack:
        shown: dict[str, progress.Progress] = {}

        def show(stage: str, done: int, total: int) -> None:
            if stage not in shown:
                stack.close()  # the stage before
                begun = progress.Progress(stage, stream=sys.stderr, announce=True)
                shown[stage] = stack.enter_context(begun)
            shown[stage].update(done, total)

        yield show


def _summary(made) -> list[str]:
    """Return what a user wants to know about the finished data."""
    lines = []
    for split, entry in made.splits.items():
        line = (
            f"{split}: {entry['pairs']:,} pairs, {entry['source_tokens']:,} source and "
            f"{entry['target_tokens']:,} target tokens, {len(entry['shards'])} shards"
        )
        dropped = {reason: n for reason, n in entry.get("dropped", {}).items() if n}
        if dropped:
            line += ", dropped " + ", ".join(f"{n:,} {reason}" for reason, n in dropped.items())
        if entry.get("not_utf8"):
            line += f", {entry['not_utf8']:,} with bytes that are not UTF-8 (replaced)"
        lines.append(line)
    fit = made.vocabulary
    line = (
        f"vocabulary: {fit['size']:,} entries, {fit['subwords_per_word']:.2f} subwords a word, "
        f"{100 * fit['byte_subwords_share']:.3g} % of them bytes"
    )
    if fit["size"] < made.options["vocab_size"]:
        line += f" (the text supports no more; {made.options['vocab_size']:,} were asked for)"
    return [*lines, line, f"complete: {made.data_dir}"]


if __name__ == "__main__":
    sys.exit(main())
