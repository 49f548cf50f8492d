#!/usr/bin/env bash
# Trains a small Transformer of another framework, 2 + 2 layers of 128, on Multi30k English-German:
# the models of docs/results.md, section "Imported models". benchmarks/decode_text.py decodes with them.
#
#   scripts/train_elsewhere.sh marian|tensor2tensor|opennmt_tf|fairseq RAW_DIR WORK_DIR PYTHON
#
# RAW_DIR holds {train,val,test_2016_flickr}.{en,de}, plain or compressed with gzip. PYTHON is that of
# an environment with the framework (pymarian, tensor2tensor, opennmt-tf, fairseq); the one of
# t2t-lite's own environment, which cuts text into pieces, is `python`. WORK_DIR/model is the result.
# decode_text.py needs sentencepiece beside fairseq and pymarian. STEPS=1500 is the default.
set -euo pipefail
framework=${1:?usage: scripts/train_elsewhere.sh FRAMEWORK RAW_DIR WORK_DIR PYTHON}
raw=$(realpath "$2")
peer=$(realpath -s "$4")
mkdir -p "$3/model"
cd "$3"

for part in train val test_2016_flickr; do
  for language in en de; do
    file=$part.$language
    if [ -e "$raw/$file" ]; then cp "$raw/$file" .; else zcat "$raw/$file.gz" >"$file"; fi
  done
done

# sentencepiece_model PREFIX SIZE FILE[,FILE]: PREFIX.model and PREFIX.vocab
sentencepiece_model() {
  python -c 'import sys, sentencepiece
prefix, size, files = sys.argv[1:]
sentencepiece.SentencePieceTrainer.Train(
    input=files.split(","), model_prefix=prefix, vocab_size=int(size), minloglevel=2)' "$@"
}

# pieces MODEL <text: the text's pieces with blanks between
pieces() {
  python -c 'import sys, sentencepiece
model = sentencepiece.SentencePieceProcessor(model_file=sys.argv[1])
sys.stdout.writelines(" ".join(model.EncodeAsPieces(line)) + "\n" for line in sys.stdin)' "$1"
}

train_marian() { # as OPUS-MT's models are: a SentencePiece model for each side, one vocabulary
  sentencepiece_model model/source 3000 train.en
  sentencepiece_model model/target 3000 train.de
  mv model/source.model model/source.spm
  mv model/target.model model/target.spm
  rm model/*.vocab
  for part in train val; do
    pieces model/source.spm <$part.en >$part.pieces.en
    pieces model/target.spm <$part.de >$part.pieces.de
  done
  "$peer" -c 'import sys, pymarian; pymarian.Trainer(" ".join(sys.argv[1:])).train()' \
    --type transformer --model model/model.npz --vocabs model/vocab.yml model/vocab.yml \
    --train-sets train.pieces.en train.pieces.de --sync-sgd --cpu-threads 2 --workspace 1000 \
    --dim-emb 128 --enc-depth 2 --dec-depth 2 --transformer-heads 4 --transformer-dim-ffn 512 \
    --transformer-ffn-activation swish --transformer-dropout 0.1 --tied-embeddings-all true \
    --cost-type ce-mean-words --label-smoothing 0.1 --clip-norm 1 --mini-batch 40 \
    --learn-rate 0.002 --lr-warmup 400 --lr-decay-inv-sqrt 400 --optimizer-params 0.9 0.98 1e-09 \
    --max-length 100 --after "${STEPS:-1500}u" --disp-freq 100 --save-freq 10000u --seed 1
}

train_tensor2tensor() { # transformer_tiny: layer norm before each sub-layer
  mkdir -p problem/raw data
  cp train.?? val.?? problem/raw
  cat >problem/__init__.py <<'END'
"""A tensor2tensor problem: the pairs in raw/, which lies beside this file."""

import os

from tensor2tensor.data_generators import problem, text_problems
from tensor2tensor.utils import registry

_RAW = os.path.join(os.path.dirname(os.path.abspath(__file__)), "raw")


@registry.register_problem
class TranslateEndeMulti30k(text_problems.Text2TextProblem):
    approx_vocab_size = 8192
    is_generate_per_split = True
    dataset_splits = [
        {"split": problem.DatasetSplit.TRAIN, "shards": 1},
        {"split": problem.DatasetSplit.EVAL, "shards": 1},
    ]

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        part = "train" if dataset_split == problem.DatasetSplit.TRAIN else "val"
        paths = [os.path.join(_RAW, f"{part}.{language}") for language in ("en", "de")]
        return text_problems.text2text_txt_iterator(*paths)
END
  local flags=(--t2t_usr_dir=problem --problem=translate_ende_multi30k --data_dir=data)
  local bin=${peer%/*}
  "$bin/t2t-datagen" "${flags[@]}" --tmp_dir=data/tmp
  "$bin/t2t-trainer" "${flags[@]}" --output_dir=model --model=transformer --schedule=train \
    --hparams_set=transformer_tiny --hparams=batch_size=2048,learning_rate_warmup_steps=400 \
    --train_steps="${STEPS:-1500}" --local_eval_frequency=10000 --random_seed=1
  cp data/vocab.* model
}

train_fairseq() { # one SentencePiece model and one dict.txt for both sides
  sentencepiece_model model/spm 4000 train.en,train.de
  for part in train val; do
    for language in en de; do pieces model/spm.model <$part.$language >$part.pieces.$language; done
  done
  local bin=${peer%/*}
  "$bin/fairseq-preprocess" --source-lang en --target-lang de --joined-dictionary \
    --trainpref train.pieces --validpref val.pieces --destdir data
  # More threads are slower where others use the cores.
  OMP_NUM_THREADS=1 "$bin/fairseq-train" data --cpu --arch transformer --share-all-embeddings --seed 1 \
    --encoder-layers 2 --encoder-embed-dim 128 --encoder-attention-heads 4 \
    --encoder-ffn-embed-dim 512 --decoder-layers 2 --decoder-embed-dim 128 \
    --decoder-attention-heads 4 --decoder-ffn-embed-dim 512 --dropout 0.1 --max-tokens 2048 \
    --criterion label_smoothed_cross_entropy --label-smoothing 0.1 --optimizer adam \
    --adam-betas "(0.9, 0.98)" --lr 0.003 --lr-scheduler inverse_sqrt --warmup-updates 300 \
    --max-update "${STEPS:-1500}" --disable-validation --no-epoch-checkpoints --save-dir model
  mv model/checkpoint_last.pt model/checkpoint_best.pt
  cp data/dict.de.txt model
}

train_opennmt_tf() { # a SentencePiece model and a vocabulary for each side
  local bin=${peer%/*}
  for side in en de; do
    sentencepiece_model $side 4000 train.$side
    "$bin/onmt-build-vocab" --from_vocab $side.vocab --from_format sentencepiece \
      --save_vocab $side.txt
  done
  cat >description.py <<'END'
import opennmt


def model():
    return opennmt.models.Transformer(
        num_layers=2, num_units=128, num_heads=4, ffn_inner_dim=512, dropout=0.1
    )
END
  cat >config.yml <<END
model_dir: model
data:
  train_features_file: train.en
  train_labels_file: train.de
  source_vocabulary: en.txt
  target_vocabulary: de.txt
  source_tokenization: {type: SentencePieceTokenizer, params: {model: en.model}}
  target_tokenization: {type: SentencePieceTokenizer, params: {model: de.model}}
params:
  optimizer: Adam
  optimizer_params: {beta_1: 0.9, beta_2: 0.98, epsilon: 1.0e-9}
  learning_rate: 2.0
  decay_type: NoamDecay
  decay_params: {model_dim: 128, warmup_steps: 400}
  label_smoothing: 0.1
train:
  batch_size: 2048
  batch_type: tokens
  length_bucket_width: 2
  sample_buffer_size: -1
  max_step: ${STEPS:-1500}
  save_checkpoints_steps: 10000
  save_summary_steps: 100
END
  "$bin/onmt-main" --model description.py --config config.yml --seed 1 train
}

"train_$framework"
