"""A run that tests of training share."""

import pytest
import tiny_training


@pytest.fixture(scope="session")
def trained(tiny_data, tmp_path_factory):
    """Return the output_dir of 12 steps on `tiny_data`."""
    output = tmp_path_factory.mktemp("trained")
    flags = ("--train_steps=12", "--save_checkpoints_steps=4", "--eval_frequency=6")
    assert tiny_training.train(tiny_data, output, *flags) == 0
    return output
