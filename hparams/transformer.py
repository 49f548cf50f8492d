"""The paper's models: base, big and every row of Table 3 (Sections 5.3, 5.4, 6.1, 6.2).

Each set is the base model with the row's difference replaced. Scores are the paper's: perplexity
and BLEU on newstest2013 without checkpoint averaging.
"""

import dataclasses

from t2t_lite import config, registry

replace = dataclasses.replace


@registry.register_hparams
def transformer_base() -> config.HParams:
    """Table 3 base: 65 M parameters, 100,000 steps, perplexity 4.92, BLEU 25.8 (test 27.3)."""
    return config.HParams()


@registry.register_hparams
def transformer_big() -> config.HParams:
    """Table 3 big: 213 M parameters, 300,000 steps, perplexity 4.33, BLEU 26.4 (test 28.4)."""
    return replace(
        transformer_base(),
        d_model=1024,
        d_ff=4096,
        num_heads=16,
        dropout=0.3,
        train_steps=300_000,
        averaged_checkpoints=20,
    )


@registry.register_hparams
def transformer_big_enfr() -> config.HParams:
    """The big model for En-Fr: dropout 0.1 instead of 0.3, test BLEU 41.8 (Table 2)."""
    return replace(transformer_big(), dropout=0.1)


@registry.register_hparams
def transformer_base_a1() -> config.HParams:
    """Table 3 A: 1 head; perplexity 5.29, BLEU 24.9."""
    return replace(transformer_base(), num_heads=1, d_k=512, d_v=512)


@registry.register_hparams
def transformer_base_a2() -> config.HParams:
    """Table 3 A: 4 heads; perplexity 5.00, BLEU 25.5."""
    return replace(transformer_base(), num_heads=4, d_k=128, d_v=128)


@registry.register_hparams
def transformer_base_a3() -> config.HParams:
    """Table 3 A: 16 heads; perplexity 4.91, BLEU 25.8."""
    return replace(transformer_base(), num_heads=16, d_k=32, d_v=32)


@registry.register_hparams
def transformer_base_a4() -> config.HParams:
    """Table 3 A: 32 heads; perplexity 5.01, BLEU 25.4."""
    return replace(transformer_base(), num_heads=32, d_k=16, d_v=16)


@registry.register_hparams
def transformer_base_b1() -> config.HParams:
    """Table 3 B: d_k 16; 58 M parameters, perplexity 5.16, BLEU 25.1."""
    return replace(transformer_base(), d_k=16)


@registry.register_hparams
def transformer_base_b2() -> config.HParams:
    """Table 3 B: d_k 32; 60 M parameters, perplexity 5.01, BLEU 25.4."""
    return replace(transformer_base(), d_k=32)


@registry.register_hparams
def transformer_base_c1() -> config.HParams:
    """Table 3 C: 2 layers; 36 M parameters, perplexity 6.11, BLEU 23.7."""
    return replace(transformer_base(), num_encoder_layers=2, num_decoder_layers=2)


@registry.register_hparams
def transformer_base_c2() -> config.HParams:
    """Table 3 C: 4 layers; 50 M parameters, perplexity 5.19, BLEU 25.3."""
    return replace(transformer_base(), num_encoder_layers=4, num_decoder_layers=4)


@registry.register_hparams
def transformer_base_c3() -> config.HParams:
    """Table 3 C: 8 layers; 80 M parameters, perplexity 4.88, BLEU 25.5."""
    return replace(transformer_base(), num_encoder_layers=8, num_decoder_layers=8)


@registry.register_hparams
def transformer_base_c4() -> config.HParams:
    """Table 3 C: d_model 256; 28 M parameters, perplexity 5.75, BLEU 24.5."""
    return replace(transformer_base(), d_model=256, d_k=32, d_v=32)


@registry.register_hparams
def transformer_base_c5() -> config.HParams:
    """Table 3 C: d_model 1024; 168 M parameters, perplexity 4.66, BLEU 26.0."""
    return replace(transformer_base(), d_model=1024, d_k=128, d_v=128)


@registry.register_hparams
def transformer_base_c6() -> config.HParams:
    """Table 3 C: d_ff 1024; 53 M parameters, perplexity 5.12, BLEU 25.4."""
    return replace(transformer_base(), d_ff=1024)


@registry.register_hparams
def transformer_base_c7() -> config.HParams:
    """Table 3 C: d_ff 4096; 90 M parameters, perplexity 4.75, BLEU 26.2."""
    return replace(transformer_base(), d_ff=4096)


@registry.register_hparams
def transformer_base_d1() -> config.HParams:
    """Table 3 D: no dropout; perplexity 5.77, BLEU 24.6."""
    return replace(transformer_base(), dropout=0.0)


@registry.register_hparams
def transformer_base_d2() -> config.HParams:
    """Table 3 D: dropout 0.2; perplexity 4.95, BLEU 25.5."""
    return replace(transformer_base(), dropout=0.2)


@registry.register_hparams
def transformer_base_d3() -> config.HParams:
    """Table 3 D: no label smoothing; perplexity 4.67, BLEU 25.3."""
    return replace(transformer_base(), label_smoothing=0.0)


@registry.register_hparams
def transformer_base_d4() -> config.HParams:
    """Table 3 D: label smoothing 0.2; perplexity 5.47, BLEU 25.7."""
    return replace(transformer_base(), label_smoothing=0.2)


@registry.register_hparams
def transformer_base_e() -> config.HParams:
    """Table 3 E: learned positions instead of sinusoids; perplexity 4.92, BLEU 25.7."""
    return replace(transformer_base(), position_encoding="learned")
