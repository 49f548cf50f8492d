#!/usr/bin/env bash
# Restricted self-attention where it matters, as in docs/variants.md: documents of 500 to 2,000 tokens,
# made from consecutive sentences, with attention_window = 64, 256 and 0 (all), everything else equal.
# A model learns from the single sentences first, then from passages of 20 to 200 words; each of the
# three goes on from its weights.
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

join() { # NAME WORDS SOURCE TARGET [flags]: documents of so many words, from fewest to most
  python scripts/join_sentences.py "$3" "$4" --words="$2" --raw_dir="$work/$1/raw" "${@:5}"
}

encode() { # NAME FLAG: the vocabulary's
  t2t-lite-datagen --problem=parallel_text --raw_dir="$work/$1/raw" --data_dir="$work/$1/data" "$2"
}

model=num_encoder_layers=2,num_decoder_layers=2,dropout=0.2,batch_tokens=4096
train() { # DATA RUN HPARAMS [flags]
  with_peak_memory t2t-lite-trainer --problem=parallel_text --hparams_set=transformer_tiny \
    --data_dir="$work/$1/data" --output_dir="$work/$2" --eval_sentences=0 --eval_frequency=200 \
    "${@:4}" --hparams="$model,$3"
}

sentences=$work/sentences/raw
join documents 300,1200 "$source_file" "$target_file" --sentences_dir="$sentences"
encode sentences --vocab_size=4000
# The highest rates are 0.004, then 0.002.
train sentences sentences/run \
  train_steps=3000,warmup_steps=800,learning_rate_scale=1.28,max_buckets=6 "${@:4}"

join passages 20,200 "$sentences/train.source" "$sentences/train.target"
encode passages "--vocab_from=$work/sentences/run"
train passages passages/run \
  train_steps=1500,warmup_steps=200,learning_rate_scale=0.32,max_buckets=6,max_length=512 \
  --warm_start_from="$work/sentences/run" "${@:4}"

encode documents "--vocab_from=$work/sentences/run"
for window in 64 256 0; do
  echo "attention_window=$window:"
  hparams=train_steps=600,warmup_steps=200,learning_rate_scale=0.32,max_buckets=3,max_length=2048
  train documents "window_$window" "attention_window=$window,$hparams" \
    --warm_start_from="$work/passages/run" "${@:4}"
  t2t-lite-decoder --output_dir="$work/window_$window" --split=test --decode_hparams=beam_size=1
done
