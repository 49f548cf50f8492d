"""Score a file of translations against a file of references, line by line.

  t2t-lite-bleu --translation=out.de --reference=test.de --target_language=de

Prints these scores, each with its signature; compare only scores of the same name and signature:

  bleu_13a, bleu_13a_lowercase, bleu_intl   sacreBLEU's default, the same in lower case, and its
                                            international tokenizer
  chrf2                                     character n-grams
  bleu_moses                                Moses' tokenizer, as multi-bleu.perl
  bleu_compound_split                       the same with hyphenated compounds split, as in
                                            "Attention Is All You Need" (Table 2)

Give plain text: not tokenized, not in subwords. Compressed files end in .gz, .xz, .bz2 or .zst. For
intervals, and for the difference of two systems, use sacreBLEU's --confidence and --paired-bs.
"""

import json
import sys
from collections.abc import Sequence

from absl import flags

from t2t_lite import errors
from t2t_lite.bin import command
from t2t_lite.text import text_files

FLAGS = command.new_flags()
command.define_strings(FLAGS, translation="File of translations, one per line.")
flags.DEFINE_multi_string(
    "reference",
    [],
    "File of references, one per line. Repeat the flag if each sentence has several references.",
    flag_values=FLAGS,
)
command.define_strings(
    FLAGS,
    target_language="Language code of the translations, e.g. de. It chooses the rules of Moses' "
    "tokenizer for bleu_moses and bleu_compound_split. zh, ja and ko also add a BLEU of their own, "
    "with sacreBLEU's tokenizers zh, ja-mecab and ko-mecab. Default: English rules.",
)
command.define_bools(FLAGS, json="Print one JSON object instead of lines.")
REQUIRED = command.require(FLAGS, "translation", "reference")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    return command.run(_print_scores, FLAGS, doc=__doc__, required=REQUIRED, argv=argv)


def _print_scores() -> None:
    from t2t_lite.evaluate import bleu  # with sacreBLEU: --help need not wait for it

    paths = (FLAGS.translation, *FLAGS.reference)
    texts = {path: list(text_files.read_lines(path)) for path in paths}
    bleu.check_counts({path: len(lines) for path, lines in texts.items()})
    for path, lines in texts.items():
        num_lossy = sum(text_files.REPLACEMENT in line for line in lines)
        if num_lossy:
            print(
                f"{path}: {num_lossy:,} of {errors.counted(len(lines), 'line')} not valid UTF-8; "
                "invalid bytes are scored as U+FFFD",
                file=sys.stderr,
            )
    translation, *references = (texts[path] for path in paths)
    language = FLAGS.target_language or ""
    if not language:
        print(
            "bleu_moses and bleu_compound_split depend on the target language, and follow the "
            "English rules here: give --target_language, such as de",
            file=sys.stderr,
        )
    scores = bleu.scores(translation, *references, target_language=language)
    if FLAGS.json:
        table = {
            score.name: {"value": score.value, "signature": score.signature} for score in scores
        }
        print(json.dumps({"lines": len(translation), "scores": table}, indent=2))
    else:
        print(*scores, sep="\n")


if __name__ == "__main__":
    sys.exit(main())
