"""A model's description: its counts are the model's (hparams/ compares them to the paper's)."""

import dataclasses

import pytest
import tiny_run

from t2t_lite import config
from t2t_lite.bin import trainer
from t2t_lite.model import next_word
from t2t_lite.train import describe

SMALL = config.HParams(
    d_model=16, d_ff=24, num_heads=2, d_k=4, d_v=6, num_encoder_layers=2, num_decoder_layers=3
)


@pytest.mark.parametrize(
    "hparams",
    [
        SMALL,
        dataclasses.replace(SMALL, pre_norm=True),
        dataclasses.replace(SMALL, position_encoding="learned", max_length=40),
        dataclasses.replace(
            SMALL,
            embeddings="separate",
            vocab_multiple=1,
            imported=config.ImportedModel(source_vector=True),
        ),
        dataclasses.replace(
            SMALL, imported=config.ImportedModel(attention_bias=True, logits_bias=True)
        ),
        dataclasses.replace(SMALL, attention_function="additive"),
        dataclasses.replace(
            SMALL, imported=config.ImportedModel(attention_bias=True, start_vector=True)
        ),
        dataclasses.replace(
            SMALL, embeddings="separate", imported=config.ImportedModel(source_vocab_size=35)
        ),
        dataclasses.replace(SMALL, relative_bias=3, next_word=2),
    ],
    ids=["paper", "pre-norm", "learned positions", "of tensor2tensor", "of Marian", "additive"]
    + ["of OpenNMT-tf", "vocabularies of both sides", "biases"],
)
def test_counts_are_the_models(hparams):
    model = next_word.create(hparams, 61, words=tiny_run.tree_task().grammar)
    expected = sum(variable.shape.num_elements() for variable in model.named_variables().values())
    assert describe.describe(hparams, 61).parameters == expected


def test_the_command_needs_no_data(capsys):
    assert trainer.main(["t2t-lite-trainer", "--describe", "--hparams_set=transformer_base"]) == 0
    text = capsys.readouterr().out
    assert "encoder self-attention" in text
    assert "65 million" in text
    assert "FLOPs" in text
    for change in ("d_ff=64", "pre_norm=true"):
        changed = ["--describe", "--hparams_set=transformer_base", f"--hparams={change}"]
        assert trainer.main(["t2t-lite-trainer", *changed]) == 0
        assert "Table 3" not in capsys.readouterr().out
    assert trainer.main(["t2t-lite-trainer", "--describe"]) == 2


def test_the_command_describes_the_model_for_given_data(tiny_data, capsys):
    flags = ["--describe", "--hparams_set=transformer_base", f"--data_dir={tiny_data}"]
    assert trainer.main(["t2t-lite-trainer", *flags, "--problem=parallel_text"]) == 0
    assert "of them 600 ids" in capsys.readouterr().out
    assert trainer.main(["t2t-lite-trainer", *flags]) == 2
    assert "--problem must be given" in capsys.readouterr().err
