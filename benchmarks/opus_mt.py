"""A model of OPUS-MT's size beside transformers and CTranslate2: prints RESULT {json}.

  other/bin/python benchmarks/opus_mt.py --peer=write --folder=opus    by transformers
  t2t-lite-import --from=opus_mt --model=opus --output_dir=opus_run
  python benchmarks/opus_mt.py --peer=t2t-lite --folder=opus_run [--precision=mixed_int8]
  python benchmarks/opus_mt.py --peer=litert --folder=opus_run --precision=int8
  t2t-lite-exporter --output_dir=opus_run --export_dir=opus_export --precision=mixed_int8 \
    --decode_hparams=extra_length=0,min_length=25,max_source_length=24,alpha=0
  python benchmarks/opus_mt.py --peer=export --folder=opus_export
  other/bin/python benchmarks/opus_mt.py --peer=transformers --folder=opus
  ct2-transformers-converter --model opus --output_dir opus_ct2
  python benchmarks/opus_mt.py --peer=ctranslate2 --folder=opus_ct2 [--precision=int8]

6 + 6 layers of 512, 60,000 entries, beam 4. Sources are random ids of --length tokens and every
output is as long. --batch sentences at a time; ms_p50 is a batch's. compare.py runs peers by turns.
"""

import argparse
import json
import os
import pathlib
import statistics
import tempfile
import time

import numpy as np

VOCABULARY = 60_000  # the last entry is padding


def main() -> None:
    """Time one peer."""
    flags = _flags()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if flags.peer == "write":
        _write(flags.folder)
        return
    peers = {
        "t2t-lite": _t2t_lite,
        "litert": _litert,
        "export": _export,
        "transformers": _transformers,
        "ctranslate2": _ctranslate2,
    }
    ids = np.random.default_rng(0).integers(3, VOCABULARY - 1, [flags.batch, flags.length])
    translate = peers[flags.peer](flags, ids)
    translate()
    wall, cpu_start = [], time.process_time()
    for _ in range(flags.rounds):
        start = time.perf_counter()
        translate()
        wall.append((time.perf_counter() - start) * 1e3)
    p50, cpu = statistics.median(wall), (time.process_time() - cpu_start) / flags.rounds
    result = {
        "peer": f"{flags.peer} {flags.precision}",
        "task": f"opus-mt-batch{flags.batch}",
        "load1": round(os.getloadavg()[0], 2),
        "ms_p50": round(p50, 1),
        "ms_min": round(min(wall), 1),
        "tok_s": round(flags.batch * flags.length / p50 * 1e3, 1),
        "tok_per_cpu_s": round(flags.batch * flags.length / cpu, 1),
    }
    print(f"RESULT {json.dumps(result)}", flush=True)


def _flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    peers = ["write", "t2t-lite", "litert", "export", "transformers", "ctranslate2"]
    parser.add_argument("--peer", choices=peers, required=True)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--length", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


def _write(folder: pathlib.Path) -> None:
    """Write a model of random weights, and a vocabulary that its pieces are no words of."""
    import sentencepiece
    import torch  # pyright: ignore[reportMissingImports]
    import transformers  # pyright: ignore[reportMissingImports]

    torch.manual_seed(0)
    pad = VOCABULARY - 1
    config = transformers.MarianConfig(
        vocab_size=VOCABULARY,
        d_model=512,
        encoder_layers=6,
        decoder_layers=6,
        encoder_attention_heads=8,
        decoder_attention_heads=8,
        encoder_ffn_dim=2048,
        decoder_ffn_dim=2048,
        activation_function="swish",
        scale_embedding=True,
        pad_token_id=pad,
        eos_token_id=0,
        decoder_start_token_id=pad,
        bad_words_ids=[[pad]],
        num_beams=4,
    )
    transformers.MarianMTModel(config).save_pretrained(folder)
    for side in ("source", "target"):
        sentencepiece.SentencePieceTrainer.Train(
            sentence_iterator=iter(["a small model of pieces"] * 20),
            model_prefix=str(folder / side),
            vocab_size=25,
            hard_vocab_limit=False,
        )
        (folder / f"{side}.model").rename(folder / f"{side}.spm")
    pieces = ["</s>", "<unk>", *(f"<{i}>" for i in range(2, pad)), "<pad>"]
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary), "utf-8")
    names = {"source_lang": "en", "target_lang": "de", "model_max_length": 512}
    (folder / "tokenizer_config.json").write_text(json.dumps(names), "utf-8")


def _options(flags: argparse.Namespace):
    """Return decoding options by which an output is as long as its source."""
    lengths = {"extra_length": 0, "min_length": flags.length + 1, "max_source_length": flags.length}
    return {"beam_size": 4, "alpha": 0.0, **lengths}


def _t2t_lite(flags: argparse.Namespace, ids: np.ndarray):
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(flags.threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    from t2t_lite.decode import translator

    options = _options(flags) | {"precision": flags.precision}
    model = translator.Translator.from_output_dir(flags.folder, engine="graph", **options)
    inputs = tf.constant(ids, tf.int32)
    search = model.translate_sentence if flags.batch == 1 else model.translate_ids
    return lambda: search(inputs).ids.numpy()


def _litert(flags: argparse.Namespace, ids: np.ndarray):
    from concurrent import futures

    from t2t_lite_runtime import search

    from t2t_lite.decode import litert, translator

    model = translator.Translator.from_output_dir(flags.folder, engine="graph", **_options(flags))
    data = litert.convert(model, longest_source=flags.length, num_kept=1, weights=flags.precision)
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        path = pathlib.Path(file.name)
        if flags.batch == 1:
            searcher = search.Searcher(path, flags.threads)
            return lambda: searcher(ids[0].tolist())
        searcher, pool = search.Searcher(path, 1), futures.ThreadPoolExecutor(flags.threads)
        list(pool.map(searcher, ids.tolist()))  # makes an interpreter for each thread
    return lambda: list(pool.map(searcher, ids.tolist()))


def _export(flags: argparse.Namespace, ids: np.ndarray):
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(flags.threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    import t2t_lite

    model = t2t_lite.load(flags.folder)
    texts = ["a small model of pieces " * flags.length] * len(ids)  # cut to max_source_length
    return lambda: model.translate(texts)


def _transformers(flags: argparse.Namespace, ids: np.ndarray):
    import torch  # pyright: ignore[reportMissingImports]
    import transformers  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(flags.threads)
    model = transformers.MarianMTModel.from_pretrained(flags.folder).eval()
    inputs = torch.tensor(ids)
    lengths = {"min_new_tokens": flags.length, "max_new_tokens": flags.length}

    def translate():
        with torch.inference_mode():
            return model.generate(inputs, num_beams=4, **lengths)

    return translate


def _ctranslate2(flags: argparse.Namespace, ids: np.ndarray):
    import ctranslate2  # pyright: ignore[reportMissingImports]

    model = ctranslate2.Translator(
        str(flags.folder),
        device="cpu",
        compute_type=flags.precision,
        inter_threads=1,
        intra_threads=flags.threads,
    )
    tokens = [[f"<{i}>" for i in row] for row in ids.tolist()]
    lengths = {"min_decoding_length": flags.length, "max_decoding_length": flags.length}
    return lambda: model.translate_batch(tokens, beam_size=4, length_penalty=0, **lengths)


if __name__ == "__main__":
    main()
