"""One sentence after the other, as a user of a server meets them: prints RESULT {json}.

  python benchmarks/latency.py --output_dir=run --source=test.en
  python benchmarks/latency.py --export_dir=export/1 --source=test.en [--c_program]
  python benchmarks/latency.py --lite_dir=lite --source=test.en
  python benchmarks/latency.py --model=base [--write_ctranslate2=ct2_base] [--lite=int8]
  other/bin/python benchmarks/latency.py --source=test.en --ctranslate2=ct2_model
  other/bin/python benchmarks/latency.py --model=base --ctranslate2=ct2_base

A trained model translates the sentences of --source that have --words words. A model of random
weights (--model) decodes random ids, and every output is as long as --length says;
--write_ctranslate2 writes it for CTranslate2. Neither has a length penalty, and ends are strict,
for which CTranslate2's search is the same.

Times are milliseconds a sentence: ms_p50 and ms_p99 by the clock, cpu_ms_p50 and cpu_ms_min of the
processor, which on a busy machine tell more (null for --c_program, in which TensorFlow runs without
Python, another process: that of the tests). `operations` is how many a step of the search has,
without those that do nothing at run time.
"""

import argparse
import contextlib
import importlib.util
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

VOCABULARY = 32_000
# TensorFlow's executor does not run these.
_FREE = ("Const", "Identity", "NoOp", "Placeholder")


class Decoder(NamedTuple):
    """What is timed: its name, a function of one input, the operations of its step, and whether it
    runs in this process."""

    peer: str
    decode: Callable[[Any], Any]
    inputs: Sequence[Any]
    operations: int | None = None
    is_here: bool = True


def main() -> None:
    """Time it and print the line."""
    flags = _flags()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with contextlib.ExitStack() as stack:
        if flags.c_program:
            decoder = _c_program(flags, stack)
        else:
            decoder = _ways(flags)(flags)
        _time(decoder, flags)


def _ways(flags: argparse.Namespace) -> Callable[[argparse.Namespace], Decoder]:
    if flags.ctranslate2:
        return _ctranslate2
    return _lite if flags.lite or flags.lite_dir else _t2t_lite


def _time(decoder: Decoder, flags: argparse.Namespace) -> None:
    for one in decoder.inputs[:5]:
        decoder.decode(one)
    wall, cpu = [], []
    for _ in range(flags.rounds):
        for one in decoder.inputs:
            start, start_cpu = time.perf_counter(), time.process_time()
            decoder.decode(one)
            wall.append((time.perf_counter() - start) * 1e3)
            cpu.append((time.process_time() - start_cpu) * 1e3)
    search = f"beam{flags.beam_size}" if flags.beam_size > 1 else "greedy"
    cpu_p50 = statistics.median(cpu)
    result = {
        "peer": decoder.peer,
        "threads": flags.threads,
        "load1": round(os.getloadavg()[0], 2),
        "task": f"latency-{flags.model or 'tiny'}-{search}",
        "ms_p50": round(statistics.median(wall), 2),
        "ms_p99": round(sorted(wall)[int(0.99 * len(wall))], 2),
        "cpu_ms_p50": round(cpu_p50, 2) if decoder.is_here else None,
        "cpu_ms_min": round(min(cpu), 2) if decoder.is_here else None,
        "operations": decoder.operations,
        # Sentences a second, as compare.py reads it.
        "tok_s": round(1e3 / statistics.median(wall), 2),
        "tok_per_cpu_s": round(1e3 / cpu_p50, 2) if decoder.is_here else None,
    }
    print(f"RESULT {json.dumps(result)}", flush=True)


def _flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output_dir", help="of a training run")
    parser.add_argument("--checkpoint_path")
    parser.add_argument("--export_dir", help="a version of an export, in place of --output_dir")
    parser.add_argument("--lite_dir", help="an export to LiteRT, in place of --output_dir")
    parser.add_argument("--lite", help="how LiteRT stores the weights of --model")
    parser.add_argument("--c_program", action="store_true", help="run the export without Python")
    parser.add_argument("--model", choices=["base", "big"], help="of random weights")
    parser.add_argument("--source", type=pathlib.Path, help="sentences, one a line")
    parser.add_argument("--words", type=int, default=12, help="of the sentences taken; 0: all")
    parser.add_argument("--length", type=int, default=24, help="tokens of random inputs, outputs")
    parser.add_argument("--sentences", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--beam_size", type=int, default=4)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--ctranslate2", type=pathlib.Path, help="a model for the peer")
    parser.add_argument("--write_ctranslate2", help="where the model of random weights goes")
    flags = parser.parse_args()
    if bool(flags.model) == bool(flags.source):
        parser.error("give --model, or --source and what translates it")
    return flags


def _sentences(flags: argparse.Namespace) -> list[str]:
    lines = flags.source.read_text("utf-8").splitlines()
    return [s for s in lines if flags.words in (0, len(s.split()))][: flags.sentences]


def _random_ids(flags: argparse.Namespace):
    import numpy as np

    shape = [max(flags.sentences // 10, 1), 1, flags.length]
    return np.random.default_rng(0).integers(10, VOCABULARY, shape).astype(np.int32)


def _t2t_lite(flags: argparse.Namespace) -> Decoder:
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(flags.threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    if flags.export_dir:
        served = tf.saved_model.load(flags.export_dir).signatures["serving_default"]
        sentences = [tf.constant([sentence]) for sentence in _sentences(flags)]
        return Decoder(
            "t2t-lite export",
            lambda sentence: served(inputs=sentence)["outputs"].numpy(),
            sentences,
        )
    peer = f"t2t-lite {flags.precision}"
    if flags.model:
        function = _random_model(flags)
        ids = [tf.constant(one) for one in _random_ids(flags)]
        operations = num_operations(function)
        return Decoder(peer, lambda one: function(one).ids.numpy(), ids, operations)
    from t2t_lite.decode import translator

    model = translator.Translator.from_output_dir(
        flags.output_dir,
        flags.checkpoint_path,
        alpha=0.0,
        beam_size=flags.beam_size,
        strict_ends=True,
        precision=flags.precision,
    )
    return Decoder(
        peer,
        lambda sentence: model.translate([sentence]),
        _sentences(flags),
        num_operations(model.translate_sentence),
    )


def _c_program(flags: argparse.Namespace, stack: contextlib.ExitStack) -> Decoder:
    sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests"))
    c_program = importlib.import_module("c_program")  # how the tests run it

    program = c_program.build(pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory())))
    threads = {
        "TF_NUM_INTRAOP_THREADS": str(flags.threads),
        "TF_NUM_INTEROP_THREADS": "1",
    }
    ask = stack.enter_context(c_program.running(program, pathlib.Path(flags.export_dir), threads))
    sentences = [[sentence.encode()] for sentence in _sentences(flags)]
    return Decoder("t2t-lite export in C", ask, sentences, is_here=False)


def _lite(flags: argparse.Namespace) -> Decoder:
    if flags.lite_dir:
        import t2t_lite_runtime

        model = t2t_lite_runtime.load(flags.lite_dir, flags.threads)
        peer = f"t2t-lite LiteRT {model.record['weights']}"
        return Decoder(peer, lambda sentence: model.translate([sentence]), _sentences(flags))
    from t2t_lite_runtime import search

    from t2t_lite.decode import litert, translator
    from t2t_lite.tasks import translation
    from t2t_lite.text import t2t_vocabulary

    model, options = _random_weights(flags)
    pieces = "".join(f"'{i}_'\n" for i in range(VOCABULARY - 2))
    vocabulary = t2t_vocabulary.SubwordVocabulary(f"'<pad>_'\n'<EOS>_'\n{pieces}".encode())
    task = translation.Translation(vocabulary)
    translating = translator.Translator(model, task, options, frozen=True)
    data = litert.convert(translating, longest_source=flags.length, num_kept=1, weights=flags.lite)
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        searcher = search.Searcher(file.name, flags.threads)
    peer = f"t2t-lite LiteRT {flags.lite}"
    return Decoder(peer, searcher, [one[0].tolist() for one in _random_ids(flags)])


def _random_weights(flags: argparse.Namespace):
    """Return a model of random weights and options by which every output has --length tokens."""
    import tensorflow as tf

    from t2t_lite import registry
    from t2t_lite.decode import options
    from t2t_lite.model import transformer

    registry.load("t2t_lite.hparams")
    tf.random.set_seed(1)
    decode_options = options.DecodeOptions(
        alpha=0.0,
        beam_size=flags.beam_size,
        strict_ends=True,
        min_length=flags.length + 1,
        extra_length=0,
        precision=flags.precision,
    )
    hparams = registry.hparams(f"transformer_{flags.model}")
    model = transformer.Transformer(hparams, VOCABULARY, dtype=decode_options.weights_dtype)
    if flags.write_ctranslate2:
        _write_ctranslate2(model, flags.write_ctranslate2)
    return model, decode_options


def _random_model(flags: argparse.Namespace):
    """Return the search, a tf.function, of a model of random weights."""
    import tensorflow as tf

    from t2t_lite.decode import beam_search, cached_decoder, candidates

    model, decode_options = _random_weights(flags)
    decoder = cached_decoder.of_models([model], decode_options)

    @tf.function(input_signature=[tf.TensorSpec([1, None], tf.int32)], autograph=False)
    def search(inputs):
        return beam_search.search(
            decoder,
            decoder.encode(inputs),
            decode_options,
            emittable=candidates.EmittableIds(VOCABULARY, forbidden=(0, 2)),
            max_lengths=tf.fill([tf.shape(inputs)[0]], flags.length),
        )

    return search


def num_operations(function) -> int:
    """Return how many operations a step has: the loop's body is the graph's largest function."""
    library = function.get_concrete_function().graph.as_graph_def().library
    bodies = [f.node_def for f in library.function if "while_body" in f.signature.name]
    return max(sum(node.op not in _FREE for node in body) for body in bodies)


def _write_ctranslate2(model, target: str) -> None:
    script = pathlib.Path(__file__).parents[1] / "scripts/to_ctranslate2.py"
    spec = importlib.util.spec_from_file_location("to_ctranslate2", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    pieces = [f"<{i}>" for i in range(VOCABULARY)]
    weights = module.specification(model, pieces, pieces)
    weights.validate()
    weights.optimize()
    pathlib.Path(target).mkdir(parents=True, exist_ok=True)
    weights.save(target)


def _ctranslate2(flags: argparse.Namespace) -> Decoder:
    # Another environment: none of our packages is there.
    import ctranslate2  # pyright: ignore[reportMissingImports]

    translator = ctranslate2.Translator(
        str(flags.ctranslate2),
        device="cpu",
        compute_type=flags.precision,
        inter_threads=1,
        intra_threads=flags.threads,
    )
    settings: dict[str, Any] = {"beam_size": flags.beam_size, "length_penalty": 0}
    peer = f"CTranslate2 {ctranslate2.__version__} {flags.precision}"
    if flags.model:
        settings.update(min_decoding_length=flags.length, max_decoding_length=flags.length)
        tokens = [[f"<{i}>" for i in one] for [one] in _random_ids(flags).tolist()]
        return Decoder(peer, lambda one: translator.translate_batch([one], **settings), tokens)
    import sentencepiece

    (path,) = flags.ctranslate2.glob("*.model")
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(path))

    def decode(sentence: str) -> str:
        source = [*pieces.Encode(sentence, out_type=str), "</s>"]
        (result,) = translator.translate_batch([source], **settings)
        return pieces.DecodePieces(result.hypotheses[0])

    return Decoder(peer, decode, _sentences(flags))


if __name__ == "__main__":
    main()
