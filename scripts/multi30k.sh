#!/usr/bin/env bash
# The Multi30k rows of docs/results.md: transformer_tiny_30k, 8,000 steps of 4,096 tokens, the last ten
# checkpoints averaged, test_2016_flickr translated with beam 5. Interrupted, the same command resumes.
#
#   scripts/multi30k.sh RAW_DIR [ende|enfr] [WORK_DIR] [flags for the trainer, e.g. --train_steps=5400]
#
# RAW_DIR holds {train,val,test_2016_flickr}.{en,de,fr}, plain or compressed.
set -euo pipefail
raw=$(realpath "${1:?usage: scripts/multi30k.sh RAW_DIR [ende|enfr] [WORK_DIR]}")
problem=multi30k_${2:-ende}
work=$(realpath -m "${3:-$(dirname "${BASH_SOURCE[0]}")/../runs/$problem}")
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

t2t-lite-datagen --problem="$problem" --raw_dir="$raw" --data_dir="$work/data"
t2t-lite-trainer --problem="$problem" --data_dir="$work/data" --output_dir="$work/run" \
  --hparams_set=transformer_tiny_30k --save_checkpoints_steps=200 "${@:4}"
t2t-lite-avg-checkpoints --output_dir="$work/run"
t2t-lite-decoder --output_dir="$work/run" --checkpoint_path="$work/run/averaged" --split=test
