"""Names: snake case, close matches, a user's own folder."""

import sys

import pytest

from t2t_lite import config, errors, registry
from t2t_lite.bin import trainer

TWICE = "from t2t_lite import registry\n@registry.register_problem\nclass ToyEnde: ...\n"


def test_sets_and_problems_are_found_by_name():
    assert registry.hparams("transformer_big").d_model == 1024
    assert registry.problem("toy_ende").name == "toy_ende"
    assert registry.problem("toy_ende_rev").name == "toy_ende_rev"
    assert registry.snake_case("Wmt14Ende") == "wmt14_ende"


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


SET = """import dataclasses
from t2t_lite import config, registry
@registry.register_hparams
def {name}():
    return dataclasses.replace(config.HParams(), {change})
"""


def test_a_users_folder_registers_its_content_once_a_mistake_is_mended(tmp_path):
    folder = tmp_path / "my_translations"
    folder.mkdir()
    (folder / "a.py").write_text(SET.format(name="transformer_of_mine", change="d_ff=1234"))
    (folder / "b.py").write_text("def x(:\n")
    with pytest.raises(errors.UserError, match=r"b\.py, line 1: SyntaxError"):
        registry.load_user_dir(str(folder))
    (folder / "b.py").write_text("y = 1\n")
    for _ in range(2):  # loading it twice is allowed
        registry.load_user_dir(str(folder))
    assert registry.hparams("transformer_of_mine") == config.HParams(d_ff=1234)
    assert str(tmp_path) not in sys.path


@pytest.mark.parametrize("name", ["json", "string", "signal", "tensorflow"])
def test_a_taken_module_name_and_a_missing_folder_are_refused(tmp_path, name):
    with pytest.raises(errors.UserError, match=f"--t2t_usr_dir={tmp_path}/{name}"):
        registry.load_user_dir(str(tmp_path / name))
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").touch()
    with pytest.raises(errors.UserError, match=f"there is another Python module {name}; rename"):
        registry.load_user_dir(str(tmp_path / name))


def test_a_link_has_its_own_name(tmp_path):
    (tmp_path / "my-problems").mkdir()
    (tmp_path / "usr_link").symlink_to(tmp_path / "my-problems")
    registry.load_user_dir(str(tmp_path / "usr_link"))
    assert "usr_link" in sys.modules


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("usr_syntax", "def x(:\n", r"mine\.py, line 1: SyntaxError: "),
        ("usr_import", "\nimport no_such_module\n", r"mine\.py, line 2: ModuleNotFoundError: No "),
        ("usr_name", "\n\nfrom t2t_lite import no_such\n", r"mine\.py, line 3: ImportError: "),
        (
            "usr_error",
            "def f():\n    return 1 / 0\nf()\n",
            r"mine\.py, line 2: ZeroDivisionError: ",
        ),
        ("usr_twice", TWICE, r"mine\.py, line 2: problem 'toy_ende' is registered twice"),
    ],
)
def test_a_mistake_in_a_users_folder_names_file_and_line(tmp_path, name, text, message):
    folder = tmp_path / name
    folder.mkdir()
    (folder / "mine.py").write_text(text)
    registry.problems()
    for _ in range(2):  # the second time it is not taken for loaded
        with pytest.raises(errors.UserError, match=rf"--t2t_usr_dir=.*{name}.*{message}"):
            registry.load_user_dir(str(folder))


def test_a_mistake_in_a_users_function_is_one_line_of_a_command(tmp_path, capsys):
    folder = tmp_path / "usr_late"
    folder.mkdir()
    (folder / "sets.py").write_text(SET.format(name="transformer_late", change="d_fff=1"))
    flags = ["--problem=toy_ende", "--data_dir=x", f"--output_dir={tmp_path}/x"]
    flags += ["--hparams_set=transformer_late", f"--t2t_usr_dir={folder}"]
    assert trainer.main(["trainer", *flags]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{folder}/sets.py, line 5: TypeError: " in line
    assert "d_fff" in line
