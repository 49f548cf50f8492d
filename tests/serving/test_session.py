"""A Session's answers are those of the SavedModel as TensorFlow loads it."""

import shutil

import numpy as np
import pytest
import tensorflow as tf
import tiny_run
from tensorflow.core.protobuf import config_pb2

from t2t_lite import errors
from t2t_lite.decode import matmuls
from t2t_lite.serving import export, session

INPUTS = {
    "serving_default": {"inputs": [*tiny_run.SENTENCES, ""]},
    "nbest": {"inputs": tiny_run.SENTENCES},
    "score": {"inputs": ["a dog runs"], "targets": ["he sleeps"]},
    "tokenize": {"inputs": tiny_run.SENTENCES},
    "from_ids": {"ids": ["5 6 1", "7", ""]},
}


@pytest.mark.parametrize("precision", ["float32", "mixed_int8"])
def test_all_signatures_answer_alike(precision, export_dir, run_dir, tmp_path):
    path = export_dir / "1"
    if precision == "mixed_int8":
        if not matmuls.has_integers():
            pytest.skip("this processor does not multiply 8-bit integers")
        path = export.export(run_dir, tmp_path, precision=precision)
    loaded, own = tf.saved_model.load(str(path)).signatures, session.Session(path)
    assert own.specs.keys() == loaded.keys() == INPUTS.keys()
    for name, inputs in INPUTS.items():
        expected = loaded[name](**{key: tf.constant(rows) for key, rows in inputs.items()})
        arrays = {key: tf.constant(rows).numpy() for key, rows in inputs.items()}
        # One sentence has a search of its own.
        for rows in (slice(None), slice(0, 1)):
            outputs = own.run(name, {key: array[rows] for key, array in arrays.items()})
            assert outputs.keys() == expected.keys()
            for key, output in outputs.items():
                width = output.shape[1:2] and slice(output.shape[1])
                wanted = expected[key].numpy()[rows]
                wanted = wanted[:, width] if width else wanted
                if output.dtype == np.float32:
                    np.testing.assert_allclose(output, wanted, atol=2e-5)
                else:
                    assert output.tolist() == wanted.tolist()


@pytest.mark.parametrize("name", INPUTS)
def test_a_wrong_shape_is_named_before_anything_else_fails(name, export_dir):
    """As in a server: it does not compare a request with the signature, and Python would."""
    own = session.Session(export_dir / "1")
    signature = own.definitions[name]
    call = own._session._make_callable_from_options(
        config_pb2.CallableOptions(
            feed=[info.name for info in signature.inputs.values()],
            fetch=[info.name for info in signature.outputs.values()],
        )
    )
    for shape, wrong in (("[1,1]", [["x"]]), ("[]", "x")):
        columns = [np.array(wrong, object)] * len(signature.inputs)
        with pytest.raises(tf.errors.InvalidArgumentError, match="_must_be_a_list") as caught:
            call(*columns)
        assert f"{shape} is not compatible with expected shape [?]" in caught.value.message


def test_an_export_that_lacks_its_variables_is_refused(export_dir, tmp_path):
    shutil.copytree(export_dir / "1", tmp_path / "1")
    shutil.rmtree(tmp_path / "1" / "variables")
    with pytest.raises(errors.UserError, match="not a complete SavedModel"):
        session.Session(tmp_path / "1")
