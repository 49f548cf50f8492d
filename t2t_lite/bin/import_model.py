"""Convert a model of another framework into an output_dir.

  t2t-lite-import --from=opus_mt --model=Helsinki-NLP/opus-mt-en-de --output_dir=run
  t2t-lite-import --from=tensor2tensor --model=t2t_train/model.ckpt-250000 --output_dir=run \\
    --vocab=t2t_data/vocab.translate_ende_wmt32k.32768.subwords
  t2t-lite-import --from=marian --model=opus-mt-en-de --output_dir=run
  t2t-lite-import --from=opennmt_tf --model=onmt_run --output_dir=run --vocab=vocab.txt,spm.model
  t2t-lite-import --from=fairseq --model=checkpoint_best.pt --output_dir=run --vocab=dict.txt,codes

Give this output_dir to t2t-lite-decoder, t2t-lite-explore and t2t-lite-exporter. To train the model
further, give it to t2t-lite-datagen as --vocab_from, and to t2t-lite-trainer as --warm_start_from
and as --hparams_set.
"""

import sys
from collections.abc import Sequence

from absl import flags

from t2t_lite import errors
from t2t_lite.bin import command

FRAMEWORKS = ("opus_mt", "marian", "tensor2tensor", "opennmt_tf", "fairseq")

FLAGS = command.new_flags()
flags.DEFINE_enum(
    "from",
    None,
    FRAMEWORKS,
    "The model's framework. opus_mt: a model of OPUS-MT in Hugging Face's format (config.json). "
    "marian: a model of Marian, OPUS-MT's too, in Marian's own format (.npz).",
    flag_values=FLAGS,
)
command.define_strings(
    FLAGS,
    model="The model's checkpoint, or a folder whose newest checkpoint is used. opus_mt: a "
    "folder, or a model's name on the Hugging Face Hub.",
    output_dir="Folder to write to; must not exist.",
    vocab="The model's vocabulary files, separated by commas. marian: "
    "source.spm,target.spm,vocab.yml. tensor2tensor: vocab.NAME.SIZE.subwords. opennmt_tf: "
    "vocab.txt,spm.model or vocab.txt,codes (of subword-nmt). fairseq: dict.txt,codes or "
    "dict.txt,spm.model. If source and target have vocabularies of their own, give two files of "
    "each kind, the source's before the target's: dict.en.txt,dict.de.txt,codes.en,codes.de. "
    "Default: the files beside the model, or those that its settings name. Not for opus_mt.",
    problem="Name of the problem to record as the one that the model has learnt; "
    "t2t-lite-decoder --split reads its data. Default: parallel_text, or what tensor2tensor's "
    "files say.",
)
command.define_integers(
    FLAGS,
    1,
    num_heads="Number of attention heads, if the files of a tensor2tensor, opennmt_tf or fairseq "
    "model do not say.",
)
command.define_integers(
    FLAGS,
    0,
    target_space="tensor2tensor only: the target space id of the model's problem. Default: the one "
    "that was trained, if the checkpoint shows it, else 0.",
    vocabulary_threshold="opennmt_tf and fairseq only, with the codes of subword-nmt: the "
    "--vocabulary-threshold of its apply-bpe. Add the file of its --vocabulary to --vocab. "
    "Default: all entries of that file.",
)
REQUIRED = command.require(FLAGS, "from", "model", "output_dir")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    return command.run(_import, FLAGS, doc=__doc__, required=REQUIRED, argv=argv)


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
