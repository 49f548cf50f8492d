#!/usr/bin/env bash
# Which recipe suits a corpus: transformer_tiny trained with each list of hparams and each seed, the last
# ten checkpoints averaged, the test set translated; after each seed sacreBLEU's paired test of every
# recipe against the first. Interrupted, the same command goes on.
#
#   SEEDS="1 2 3" scripts/recipes.sh RAW_DIR WORK_DIR RECIPE... [-- flags for the trainer]
#
# RAW_DIR holds {train,dev,test}.{source,target}, not compressed; a recipe is e.g.
# dropout=0.1,relative_bias=8.
set -euo pipefail
usage="usage: scripts/recipes.sh RAW_DIR WORK_DIR RECIPE... [-- flags for the trainer]"
raw=$(realpath "${1:?$usage}")
work=$(realpath -m "${2:?$usage}")
shift 2
recipes=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do recipes+=("$1") && shift; done
flags=("${@:2}")
: "${recipes[0]:?$usage}"
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
ls "$raw"/{train,dev,test}.{source,target} > /dev/null # says which is missing

t2t-lite-datagen --problem=parallel_text --raw_dir="$raw" --data_dir="$work/data" \
  --vocab_size="${VOCAB_SIZE:-8000}"
paired=()
[ ${#recipes[@]} -gt 1 ] && paired=(--paired-bs)
for seed in ${SEEDS:-1}; do
  outputs=()
  for recipe in "${recipes[@]}"; do
    run="$work/seed$seed/$recipe"
    t2t-lite-trainer --problem=parallel_text --data_dir="$work/data" --output_dir="$run" \
      --hparams_set=transformer_tiny --save_checkpoints_steps=100 --eval_frequency=1000 \
      "${flags[@]}" --hparams="$recipe" --random_seed="$seed"
    t2t-lite-avg-checkpoints --output_dir="$run"
    t2t-lite-decoder --output_dir="$run" --checkpoint_path="$run/averaged" \
      --decode_from_file="$raw/test.source" --decode_to_file="$run/test.output"
    outputs+=("$run/test.output")
  done
  echo "seed $seed:"
  sacrebleu "$raw/test.target" -i "${outputs[@]}" --metrics bleu chrf --format text "${paired[@]}"
done
