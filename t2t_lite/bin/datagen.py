"""Make a problem's training data: shards, vocabulary and manifest in --data_dir.

  t2t-lite-datagen --problem=toy_ende --data_dir=data
  t2t-lite-datagen --problem=parallel_text --raw_dir=my_corpus --data_dir=data

To resume an interrupted command, run it again. If the data are complete, nothing changes.
"""

import contextlib
import dataclasses
import pathlib
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from t2t_lite import errors, progress, registry
from t2t_lite.bin import command
from t2t_lite.data import options
from t2t_lite.text import cleaning

if TYPE_CHECKING:
    from t2t_lite.data import data_dir, engine
    from t2t_lite.data import problem as problems

_MAX_SHOWN = 10  # files that were not read
FLAGS = command.new_flags()
command.define_strings(
    FLAGS,
    problem="Name of the problem, e.g. toy_ende; --registry_help lists all.",
    data_dir="Where to write the data: a folder, or an address such as gs://bucket/data.",
    raw_dir="Folder, or address, with the raw text. --registry_help names each problem's files. "
    "parallel_text reads train.*, dev.* and, if there, test.*, any number of each: two "
    "text files, train.source and train.target or train.en-de.en and train.en-de.de "
    "(source-target), or one .tmx, .zip, .tsv, .csv or .jsonl such as train.en-de.tmx. "
    f"{command.COMPRESSED} The toy problems need no --raw_dir, and the wmt14 problems "
    "download without it.",
    tmp_dir="Folder for unfinished work and for downloads, which are kept. Default: in data_dir.",
)
command.define_flags(FLAGS, options.GeneratorOptions)
command.define_flags(FLAGS, cleaning.Cleaning)
REQUIRED = command.require(FLAGS, "problem", "data_dir")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    return command.run(_generate, FLAGS, doc=__doc__, required=REQUIRED, argv=argv)


def _generate() -> None:
    from t2t_lite.data import generate, manifest, remote

    problem = registry.problem(FLAGS.problem)
    data_dir = remote.local(FLAGS.data_dir, FLAGS.tmp_dir, may_be_new=True)
    raw_dir = FLAGS.raw_dir and remote.local(FLAGS.raw_dir, FLAGS.tmp_dir)
    file = pathlib.Path(data_dir, manifest.file_name(problem.base_name))
    was_there = file.exists() and not FLAGS.overwrite
    with _stages() as show:
        made = generate.generate(
            problem,
            data_dir=data_dir,
            raw_dir=raw_dir,
            tmp_dir=FLAGS.tmp_dir,
            cleaning=command.options(FLAGS, cleaning.Cleaning),
            progress=show,
            **dataclasses.asdict(command.options(FLAGS, options.GeneratorOptions)),
        )
    if was_there:
        print(f"{file} exists already: --overwrite replaces the data", file=sys.stderr)
    if remote.is_remote(FLAGS.data_dir):
        names = [*(entry["name"] for entry in made.files()), manifest.file_name(problem.base_name)]
        remote.send(FLAGS.data_dir, names, FLAGS.tmp_dir)
    for line in [*_summary(made), *(_unread(problem, raw_dir) if raw_dir else [])]:
        print(line)
    downloads = generate.download_dir(data_dir, FLAGS.tmp_dir) / "downloads"
    size = sum(path.stat().st_size for path in downloads.glob("*") if path.is_file())
    if size:
        print(
            f"downloads are kept in {downloads} ({size / 1e9:.1f} GB): use them as --raw_dir, or "
            "remove them"
        )


@contextlib.contextmanager
def _stages() -> Iterator["engine.Progress"]:
    """Yield a function that shows the progress of one stage after another."""
    with contextlib.ExitStack() as stack:
        shown: dict[str, progress.Progress] = {}

        def show(stage: str, done: int, total: int) -> None:
            if stage not in shown:
                stack.close()  # the stage before
                begun = progress.Progress(stage, stream=sys.stderr, announce=True)
                shown[stage] = stack.enter_context(begun)
            shown[stage].update(done, total)

        yield show


def _summary(made: "data_dir.Data") -> list[str]:
    """Return lines with the sizes of splits and vocabulary."""
    lines = []
    for split, entry in made.splits.items():
        line = (
            f"{split}: {errors.counted(entry['pairs'], 'pair')}, "
            f"{entry['source_tokens']:,} source and {entry['target_tokens']:,} target tokens, "
            f"{errors.counted(len(entry['shards']), 'shard')}"
        )
        dropped = {reason: n for reason, n in entry.get("dropped", {}).items() if n}
        if dropped:
            line += ", dropped " + ", ".join(f"{n:,} {reason}" for reason, n in dropped.items())
        if "overlong" in entry:
            line += (
                f", {'dropped' if split == 'train' else 'cut'} what has more than "
                f"{cleaning.MAX_CHARACTERS:,} characters a side: pair "
                f"{', '.join(map(str, entry['overlong']))}"
            )
        if entry.get("not_utf8"):
            line += f", {entry['not_utf8']:,} with bytes that are not UTF-8 (replaced)"
        lines += [
            line,
            *(
                f"  {errors.counted(n, 'pair')}: {name}"
                for name, n in entry.get("files", {}).items()
            ),
        ]
    fit = made.vocabulary_file
    line = (
        f"vocabulary: {fit['size']:,} entries, {fit['subwords_per_word']:.2f} subwords a word, "
        f"{100 * fit['byte_subwords_share']:.3g} % of them bytes"
    )
    if fit["size"] < made.options["vocab_size"]:
        line += f" (the text supports no more; {made.options['vocab_size']:,} were asked for)"
    remarks = [f"warning: {remark}" for remark in made.splits["train"].get("remarks", [])]
    return [*lines, line, *remarks, f"complete: {FLAGS.data_dir}"]


def _unread(problem: "problems.Problem", raw_dir: str) -> list[str]:
    """Return a line with what lies in raw_dir, or beside a file that was read, and was not."""
    used = {pathlib.Path(path).absolute() for path in problem.raw_files(raw_dir)}
    folders = {pathlib.Path(raw_dir).absolute(), *(path.parent for path in used)}
    used.update([parent for path in used for parent in path.parents])
    unread = sorted(
        path.name
        for folder in folders
        for path in folder.iterdir()
        if path not in used and not path.name.startswith(".")
    )
    shown = ", ".join(unread[:_MAX_SHOWN]) + (", ..." if unread[_MAX_SHOWN:] else "")
    return [f"not read: {shown}"] if unread else []


if __name__ == "__main__":
    sys.exit(main())
