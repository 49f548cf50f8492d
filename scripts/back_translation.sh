#!/usr/bin/env bash
# Back-translation (Sennrich et al. 2016): text of the target language alone makes a better model. A
# model of the other direction translates it; these pairs and the genuine ones train the model that is
# wanted. Interrupted, the same command goes on; other text, flags or weight want another WORK_DIR. It
# scores the model without such pairs, too.
#
#   [GENUINE_WEIGHT=1] scripts/back_translation.sh RAW_DIR MONOLINGUAL WORK_DIR LANGUAGE [trainer flags]
#
# RAW_DIR holds {train,dev,test}.{source,target}, MONOLINGUAL is a file of target sentences, none of
# them compressed; LANGUAGE is their code, e.g. de. Each genuine pair is there GENUINE_WEIGHT times.
# All three models are transformer_tiny unless the flags name another set.
set -euo pipefail
usage="usage: scripts/back_translation.sh RAW_DIR MONOLINGUAL WORK_DIR LANGUAGE [trainer flags]"
raw=$(realpath "${1:?$usage}")
monolingual=$(realpath "${2:?$usage}")
work=$(realpath -m "${3:?$usage}")
language=${4:?$usage}
flags=(--hparams_set=transformer_tiny --save_checkpoints_steps=200 "${@:5}")
vocab_size=${VOCAB_SIZE:-8000}
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
ls "$raw"/{train,dev,test}.{source,target} > /dev/null # says which is missing
grep -qI . "$monolingual" || { echo "$monolingual: expected plain text" >&2; exit 1; }

train() { # PROBLEM DATA_DIR OUTPUT_DIR
  t2t-lite-trainer --problem="$1" --data_dir="$2" --output_dir="$3" "${flags[@]}"
  t2t-lite-avg-checkpoints --output_dir="$3"
}
score() { # OUTPUT_DIR
  t2t-lite-decoder --output_dir="$1" --checkpoint_path="$1/averaged" --split=test \
    --target_language="$language"
}

# The other direction
t2t-lite-datagen --problem=parallel_text --raw_dir="$raw" --data_dir="$work/data" \
  --vocab_size="$vocab_size"
train parallel_text_rev "$work/data" "$work/reverse"
t2t-lite-decoder --output_dir="$work/reverse" --checkpoint_path="$work/reverse/averaged" \
  --decode_from_file="$monolingual" --decode_to_file="$work/synthetic.source"

# Genuine and synthetic pairs
lines() { sed '$a\' "$1"; } # with a line feed after the last one
genuine() { for ((i = 0; i < ${GENUINE_WEIGHT:-1}; i++)); do lines "$raw/train.$1"; done; }
mkdir -p "$work/mixed"
{ genuine source; lines "$work/synthetic.source"; } > "$work/mixed/train.source"
{ genuine target; lines "$monolingual"; } > "$work/mixed/train.target"
cp "$raw"/{dev,test}.{source,target} "$work/mixed"
t2t-lite-datagen --problem=parallel_text --raw_dir="$work/mixed" --data_dir="$work/mixed_data" \
  --vocab_size="$vocab_size"
train parallel_text "$work/mixed_data" "$work/run"

# Without them
train parallel_text "$work/data" "$work/without"
echo "without back-translation:" && score "$work/without"
echo "with back-translation:" && score "$work/run"
