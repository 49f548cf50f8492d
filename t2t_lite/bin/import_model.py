"""Make an output_dir of a model that another framework has trained.

  t2t-lite-import --from=tensor2tensor --model=t2t_train/model.ckpt-250000 --output_dir=run \\
    --vocab=t2t_data/vocab.translate_ende_wmt32k.32768.subwords
  t2t-lite-import --from=marian --model=opus-mt-en-de --output_dir=run
  t2t-lite-import --from=opennmt_tf --model=onmt_run --output_dir=run --vocab=vocab.txt,spm.model
  t2t-lite-import --from=fairseq --model=checkpoint_best.pt --output_dir=run --vocab=dict.txt,codes

Every other command takes the output_dir: it decodes, scores, explores, exports. To train it
further, give it to t2t-lite-datagen as --vocab_from, and to t2t-lite-trainer as --warm_start_from
and as --hparams_set.
"""

import sys
from collections.abc import Sequence

from absl import flags

from t2t_lite import errors
from t2t_lite.bin import command

FRAMEWORKS = ("tensor2tensor", "marian", "opennmt_tf", "fairseq")

FLAGS = command.new_flags()
flags.DEFINE_enum("from", None, FRAMEWORKS, "Who trained it.", flag_values=FLAGS)
flags.DEFINE_string(
    "model", None, "Its checkpoint, or a folder, of which the newest is taken.", flag_values=FLAGS
)
flags.DEFINE_string("output_dir", None, "A new folder, of the imported run.", flag_values=FLAGS)
flags.DEFINE_string(
    "vocab",
    None,
    "Its vocabulary; for Marian source.spm,target.spm,vocab.yml, for OpenNMT-tf "
    "vocab.txt,spm.model, for fairseq dict.txt,codes or dict.txt,spm.model; where each side has "
    "its own, two of each, the source's first. Default: what lies beside it, or where its settings "
    "say.",
    flag_values=FLAGS,
)
flags.DEFINE_string(
    "problem",
    None,
    "What it has learnt, as this package calls it; default: what its own files say.",
    flag_values=FLAGS,
)
flags.DEFINE_integer(
    "num_heads",
    None,
    "Heads of an attention, where its own files do not say.",
    lower_bound=1,
    flag_values=FLAGS,
)
flags.DEFINE_integer(
    "target_space",
    None,
    "The number of tensor2tensor's target space; default: the one that was trained, or 0.",
    lower_bound=0,
    flag_values=FLAGS,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    required = ("from", "model", "output_dir")
    return command.run(_import, FLAGS, doc=__doc__, required=required, argv=argv)


def _import() -> None:
    with command.quiet_import():
        from t2t_lite.imports import fairseq, imported, marian, opennmt_tf, tensor2tensor
    given = {"vocab": FLAGS.vocab, "problem": FLAGS.problem}
    framework = FLAGS["from"].value
    if FLAGS.num_heads and framework == "marian":
        raise errors.UserError("--num_heads: a model of Marian says it itself, leave it out")
    if FLAGS.target_space is not None and framework != "tensor2tensor":
        raise errors.UserError("--target_space is for models of tensor2tensor, leave it out")
    match framework:
        case "marian":
            model = marian.read(FLAGS.model, **given)
        case "opennmt_tf":
            model = opennmt_tf.read(FLAGS.model, num_heads=FLAGS.num_heads, **given)
        case "fairseq":
            model = fairseq.read(FLAGS.model, num_heads=FLAGS.num_heads, **given)
        case _:
            model = tensor2tensor.read(
                FLAGS.model,
                num_heads=FLAGS.num_heads,
                target_space=FLAGS.target_space,
                **given,
            )
    prefix = imported.write(model, FLAGS.output_dir)
    hparams = model.hparams
    count = sum(weights.size for weights in model.weights.values())
    print(
        f"{prefix}: {hparams.num_encoder_layers} + {hparams.num_decoder_layers} layers of "
        f"{hparams.d_model}, {hparams.num_heads} heads, {model.vocab_size:,} ids, "
        f"{count:,} weights, {model.problem}"
    )


if __name__ == "__main__":
    sys.exit(main())
