#!/usr/bin/env bash
# Restricted self-attention where it matters, as in docs/variants.md: documents of 500 to 2,000 tokens,
# made from consecutive sentences, with attention_window = 64, 256 and 0 (all), everything else equal.
# A model learns from the single sentences first, and each of the three goes on from its weights.
# Prints loss, BLEU, and the most memory that each training held. Interrupted, the same command goes on.
#
#   scripts/long_documents.sh SOURCE TARGET [WORK_DIR] [flags for the trainer]
#
# SOURCE and TARGET are files of sentences in the order of their documents, plain or compressed.
set -euo pipefail
usage="usage: scripts/long_documents.sh SOURCE TARGET [WORK_DIR]"
source_file=$(realpath "${1:?$usage}")
target_file=$(realpath "${2:?$usage}")
work=$(realpath -m "${3:-$(dirname "${BASH_SOURCE[0]}")/../runs/long_documents}")
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

with_peak_memory() { # COMMAND...: run it; what Python, TensorFlow and the data take is part of it
  python -c '
import resource, subprocess, sys
status = subprocess.call(sys.argv[1:])
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
print(f"at most {peak:,.0f} MiB of memory")
sys.exit(status)' "$@"
}

[ -e "$work/documents/raw/test.target" ] ||
  python scripts/join_sentences.py "$source_file" "$target_file" \
    --raw_dir="$work/documents/raw" --sentences_dir="$work/sentences/raw"
common="--problem=parallel_text --hparams_set=transformer_tiny --eval_sentences=0"
model=num_encoder_layers=2,num_decoder_layers=2,dropout=0.2,batch_tokens=4096

# The highest rate is 0.004.
training=train_steps=3000,warmup_steps=800,learning_rate_scale=1.28,max_buckets=6
t2t-lite-datagen --problem=parallel_text --raw_dir="$work/sentences/raw" \
  --data_dir="$work/sentences/data" --vocab_size=4000
t2t-lite-trainer $common --data_dir="$work/sentences/data" --output_dir="$work/sentences/run" \
  --eval_frequency=1000 --hparams="$model,$training" "${@:4}"

# The highest rate is 0.002.
training=train_steps=800,warmup_steps=200,learning_rate_scale=0.32,max_buckets=3,max_length=2048
t2t-lite-datagen --problem=parallel_text --raw_dir="$work/documents/raw" \
  --data_dir="$work/documents/data" --vocab_from="$work/sentences/run"
for window in 64 256 0; do
  echo "attention_window=$window:"
  with_peak_memory t2t-lite-trainer $common --data_dir="$work/documents/data" \
    --output_dir="$work/window_$window" --warm_start_from="$work/sentences/run" \
    --eval_frequency=200 --hparams="attention_window=$window,$model,$training" "${@:4}"
  t2t-lite-decoder --output_dir="$work/window_$window" --split=test --decode_hparams=beam_size=1
done
