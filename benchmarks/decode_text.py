"""Real sentences decoded by us or, with the same weights, by CTranslate2; prints RESULT {json}.

  python scripts/to_ctranslate2.py --output_dir=run --target=ct2_model
  python benchmarks/compare.py \\
    "python benchmarks/decode_text.py --source=test.en --output_dir=run --outputs=ours" \\
    "other/bin/python benchmarks/decode_text.py --source=test.en --ctranslate2=ct2_model"

Beam 4 without length penalty and with strict ends, for which both searches are the same; --outputs
writes translations. The figure (tok_s) is sentences a second, the median of three times after a
first one.
"""

import argparse
import json
import os
import pathlib
import statistics
import time
from collections.abc import Callable

BEAM = 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", required=True, help="sentences, one a line")
    parser.add_argument("--output_dir", help="of a training run: decode with t2t-lite")
    parser.add_argument("--checkpoint_path")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--ctranslate2", help="a converted model: decode with CTranslate2")
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--outputs", type=pathlib.Path, help="where the translations go")
    flags = parser.parse_args()
    sources = pathlib.Path(flags.source).read_text("utf-8").splitlines()
    peer, decode = (_ctranslate2 if flags.ctranslate2 else _t2t_lite)(flags)
    decode(sources)
    times = []
    cpu = time.process_time()
    for _ in range(3):
        start = time.perf_counter()
        outputs = decode(sources)
        times.append(time.perf_counter() - start)
    cpu = (time.process_time() - cpu) / len(times)
    if flags.outputs:
        flags.outputs.write_text("".join(f"{line}\n" for line in outputs), "utf-8")
    result = {
        "peer": peer,
        "task": "sentences",
        "tok_s": round(len(sources) / statistics.median(times), 1),
        "tok_per_cpu_s": round(len(sources) / cpu, 1),
        "load1": round(os.getloadavg()[0], 2),
    }
    print(f"RESULT {json.dumps(result)}", flush=True)


def _t2t_lite(flags: argparse.Namespace) -> tuple[str, Callable[[list[str]], list[str]]]:
    from t2t_lite.decode import devices, translator

    model = translator.Translator.from_output_dir(
        flags.output_dir,
        flags.checkpoint_path,
        devices=devices.for_batches(),
        beam_size=BEAM,
        alpha=0.0,
        strict_ends=True,
        batch_size=flags.batch_size,
        precision=flags.precision,
    )
    name = f"t2t-lite {flags.precision}"
    return name, lambda sources: [item.text for item in model.translate(sources)]


def _ctranslate2(flags: argparse.Namespace) -> tuple[str, Callable[[list[str]], list[str]]]:
    # Another environment: none of our packages is there.
    import ctranslate2  # pyright: ignore[reportMissingImports]
    import sentencepiece

    folder = pathlib.Path(flags.ctranslate2)
    (model,) = folder.glob("*.model")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    end = [] if config["add_source_eos"] else ["</s>"]
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(model))
    translator = ctranslate2.Translator(
        flags.ctranslate2,
        device="cpu",
        compute_type="float32",
        inter_threads=len(os.sched_getaffinity(0)),
        intra_threads=1,
    )

    def decode(sources: list[str]) -> list[str]:
        found = translator.translate_batch(
            [[*one, *end] for one in pieces.Encode(sources, out_type=str)],
            beam_size=BEAM,
            length_penalty=0,
            max_batch_size=flags.batch_size,
        )
        return [pieces.DecodePieces(one.hypotheses[0]) for one in found]

    return f"CTranslate2 {ctranslate2.__version__} float32", decode


if __name__ == "__main__":
    main()
