"""The Transformer of "Attention Is All You Need", after tensor2tensor, on TensorFlow 2.

    import t2t_lite

    translator = t2t_lite.Translator.from_output_dir("run")
    translator.translate(["A dog runs."])[0].text

    t2t_lite.load("export").translate(["A dog runs."])    what t2t-lite-exporter wrote
    t2t_lite.attention(translator, "A dog runs.")         its attention weights; drawn in a notebook
    t2t_lite.hparams("transformer_big")                   a named set of hyperparameters
    t2t_lite.problem("wmt14_ende")                        a named problem

In Keras' way (see the page "With Keras"):

    t2t_lite.Transformer(hparams, vocab_size)             the model, a keras.Model
    t2t_lite.EncoderLayer, DecoderLayer, ...              its layers
    t2t_lite.PaperSchedule, SmoothedCrossEntropy, MaskedAccuracy
    t2t_lite.read_data, dataset, save_output_dir          a problem's batches, and the way back

Each is imported when first used, so that `import t2t_lite` takes no time.
"""

import importlib
import sys
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from t2t_lite.decode.translator import Translator
    from t2t_lite.explore.attending import attention
    from t2t_lite.model.attention import MultiHeadAttention, padding_mask
    from t2t_lite.model.embedding import SharedEmbedding
    from t2t_lite.model.feed_forward import FeedForward
    from t2t_lite.model.normalization import LayerNormalization
    from t2t_lite.model.position import PositionalEncoding
    from t2t_lite.model.transformer import DecoderLayer, EncoderLayer, Transformer
    from t2t_lite.registry import hparams, problem
    from t2t_lite.serving.exported import load
    from t2t_lite.train.with_keras import (
        MaskedAccuracy,
        PaperSchedule,
        SmoothedCrossEntropy,
        dataset,
        read_data,
        save_output_dir,
    )

    __version__: str

__all__ = [
    "DecoderLayer",
    "EncoderLayer",
    "FeedForward",
    "LayerNormalization",
    "MaskedAccuracy",
    "MultiHeadAttention",
    "PaperSchedule",
    "PositionalEncoding",
    "SharedEmbedding",
    "SmoothedCrossEntropy",
    "Transformer",
    "Translator",
    "__version__",
    "attention",
    "dataset",
    "hparams",
    "load",
    "padding_mask",
    "problem",
    "read_data",
    "save_output_dir",
]
_WITH_KERAS = "t2t_lite.train.with_keras"
# Module of each public name.
_HOMES = {
    "DecoderLayer": "t2t_lite.model.transformer",
    "EncoderLayer": "t2t_lite.model.transformer",
    "FeedForward": "t2t_lite.model.feed_forward",
    "LayerNormalization": "t2t_lite.model.normalization",
    "MaskedAccuracy": _WITH_KERAS,
    "MultiHeadAttention": "t2t_lite.model.attention",
    "PaperSchedule": _WITH_KERAS,
    "PositionalEncoding": "t2t_lite.model.position",
    "SharedEmbedding": "t2t_lite.model.embedding",
    "SmoothedCrossEntropy": _WITH_KERAS,
    "Transformer": "t2t_lite.model.transformer",
    "Translator": "t2t_lite.decode.translator",
    "attention": "t2t_lite.explore.attending",
    "dataset": _WITH_KERAS,
    "hparams": "t2t_lite.registry",
    "load": "t2t_lite.serving.exported",
    "padding_mask": "t2t_lite.model.attention",
    "problem": "t2t_lite.registry",
    "read_data": _WITH_KERAS,
    "save_output_dir": _WITH_KERAS,
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used (PEP 562)."""
    if name == "__version__":
        from importlib import metadata

        return metadata.version("t2t-lite")
    if name not in _HOMES:
        raise AttributeError(f"module 't2t_lite' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    if _HOMES[name].startswith("t2t_lite.model."):
        # Makes all classes known to Keras, so that load_model finds a compiled model's, too.
        importlib.import_module(_WITH_KERAS)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(types.ModuleType):
    """Keeps `t2t_lite.hparams` the function: a package of that name holds the sets.

    Importing a package within another sets it as an attribute there; this one is found by name.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOMES and isinstance(value, types.ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
