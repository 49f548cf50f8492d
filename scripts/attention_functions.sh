#!/usr/bin/env bash
# Section 3.2.1's comparison on Multi30k, as in docs/variants.md: scaled_dot, dot and additive
# attention with heads of 16 and of 64, all else equal: 8 or 2 heads, since d_k is d_model / num_heads
# as in rows A of Table 3. Interrupted, the same command goes on.
#
#   scripts/attention_functions.sh RAW_DIR [WORK_DIR] [flags for the trainer]
#
# RAW_DIR holds {train,val,test_2016_flickr}.{en,de}, plain or compressed.
set -euo pipefail
raw=$(realpath "${1:?usage: scripts/attention_functions.sh RAW_DIR [WORK_DIR]}")
work=$(realpath -m "${2:-$(dirname "${BASH_SOURCE[0]}")/../runs/attention_functions}")
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

# Two layers, and the highest rate, 0.003, after half the steps.
model=num_encoder_layers=2,num_decoder_layers=2,dropout=0.1,learning_rate_scale=0.68
training=warmup_steps=400,train_steps=800,batch_tokens=2048,max_length=64,max_buckets=4
t2t-lite-datagen --problem=multi30k_ende --raw_dir="$raw" --data_dir="$work/data"
for function in scaled_dot dot additive; do
  for size in 16 64; do
    run=$work/${function}_$size
    heads=num_heads=$((128 / size)),d_k=$size,d_v=$size
    t2t-lite-trainer --problem=multi30k_ende --data_dir="$work/data" --output_dir="$run" \
      --hparams_set=transformer_tiny --eval_frequency=400 "${@:3}" \
      --hparams="attention_function=$function,$heads,$model,$training"
    echo "$function with d_k = $size, test_2016:"
    t2t-lite-decoder --output_dir="$run" --split=test --decode_hparams=beam_size=4
  done
done
