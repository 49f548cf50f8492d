"""Score predicted trees against gold trees, line by line, by the rules of EVALB.

  t2t-lite-evalb --gold=test.trees --predicted=parsed.trees

Prints recall, precision and F1 of labelled brackets, complete match, crossing brackets and tagging
accuracy, for all sentences and for those of up to 40 words (CUTOFF_LEN in --params).

Each line holds one Penn Treebank tree. In the predictions an empty line or "(())" is a sentence
without a parse (skipped); a line that is not a tree counts as an error. Both files need
part-of-speech tags, because EVALB leaves out the words whose tags say that they are punctuation.
Unless the problem's name ends in _tags, t2t-lite-decoder writes the tag XX for all words but common
punctuation marks. A prediction without the same words as the gold tree, punctuation left out,
counts as an error; to avoid this, give the predictions a tagger's tags, or train a problem whose
name ends in _tags.

Compressed files end in .gz, .xz, .bz2 or .zst.
"""

import dataclasses
import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from t2t_lite import errors
from t2t_lite.bin import command
from t2t_lite.parsing import evalb, trees
from t2t_lite.text import text_files

FLAGS = command.new_flags()
command.define_strings(
    FLAGS,
    gold="File of gold trees, one per line.",
    predicted="File of predicted trees, one per line.",
    params="EVALB parameter file. Default: the rules of COLLINS.prm, usual for the WSJ; the file "
    "itself is not needed.",
)
command.define_bools(
    FLAGS,
    json="Print one JSON object instead of a table.",
    per_sentence="Also print the counts of each sentence.",
)
REQUIRED = command.require(FLAGS, "gold", "predicted")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    return command.run(_print_score, FLAGS, doc=__doc__, required=REQUIRED, argv=argv)


def _print_score() -> None:
    parameters = evalb.COLLINS
    if FLAGS.params:
        lines = text_files.read_lines(FLAGS.params)
        parameters = evalb.read_parameters(lines, name=FLAGS.params)
    unreadable: dict[int, str] = {}
    result = evalb.score(_trees(FLAGS.gold, None), _trees(FLAGS.predicted, unreadable), parameters)
    if not result.sentences:
        raise errors.UserError(f"{FLAGS.gold} and {FLAGS.predicted} are empty; expected trees")
    for sentence in result.sentences:
        if sentence.status == "error":
            problem = unreadable.get(sentence.number, sentence.problem)
            print(f"sentence {sentence.number} is an error: {problem}", file=sys.stderr)
    if FLAGS.json:
        fields = dataclasses.asdict(result)
        if not FLAGS.per_sentence:
            del fields["sentences"]
        print(json.dumps(fields, indent=2))
    else:
        print(evalb.report(result, per_sentence=FLAGS.per_sentence))


def _trees(path: str, unreadable: dict[int, str] | None) -> Iterator[Any]:
    """Yield each line's trees; None for a line that is not a tree: `unreadable` gets the reason.

    Without `unreadable` such a line raises UserError.
    """
    for number, line in enumerate(text_files.read_lines(path), 1):
        try:
            yield tuple(trees.read([line], name=path, first_line=number, drop_empty=True))
        except errors.UserError as error:
            if unreadable is None:
                raise errors.UserError(f"{error} (expected one gold tree a line)") from None
            unreadable[number] = str(error)
            yield None


if __name__ == "__main__":
    sys.exit(main())
