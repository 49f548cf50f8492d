#!/usr/bin/env bash
# A small English-German model of everyday sentences, captions, software help and a little news, scored
# on newstest2014: to compare decoders on long sentences. Interrupted, the same command goes on.
#
#   scripts/newstest2014.sh CORPORA [WORK_DIR] [flags for the trainer, e.g. --train_steps=6000]
#
# CORPORA holds {tatoeba,libreoffice_help}/train.en-de.{en,de}.gz, multi30k/train.{en,de}.gz and
# newstest/newstest201{2,3,4}.en-de.{en,de}.gz.
set -euo pipefail
corpora=$(realpath "${1:?usage: scripts/newstest2014.sh CORPORA [WORK_DIR]}")
work=$(realpath -m "${2:-$(dirname "${BASH_SOURCE[0]}")/../runs/newstest2014}")
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

mkdir -p "$work/raw"
for side in source.en target.de; do
  name=${side%.*} language=${side#*.}
  (
    cd "$corpora"
    zcat {tatoeba,libreoffice_help}/train.en-de."$language".gz multi30k/train."$language".gz \
      newstest/newstest2012.en-de."$language".gz > "$work/raw/train.$name"
    zcat newstest/newstest2013.en-de."$language".gz > "$work/raw/dev.$name"
    zcat newstest/newstest2014.en-de."$language".gz > "$work/raw/test.$name"
  )
done

t2t-lite-datagen --problem=parallel_text --raw_dir="$work/raw" --data_dir="$work/data" --vocab_size=8000
t2t-lite-trainer --problem=parallel_text --data_dir="$work/data" --output_dir="$work/run" \
  --hparams_set=transformer_tiny --hparams=dropout=0.1 --train_steps=20000 \
  --save_checkpoints_steps=200 "${@:3}"
t2t-lite-avg-checkpoints --output_dir="$work/run"
t2t-lite-decoder --output_dir="$work/run" --checkpoint_path="$work/run/averaged" --split=test \
  --target_language=de
