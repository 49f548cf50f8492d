"""Convert a model that another framework has trained into an output_dir.

  t2t-lite-import --from=opus_mt --model=Helsinki-NLP/opus-mt-en-de --output_dir=run
  t2t-lite-import --from=tensor2tensor --model=t2t_train/model.ckpt-250000 --output_dir=run \\
    --vocab=t2t_data/vocab.translate_ende_wmt32k.32768.subwords
  t2t-lite-import --from=marian --model=opus-mt-en-de --output_dir=run
  t2t-lite-import --from=opennmt_tf --model=onmt_run --output_dir=run --vocab=vocab.txt,spm.model
  t2t-lite-import --from=fairseq --model=checkpoint_best.pt --output_dir=run --vocab=dict.txt,codes

All other commands take the output_dir: decoder, explore, exporter and so on. To train the model
further, give the output_dir to t2t-lite-datagen as --vocab_from, and to t2t-lite-trainer as
--warm_start_from and as --hparams_set.
"""

import sys
from collections.abc import Sequence

from absl import flags

from t2t_lite import errors
from t2t_lite.bin import command

FRAMEWORKS = ("opus_mt", "marian", "tensor2tensor", "opennmt_tf", "fairseq")

FLAGS = command.new_flags()
flags.DEFINE_enum("from", None, FRAMEWORKS, "The model's framework.", flag_values=FLAGS)
command.define_strings(
    FLAGS,
    model="The model's checkpoint, or a folder whose newest checkpoint is used. opus_mt: a "
    "folder in Hugging Face's format, or a model's name on its hub.",
    output_dir="The new run; must not exist.",
    vocab="The model's vocabulary files, separated by commas. Marian: "
    "source.spm,target.spm,vocab.yml. OpenNMT-tf: vocab.txt,spm.model. fairseq: dict.txt,codes or "
    "dict.txt,spm.model. If each side has its own, give two of each, the source's first. Default: "
    "the files beside the model, or those that its settings name.",
    problem="Name of the problem that the model has learnt. Default: what the model's files say.",
)
command.define_integers(
    FLAGS, 1, num_heads="Number of attention heads, for models whose files do not say."
)
command.define_integers(
    FLAGS,
    0,
    target_space="tensor2tensor's target space id. Default: the one that was trained, else 0.",
    vocabulary_threshold="The --vocabulary-threshold that subword-nmt had; the file of its "
    "--vocabulary is the last in --vocab. Default: all pieces of that file.",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    required = ("from", "model", "output_dir")
    return command.run(_import, FLAGS, doc=__doc__, required=required, argv=argv)


def _import() -> None:
    with command.quiet_import():
        from t2t_lite.imports import (
            fairseq,
            imported,
            marian,
            opennmt_tf,
            opus_mt,
            tensor2tensor,
        )
    readers = {
        "opus_mt": (opus_mt.read, ()),
        "marian": (marian.read, ("vocab",)),
        "opennmt_tf": (opennmt_tf.read, ("vocab", "num_heads", "vocabulary_threshold")),
        "fairseq": (fairseq.read, ("vocab", "num_heads", "vocabulary_threshold")),
        "tensor2tensor": (tensor2tensor.read, ("vocab", "num_heads", "target_space")),
    }
    framework = str(FLAGS["from"].value)
    read, takes = readers[framework]
    for name in ("vocab", "num_heads", "target_space", "vocabulary_threshold"):
        if FLAGS[name].value is not None and name not in takes:
            raise errors.UserError(f"--{name} is not for models of {framework}: leave it out")
    model = read(
        FLAGS.model,
        problem=FLAGS.problem,
        **{name: FLAGS[name].value for name in takes},
    )
    prefix = imported.write(model, FLAGS.output_dir)
    for remark in model.remarks:
        print(remark, file=sys.stderr)
    hparams = model.hparams
    count = sum(weights.size for weights in model.weights.values())
    print(
        f"{prefix}: {hparams.num_encoder_layers} + {hparams.num_decoder_layers} layers of "
        f"{hparams.d_model}, {hparams.num_heads} heads, {model.vocab_size:,} ids, "
        f"{count:,} weights, {model.problem}"
    )


if __name__ == "__main__":
    sys.exit(main())
