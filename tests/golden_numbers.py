"""Numbers that tensor2tensor 1.15.7 computed (tests/golden), as fixtures' raw material."""

import dataclasses
import json
import pathlib
from collections.abc import Mapping

import numpy as np
import t2t_weights

from t2t_lite import config
from t2t_lite.model import transformer

DIRECTORY = pathlib.Path(__file__).parent / "golden"


@dataclasses.dataclass(frozen=True)
class Golden:
    """One of the original's small models: arrays, notes, and our model with its weights."""

    arrays: Mapping[str, np.ndarray]
    notes: dict
    model: transformer.Transformer

    def group(self, prefix: str) -> dict[str, np.ndarray]:
        """Return the arrays below `prefix` under our variable names."""
        names = [name for name in self.arrays if name.startswith(f"{prefix}/transformer/")]
        return t2t_weights.convert({n.removeprefix(f"{prefix}/"): self.arrays[n] for n in names})


def load(name: str) -> Golden:
    """Load model "t2t_paper" or "t2t_prenorm"."""
    arrays = np.load(DIRECTORY / f"{name}.npz")
    notes = json.loads((DIRECTORY / f"{name}.json").read_text())
    hparams = config.HParams(
        d_model=32,
        d_ff=64,
        num_heads=4,
        d_k=8,
        d_v=8,
        num_encoder_layers=2,
        num_decoder_layers=2,
        dropout=0.0,
        position_encoding="sinusoid_t2t",
        pre_norm=name == "t2t_prenorm",
        adam_beta2=0.997 if name == "t2t_prenorm" else 0.98,
    )
    # 61 rows exactly: spare rows would take part in the softmax.
    model = transformer.Transformer(hparams, 61, vocab_multiple=1)
    golden = Golden(arrays, notes, model)
    assign(model, golden.group("weights"))
    return golden


def assign(model: transformer.Transformer, values: dict[str, np.ndarray]) -> None:
    """Set every variable of the model; the names must match exactly."""
    variables = model.named_variables()
    assert variables.keys() == values.keys()
    for name, variable in variables.items():
        variable.assign(values[name])
