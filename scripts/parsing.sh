#!/usr/bin/env bash
# A parsing row of docs/results.md: transformer_parsing_small, the last ten checkpoints averaged, the
# test trees parsed by the constrained search and by the free one. Interrupted, the same command goes
# on.
#
#   scripts/parsing.sh RAW_DIR [PROBLEM] [WORK_DIR] [flags for the trainer]
#
# PROBLEM is craft_parsing (the default), wsj_sample_parsing or wsj_sample_craft_parsing; with "_tags"
# at its end words have their tags instead of the symbol XX.
#
# RAW_DIR holds CRAFT's penn.tgz, the sample's combined.tgz, or both.
set -euo pipefail
raw=$(realpath "${1:?usage: scripts/parsing.sh RAW_DIR [PROBLEM] [WORK_DIR]}")
problem=${2:-craft_parsing}
work=$(realpath -m "${3:-$(dirname "${BASH_SOURCE[0]}")/../runs/$problem}")
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

t2t-lite-datagen --problem="$problem" --raw_dir="$raw" --data_dir="$work/data"
t2t-lite-trainer --problem="$problem" --data_dir="$work/data" --output_dir="$work/run" \
  --hparams_set=transformer_parsing_small --save_checkpoints_steps=200 --eval_frequency=2000 \
  --eval_sentences=100 "${@:4}"
t2t-lite-avg-checkpoints --output_dir="$work/run"
for constrained in true false; do
  t2t-lite-decoder --output_dir="$work/run" --checkpoint_path="$work/run/averaged" --split=test \
    --decode_hparams=constrained=$constrained
done
