#!/usr/bin/env bash
# From nothing to a served translation in about ten minutes on two CPU cores: installs,
# generates the embedded problem, trains, translates its test split, scores and exports.
#
#   scripts/quickstart.sh [folder for data and run; default: runs/quickstart]
set -euo pipefail
work=$(realpath -m "${1:-$(dirname "${BASH_SOURCE[0]}")/../runs/quickstart}")
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

say() { printf '\n\033[1m$ %s\033[0m\n' "$*"; "$@"; }

say t2t-lite-datagen --problem=toy_ende --data_dir="$work/data"
say t2t-lite-trainer --problem=toy_ende --data_dir="$work/data" --output_dir="$work/run" \
  --hparams_set=transformer_toy --eval_frequency=300
say t2t-lite-decoder --output_dir="$work/run" --decode_from_file="$work/data/toy_ende-test.inputs.txt" \
  --decode_to_file="$work/test.de"
say t2t-lite-bleu --translation="$work/test.de" --reference="$work/data/toy_ende-test.targets.txt" \
  --target_language=de
say t2t-lite-exporter --output_dir="$work/run" --export_dir="$work/export"
# The export needs TensorFlow and TensorFlow Text alone; what these log goes to a file.
say python scripts/translate.py "$work/export" \
  "Our son does not fill his old bottle because he is too hungry." 2>"$work/translate.log"
printf '\nTo see what the model does, in a browser:\n  . .venv/bin/activate\n  t2t-lite-explore --output_dir=%s\n' "$work/run"
