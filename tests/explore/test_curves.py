"""The curves that the page draws."""

import tensorflow as tf

from t2t_lite.explore import curves


def test_what_is_not_finite_is_left_out(tmp_path):
    with tf.summary.create_file_writer(str(tmp_path)).as_default():
        for step, loss in enumerate((3.0, float("nan"), 2.0, float("inf"))):
            tf.summary.scalar("loss", loss, step=step)
    assert curves.read(tmp_path) == {"loss": [[0, 3.0], [2, 2.0]]}
