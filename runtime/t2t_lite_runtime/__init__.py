"""Translates with a model that t2t-lite exported to LiteRT, without TensorFlow.

import t2t_lite_runtime

model = t2t_lite_runtime.load("export")
model.translate(["A dog runs."])[0].text
"""

from t2t_lite_runtime.errors import UserError
from t2t_lite_runtime.translator import Hypothesis, Translation, Translator, load

__all__ = ["Hypothesis", "Translation", "Translator", "UserError", "load"]
