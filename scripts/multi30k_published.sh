#!/usr/bin/env bash
# Multi30k by the protocol of the published Transformer-Tiny: lowercased text, tokenized as Moses does,
# some 10,000 joint merges, 8,192 tokens a step, a checkpoint about each epoch, the last ten averaged,
# fairseq's search with beam 5, BLEU of tokens as they are. sacreBLEU (13a, lowercased) of the
# detokenized text stands beside it. Interrupted, the same command goes on; another language or seed
# wants another WORK_DIR.
#
#   scripts/multi30k_published.sh RAW_DIR [de|fr] [WORK_DIR] [flags for the trainer, e.g.
#     --random_seed=2 --hparams=relative_bias=8]
#
# RAW_DIR holds {train,val,test_2016_flickr,test_2017_flickr}.{en,de,fr}, compressed by gzip.
set -euo pipefail
raw=$(realpath "${1:?usage: scripts/multi30k_published.sh RAW_DIR [de|fr] [WORK_DIR]}")
language=${2:-de}
work=$(realpath -m "${3:-$(dirname "${BASH_SOURCE[0]}")/../runs/multi30k_published_$language}")
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

mkdir -p "$work/text"
tokenize() { # NAME SPLIT
  for side in source target; do
    [ $side = source ] && code=en || code=$language
    gzip -dc "$raw/$1.$code.gz" | python scripts/moses.py $code > "$work/text/new"
    mv "$work/text/new" "$work/text/$2.$side"
  done
}
tokenize train train
tokenize val dev
tokenize test_2016_flickr test
tokenize test_2017_flickr test_2017_flickr

# 256 bytes and three more are ids beside the merges and the letters.
t2t-lite-datagen --problem=parallel_text --raw_dir="$work/text" --data_dir="$work/data" \
  --vocab_size=10400
t2t-lite-trainer --problem=parallel_text --data_dir="$work/data" --output_dir="$work/run" \
  --hparams_set=transformer_tiny --hparams=batch_tokens=8192 \
  --save_checkpoints_steps=60 --keep_checkpoint_max=10 "${@:4}"
t2t-lite-avg-checkpoints --output_dir="$work/run"
for split in test_2016_flickr test_2017_flickr; do
  [ $split = test_2016_flickr ] && text=test || text=$split
  t2t-lite-decoder --output_dir="$work/run" --checkpoint_path="$work/run/averaged" \
    --decode_from_file="$work/text/$text.source" --decode_to_file="$work/$split.tokens" \
    --decode_hparams=beam_size=5,length_penalty=power,alpha=1,strict_ends=true,early_stop=true
  echo "$split, tokens as they are:"
  sacrebleu "$work/text/$text.target" -i "$work/$split.tokens" --tokenize none --force --format text
  python scripts/moses.py "$language" --detokenize < "$work/$split.tokens" > "$work/$split.output"
  gzip -dc "$raw/$split.$language.gz" > "$work/$split.reference"
  echo "$split, sacreBLEU of plain text, lowercased:"
  sacrebleu "$work/$split.reference" -i "$work/$split.output" --lowercase --format text
done
