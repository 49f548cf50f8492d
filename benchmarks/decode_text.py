"""Real sentences decoded by us or, with the same weights, by CTranslate2 or by the framework that
has trained them; prints RESULT {json}.

  python scripts/to_ctranslate2.py --output_dir=run --target=ct2_model
  python benchmarks/compare.py \\
    "python benchmarks/decode_text.py --source=test.en --output_dir=run --outputs=ours" \\
    "other/bin/python benchmarks/decode_text.py --source=test.en --ctranslate2=ct2_model"

The others: --fairseq=model.pt --vocab=dict.txt, of sentences that are cut already, or with
--sentencepiece=spm.model; --opennmt_tf=model_dir --vocab=vocab.txt --sentencepiece=spm.model;
--marian=model.npz --vocab=source.spm,target.spm, and vocab.yml as in OPUS-MT's;
--tensor2tensor=output_dir --data_dir=... --problem=... and, where the problem is there,
--t2t_usr_dir. Where each side has files of its own give both, the source's first, with a comma
between.

Beam 4, or --beam_size, without length penalty and with strict ends, for which the searches are the
same but for OpenNMT-tf's, in whose beam finished outputs stay; --outputs writes translations. The
figure (tok_s) is sentences a second, the median of three times after a first one; --times=0 leaves
it out.
"""

from __future__ import annotations  # for the Python of tensor2tensor

import argparse
import json
import os
import pathlib
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

BEAM = 4


class Peer(NamedTuple):
    """A decoder of texts, under the name that the result has."""

    name: str
    decode: Callable[[list[str]], list[str]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", required=True, help="sentences, one a line")
    parser.add_argument("--output_dir", help="of a training run: decode with t2t-lite")
    parser.add_argument("--checkpoint_path")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--ctranslate2", help="a converted model: decode with CTranslate2")
    parser.add_argument("--fairseq", help="a checkpoint: decode with fairseq")
    parser.add_argument("--opennmt_tf", help="a model_dir: decode with OpenNMT-tf")
    parser.add_argument("--marian", help="a .npz: decode with pymarian")
    parser.add_argument("--tensor2tensor", help="an output_dir: decode with tensor2tensor")
    parser.add_argument("--data_dir", help="tensor2tensor's")
    parser.add_argument("--problem", help="tensor2tensor's")
    parser.add_argument("--t2t_usr_dir")
    parser.add_argument("--vocab", help="fairseq's dict.txt, others' vocabulary")
    parser.add_argument(
        "--sentencepiece", help="the model that cuts OpenNMT-tf's or fairseq's text"
    )
    parser.add_argument(
        "--never_unknown", action="store_true", help="OpenNMT-tf, fairseq: no <unk>, as here"
    )
    parser.add_argument("--beam_size", type=int, default=BEAM, help="not of CTranslate2")
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--outputs", type=pathlib.Path, help="where the translations go")
    flags = parser.parse_args()
    sources = pathlib.Path(flags.source).read_text("utf-8").splitlines()
    makers = {"ctranslate2": _ctranslate2, "fairseq": _fairseq, "opennmt_tf": _opennmt_tf}
    makers.update(marian=_marian, tensor2tensor=_tensor2tensor)
    maker = next((make for name, make in makers.items() if getattr(flags, name)), _t2t_lite)
    peer = maker(flags)
    outputs = peer.decode(sources)
    if flags.outputs:
        flags.outputs.write_text("".join(f"{line}\n" for line in outputs), "utf-8")
    times = []
    cpu = time.process_time()
    for _ in range(flags.times):
        start = time.perf_counter()
        peer.decode(sources)
        times.append(time.perf_counter() - start)
    if not times:
        return
    cpu = (time.process_time() - cpu) / len(times)
    result = {
        "peer": peer.name,
        "task": "sentences",
        "tok_s": round(len(sources) / statistics.median(times), 1),
        "tok_per_cpu_s": round(len(sources) / cpu, 1),
        "load1": round(os.getloadavg()[0], 2),
    }
    print(f"RESULT {json.dumps(result)}", flush=True)


def _t2t_lite(flags: argparse.Namespace) -> Peer:
    from t2t_lite.decode import devices, translator

    model = translator.Translator.from_output_dir(
        flags.output_dir,
        flags.checkpoint_path,
        devices=devices.for_batches(),
        beam_size=flags.beam_size,
        alpha=0.0,
        strict_ends=True,
        batch_size=flags.batch_size,
        precision=flags.precision,
    )
    name = f"t2t-lite {flags.precision}"
    return Peer(name, lambda sources: [item.text for item in model.translate(sources)])


def _ctranslate2(flags: argparse.Namespace) -> Peer:
    return by_ctranslate2(flags.ctranslate2, flags.precision, flags.batch_size)


def by_ctranslate2(model_dir: str, precision: str, batch_size: int) -> Peer:
    """Return CTranslate2's decoder, with a worker of one thread for each core."""
    # Another environment: none of our packages is there.
    import ctranslate2  # pyright: ignore[reportMissingImports]
    import sentencepiece

    folder = pathlib.Path(model_dir)
    (model,) = folder.glob("*.model")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    end = [] if config["add_source_eos"] else ["</s>"]
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(model))
    translator = ctranslate2.Translator(
        model_dir,
        device="cpu",
        compute_type=precision,
        inter_threads=len(os.sched_getaffinity(0)),
        intra_threads=1,
    )

    def decode(sources: list[str]) -> list[str]:
        found = translator.translate_batch(
            [[*one, *end] for one in pieces.Encode(sources, out_type=str)],
            beam_size=BEAM,
            length_penalty=0,
            max_batch_size=batch_size,
        )
        return [pieces.DecodePieces(one.hypotheses[0]) for one in found]

    return Peer(f"CTranslate2 {ctranslate2.__version__} {precision}", decode)


def _fairseq(flags: argparse.Namespace) -> Peer:
    import torch  # pyright: ignore[reportMissingImports]
    from fairseq import data, sequence_generator  # pyright: ignore[reportMissingImports]
    from fairseq.models import transformer  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    words = data.Dictionary.load(flags.vocab)
    task = argparse.Namespace(source_dictionary=words, target_dictionary=words)
    # It is a model that one has trained oneself: this executes its pickle.
    state = torch.load(flags.fairseq, map_location="cpu", weights_only=False)
    model = transformer.TransformerModel.build_model(state["cfg"]["model"], task)
    model.load_state_dict(state["model"])
    model.eval()
    search = sequence_generator.SequenceGenerator(
        [model],
        words,
        beam_size=flags.beam_size,
        len_penalty=0,
        min_len=0,
        unk_penalty=1e9 if flags.never_unknown else 0,
    )

    cut, joined_by = str.strip, "@@ "
    if flags.sentencepiece:
        import sentencepiece

        pieces = sentencepiece.SentencePieceProcessor(model_file=flags.sentencepiece)
        cut, joined_by = lambda text: " ".join(pieces.EncodeAsPieces(text)), "sentencepiece"

    def encode(text: str) -> torch.Tensor:
        return words.encode_line(cut(text), add_if_not_exist=False).long()

    def decode(sources: list[str]) -> list[str]:
        ids = [encode(text) for text in sources]
        outputs = [""] * len(ids)
        for places in _batches([len(one) for one in ids], flags.batch_size):
            batch = [ids[place] for place in places]
            padded = data.data_utils.collate_tokens(batch, words.pad(), left_pad=True)
            lengths = torch.tensor([len(one) for one in batch])
            inputs = {"src_tokens": padded, "src_lengths": lengths}
            with torch.inference_mode():
                found = search.generate([model], {"net_input": inputs})
            for place, hypotheses in zip(places, found):
                outputs[place] = words.string(hypotheses[0]["tokens"], joined_by)
        return outputs

    return Peer(f"fairseq, torch {torch.__version__} float32", decode)


def _opennmt_tf(flags: argparse.Namespace) -> Peer:
    import opennmt  # pyright: ignore[reportMissingImports]
    import tensorflow as tf

    settings = {}
    vocabularies, models = flags.vocab.split(","), flags.sentencepiece.split(",")
    for side, place in (("source", 0), ("target", -1)):
        settings[f"{side}_vocabulary"] = vocabularies[place]
        params = {"model": models[place]}
        settings[f"{side}_tokenization"] = {"type": "SentencePieceTokenizer", "params": params}
    model = opennmt.load_model(flags.opennmt_tf)
    model.initialize(settings, params={"beam_width": flags.beam_size, "length_penalty": 0})
    model.create_variables()
    checkpoint = tf.train.Checkpoint(model=model)
    checkpoint.restore(tf.train.latest_checkpoint(flags.opennmt_tf)).expect_partial()

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def translate(texts: tf.Tensor) -> tf.Tensor:
        return model(model.features_inputter.make_features(texts))[1]["text"][:, 0]

    def decode(sources: list[str]) -> list[str]:
        if flags.never_unknown:  # by the softmax's bias: there is no option for it
            bias = model.decoder.output_layer.bias
            bias.assign(tf.tensor_scatter_nd_update(bias, [[bias.shape[0] - 1]], [-1e9]))
        outputs = [""] * len(sources)
        for places in _batches([len(text) for text in sources], flags.batch_size):
            found = translate(tf.constant([sources[place] for place in places])).numpy()
            for place, text in zip(places, found):
                outputs[place] = text.decode()
        return outputs

    return Peer(f"OpenNMT-tf {opennmt.__version__} float32", decode)


def _marian(flags: argparse.Namespace) -> Peer:
    import pymarian  # pyright: ignore[reportMissingImports]
    import sentencepiece

    paths = flags.vocab.split(",")
    spm = [path for path in paths if path.endswith(".spm")]
    numbers = [path for path in paths if path not in spm]
    options = (
        f"--models {flags.marian} --vocabs {(numbers or spm)[0]} {(numbers or spm)[-1]} "
        f"--normalize 0 --cpu-threads {len(os.sched_getaffinity(0))} --quiet "
        f"--mini-batch {flags.batch_size} --maxi-batch 100 --maxi-batch-sort src"
    )
    translator = pymarian.Translator(f"{options} --beam-size {flags.beam_size}")
    models = [sentencepiece.SentencePieceProcessor(model_file=path) for path in spm]

    def cut(side: int, text: str) -> str:  # Marian cuts texts itself, but not with a vocab.yml
        return " ".join(models[side].EncodeAsPieces(text)) if numbers else text

    def decode(sources: list[str]) -> list[str]:
        outputs = translator.translate("\n".join(cut(0, text) for text in sources)).split("\n")
        if not numbers:
            return outputs
        return [text.replace(" ", "").replace("\u2581", " ").strip() for text in outputs]

    return Peer(f"Marian (pymarian {pymarian.__version__}) float32", decode)


def _tensor2tensor(flags: argparse.Namespace) -> Peer:
    import numpy as np
    import tensorflow as tf
    from tensor2tensor import models  # noqa: F401 # pyright: ignore[reportMissingImports]
    from tensor2tensor.utils import (  # pyright: ignore[reportMissingImports]
        hparams_lib,
        registry,
        usr_dir,
    )

    if flags.t2t_usr_dir:
        usr_dir.import_usr_dir(flags.t2t_usr_dir)
    tf1 = tf.compat.v1
    hparams = hparams_lib.create_hparams_from_json(
        str(pathlib.Path(flags.tensor2tensor) / "hparams.json")
    )
    hparams.data_dir = flags.data_dir
    problem = registry.problem(flags.problem)
    hparams.problem_hparams = problem.get_hparams(hparams)
    encoders = problem.feature_encoders(flags.data_dir)
    model = registry.model("transformer")(
        hparams, tf1.estimator.ModeKeys.PREDICT, problem_hparams=hparams.problem_hparams
    )
    ids = tf1.placeholder(tf.int32, [None, None, 1, 1])
    features = {"inputs": ids, "target_space_id": tf.constant(0)}
    with tf1.variable_scope(tf1.get_variable_scope(), reuse=tf1.AUTO_REUSE):
        best = model.infer(
            features, beam_size=flags.beam_size, top_beams=1, alpha=0.0, decode_length=50
        )
    session = tf1.Session()
    tf1.train.Saver().restore(session, tf1.train.latest_checkpoint(flags.tensor2tensor))

    def decode(sources: list[str]) -> list[str]:
        rows = [[*encoders["inputs"].encode(text), 1] for text in sources]
        outputs = [""] * len(rows)
        for places in _batches([len(row) for row in rows], flags.batch_size):
            batch = np.zeros([len(places), len(rows[places[0]]), 1, 1], np.int32)
            for row, place in zip(batch, places):
                row[: len(rows[place]), 0, 0] = rows[place]
            found = session.run(best["outputs"], {ids: batch})
            for place, row in zip(places, found.reshape([len(places), -1]).tolist()):
                end = row.index(1) if 1 in row else len(row)
                outputs[place] = encoders["targets"].decode(row[:end])
        return outputs

    return Peer(f"tensor2tensor, TensorFlow {tf.__version__} float32", decode)


def _batches(lengths: list[int], size: int) -> list[list[int]]:
    """Return places in batches of similar length, the longest first."""
    order = sorted(range(len(lengths)), key=lambda place: -lengths[place])
    return [order[start : start + size] for start in range(0, len(order), size)]


if __name__ == "__main__":
    main()
