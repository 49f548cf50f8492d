"""A whole experiment whose processes are killed equals one that nobody disturbed."""

import pytest

from scripts import chaos
from t2t_lite import errors

pytestmark = pytest.mark.slow


def test_killed_and_started_again_is_undisturbed(tmp_path):
    scale = chaos.Scale(
        kills=1, killed=("datagen", "trainer"), pairs=2_000, train_steps=12, lines=20
    )
    assert chaos.run(tmp_path, scale) == []
    # and it would have seen one that is not
    (tmp_path / "killed" / "test.out").write_bytes(b"something else\n")
    shard = tmp_path / "killed" / "data" / "parallel_text-train-00000-of-00001"
    shard.write_bytes(shard.read_bytes()[:-1] + b"x")
    (tmp_path / "killed" / "data" / "half.incomplete").touch()
    assert list(chaos.differences(tmp_path)) == [
        "killed/data/half.incomplete",
        f"killed/data/{shard.name}",
        "the translations",
        "data/half.incomplete was left behind",
    ]


def test_a_folder_that_holds_something_is_left_alone(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(errors.UserError, match="not empty"):
        chaos.run(tmp_path, chaos.Scale())
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
