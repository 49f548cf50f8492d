#!/usr/bin/env bash
# A parser of scripts/parsing.sh goes on with one treebank alone: from the average of its last
# checkpoints, with its vocabulary. The learning rate rises to half of that one's highest within 100
# steps and then falls. The last ten checkpoints are averaged and the test trees parsed. Interrupted,
# the same command goes on; another parser wants another WORK_DIR.
#
#   scripts/parsing_adapt.sh FROM RAW_DIR [PROBLEM] [WORK_DIR] [flags for the trainer]
#
# FROM is the run of a parser that has learnt from that treebank and others, as of
# wsj_sample_craft_parsing. PROBLEM is wsj_sample_parsing by default.
set -euo pipefail
usage="usage: scripts/parsing_adapt.sh FROM RAW_DIR [PROBLEM] [WORK_DIR]"
from=$(realpath "${1:?$usage}")
raw=$(realpath "${2:?$usage}")
problem=${3:-wsj_sample_parsing}
work=$(realpath -m "${4:-$(dirname "${BASH_SOURCE[0]}")/../runs/${problem}_adapted}")
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

t2t-lite-avg-checkpoints --output_dir="$from"
t2t-lite-datagen --problem="$problem" --raw_dir="$raw" --vocab_from="$from" --data_dir="$work/data"
t2t-lite-trainer --problem="$problem" --data_dir="$work/data" --output_dir="$work/run" \
  --hparams_set=transformer_parsing_small --hparams=learning_rate_scale=0.18,warmup_steps=100 \
  --warm_start_from="$from/averaged" --train_steps=600 --save_checkpoints_steps=50 \
  --eval_frequency=150 --eval_sentences=100 "${@:5}"
t2t-lite-avg-checkpoints --output_dir="$work/run"
t2t-lite-decoder --output_dir="$work/run" --checkpoint_path="$work/run/averaged" --split=test
