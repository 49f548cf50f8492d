"""Moses' pre-processing as papers on Multi30k have it: from standard input to standard output.

    python scripts/moses.py LANGUAGE < train.de > train.tokenized.de
    python scripts/moses.py LANGUAGE --detokenize < output.tokenized.de > output.de

Text is lowercased, its punctuation normalized and tokenized, special characters escaped (&apos;).
"""

import sys

import sacremoses


def main(language: str, *options: str) -> None:
    """Write a line for each line; LANGUAGE is a code such as de."""
    if "--detokenize" in options:
        detokenizer = sacremoses.MosesDetokenizer(lang=language)
        for line in sys.stdin:
            print(detokenizer.detokenize(line.split()))
        return
    normalizer = sacremoses.MosesPunctNormalizer(lang=language)
    tokenizer = sacremoses.MosesTokenizer(lang=language)
    for line in sys.stdin:
        print(tokenizer.tokenize(normalizer.normalize(line.strip().lower()), return_str=True))


if __name__ == "__main__":
    sys.stdin.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
    main(*sys.argv[1:])
