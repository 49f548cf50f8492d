"""Export a trained model as a SavedModel for TensorFlow Serving, or as a LiteRT model.

  t2t-lite-exporter --output_dir=run --export_dir=export
  t2t-lite-exporter --output_dir=run --export_dir=lite --format=litert --weights=int8

Writes export/<version>/ with the next free version number. A server that watches the folder loads
it. A SavedModel's signature serving_default returns the best output, nbest all beam_size outputs.
A LiteRT model is for t2t-lite-translate, which needs no TensorFlow; install it from a checkout of
t2t-lite with pip install ./runtime.
"""

import sys
import typing
from collections.abc import Sequence

from absl import flags

from t2t_lite import fields
from t2t_lite.bin import command
from t2t_lite.decode import options

FLAGS = command.new_flags()
REFUSED = (*options.NOT_EXPORTED, "precision", "constrained")  # in --decode_hparams
command.define_run(FLAGS)
command.define_strings(
    FLAGS,
    export_dir="Folder for the export's versions; created if missing.",
)
flags.DEFINE_enum(
    "format",
    "saved_model",
    ["saved_model", "litert"],
    "saved_model: for TensorFlow Serving. litert: for LiteRT, on phones and in t2t-lite-translate; "
    "the fastest for one sentence at a time.",
    flag_values=FLAGS,
)
flags.DEFINE_enum(
    "weights",
    "float32",
    ["float32", "float16", "int8"],
    "Only for --format=litert: how the model stores its weights. float16: half the size, but slow. "
    "int8: a quarter of the size, and the fastest; outputs differ a little.",
    flag_values=FLAGS,
)
flags.DEFINE_enum(
    "precision",
    "float32",
    typing.get_args(options.Precision),
    f"Only for --format=saved_model. {fields.help_of(options.DecodeOptions, 'precision')}",
    flag_values=FLAGS,
)
_help = fields.help_of(options.DecodeOptions, "max_source_length")
command.define_integers(
    FLAGS, 2, max_source_length=f"{_help} Give it here or in --decode_hparams, not in both."
)
command.define_strings(
    FLAGS,
    decode_hparams="Decoding options of the export, as name=value,name=value; give the flag once. "
    f"{command.MODEL_DEFAULTS} batch_size and batch_tokens are only for --format=saved_model: "
    "larger batches of a server are translated in parts."
    f"\n{command.table(options.DecodeOptions, without=REFUSED)}",
)
REQUIRED = command.require(FLAGS, "output_dir", "export_dir")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    return command.run(_export, FLAGS, doc=__doc__, required=REQUIRED, argv=argv)


def _export() -> None:
    changes = options.parse(FLAGS.decode_hparams or "")
    is_lite = FLAGS.format == "litert"
    of_batches = [name for name in ("batch_size", "batch_tokens") if name in changes]
    command.refuse(
        {
            "give the precision as --precision, not in --decode_hparams": "precision" in changes,
            "max_source_length: give it once": (
                FLAGS.max_source_length and "max_source_length" in changes
            ),
            f"LiteRT translates one sentence at a time: leave out {', '.join(of_batches)}": (
                is_lite and of_batches
            ),
            "--weights is for --format=litert; see --precision": (
                FLAGS.weights != "float32" and not is_lite
            ),
            "--precision is for TensorFlow: with --format=litert give --weights": (
                FLAGS.precision != "float32" and is_lite
            ),
        }
    )
    if FLAGS.max_source_length:
        changes["max_source_length"] = FLAGS.max_source_length
    with command.quiet_import():
        from t2t_lite.run import plain_paths
        from t2t_lite.serving import export, exported
    path = export.export(
        FLAGS.output_dir,
        FLAGS.export_dir,
        checkpoint_path=FLAGS.checkpoint_path,
        format=FLAGS.format,
        weights=FLAGS.weights,
        precision=FLAGS.precision,
        **changes,
    )
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    if is_lite:
        print(f"{path}: {size / 1e6:.1f} MB; t2t-lite-translate {path.parent}")
        return
    names = exported.record(path)["signatures"]
    print(
        f"{path}: {size / 1e6:.1f} MB, requests of up to {export.MAX_ROWS:,} rows, "
        f"signatures {', '.join(names)}"
    )
    if not plain_paths.is_plain(path.resolve()):
        print(
            f"TensorFlow Serving cannot load from {path.parent}: it takes *?[]\\ in a path for a "
            "pattern, and needs UTF-8; copy the export to another folder for it",
            file=sys.stderr,
        )


if __name__ == "__main__":
    sys.exit(main())
