"""What an output_dir's export says beside what its decoder says."""

import pathlib
from typing import Any

import numpy as np
import tensorflow as tf

from t2t_lite.decode import translator
from t2t_lite.serving import export


def says_the_same(
    run_dir: pathlib.Path, export_dir: pathlib.Path, texts: list[str], **changes: Any
) -> tuple[dict[str, Any], list[translator.Translation]]:
    """Export a run and compare the answers to texts; return the signatures and the translations."""
    expected = translator.Translator.from_output_dir(run_dir, **changes).translate(texts)
    export.export(run_dir, export_dir, **changes)
    signatures = tf.saved_model.load(str(export_dir / "1")).signatures
    found = signatures["serving_default"](inputs=tf.constant(texts))
    assert [t.decode() for t in found["outputs"].numpy()] == [t.text for t in expected]
    np.testing.assert_allclose(found["scores"], [t.score for t in expected], atol=1e-5)
    ids = signatures["tokenize"](inputs=tf.constant(texts))["ids"].numpy().tolist()
    assert [[i for i in row if i] for row in ids] == [[*t.source_ids] or [1] for t in expected]
    return signatures, expected
