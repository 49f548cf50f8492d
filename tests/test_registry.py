"""Names: snake case, close matches, a user's own folder."""

import sys

import pytest

from t2t_lite import config, errors, registry


@pytest.mark.parametrize(
    ("name", "expected"),
    [("Wmt14Ende", "wmt14_ende"), ("ParallelText", "parallel_text"), ("ToyEnfr", "toy_enfr")],
)
def test_snake_case(name, expected):
    assert registry.snake_case(name) == expected


def test_sets_and_problems_are_found_by_name():
    assert registry.hparams("transformer_big").d_model == 1024
    assert registry.problem("toy_ende").name == "toy_ende"
    assert registry.problem("toy_ende_rev").name == "toy_ende_rev"


@pytest.mark.parametrize(
    ("find", "name", "close"),
    [
        (registry.problem, "wmt14_end", "wmt14_ende"),
        (registry.hparams, "transformer_bigg", "transformer_big"),
    ],
)
def test_an_unknown_name_is_answered_with_close_ones(find, name, close):
    with pytest.raises(errors.UserError, match=f"unknown .*did you mean.*{close}"):
        find(name)


def test_every_entry_has_a_line_about_it():
    for table in (registry.problems(), registry.hparams_sets()):
        assert all(table.values()), [name for name, line in table.items() if not line]


def test_a_users_folder_registers_its_content(tmp_path):
    folder = tmp_path / "my_translations"
    folder.mkdir()
    (folder / "sets.py").write_text(
        "import dataclasses\n"
        "from t2t_lite import config, registry\n"
        "@registry.register_hparams\n"
        "def transformer_of_mine():\n"
        '    """Mine."""\n'
        "    return dataclasses.replace(config.HParams(), d_ff=1234)\n"
    )
    registry.load_user_dir(str(folder))
    assert registry.hparams("transformer_of_mine") == config.HParams(d_ff=1234)
    registry.load_user_dir(str(folder))  # again is no error
    assert str(tmp_path) not in sys.path


def test_a_missing_folder_is_named():
    with pytest.raises(errors.UserError, match="--t2t_usr_dir=nowhere"):
        registry.load_user_dir("nowhere")


def test_a_taken_module_name_is_refused(tmp_path):
    (tmp_path / "json").mkdir()
    with pytest.raises(errors.UserError, match="json"):
        registry.load_user_dir(str(tmp_path / "json"))
