"""The house stands: imports point downward, and nothing imports what it does not need."""

import ast
import pathlib
import re
import subprocess
import sys

import documents
import pytest

ROOT = pathlib.Path(__file__).parents[1]

# The house: a module imports from packages on lower floors and from its own package, never sideways
# or up. CONTRIBUTING.md draws this table.
FLOORS = {
    7: ["bin"],
    6: ["train", "serving", "explore"],
    5: ["decode"],
    4: ["tasks", "data", "imports"],
    3: ["model", "run", "evaluate", "parsing"],
    2: ["config", "locks", "machine", "messages", "pipelines", "progress", "registry", "text"],
    1: ["fields", "quiet"],
    0: ["errors"],
}
# The highest floor that content may use.
CONTENT = {"problems": 4, "hparams": 2}
FLOOR = {name: floor for floor, names in FLOORS.items() for name in names}
_TF = ["tensorflow", "keras"]


def _modules():
    for path in sorted((ROOT / "t2t_lite").rglob("*.py")):
        if path.name != "__init__.py":
            yield ".".join(path.relative_to(ROOT).with_suffix("").parts), path


def _imports(path):
    """Return the modules of ours that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and _is_ours(node.module or ""):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.name for a in node.names if _is_ours(a.name)}
    return found


def _is_ours(module):
    return module.split(".")[0] == "t2t_lite"


def _package(module):
    """Return "decode" for t2t_lite.decode.files, "config" for t2t_lite.config."""
    return module.split(".")[1]


@pytest.mark.parametrize(("module", "path"), list(_modules()), ids=lambda x: str(x).split("/")[-1])
def test_imports_point_downward(module, path):
    own = _package(module)
    for imported in _imports(path):
        package = _package(imported)
        # content has none: it is found by name
        assert package in FLOOR, f"{module} imports {imported}, which has no floor"
        assert package == own or FLOOR[package] < FLOOR[own], f"{module} imports {imported}"


@pytest.mark.parametrize(("folder", "floor"), CONTENT.items())
def test_content_uses_the_lower_floors(folder, floor):
    for path in (ROOT / folder).rglob("*.py"):
        for imported in _imports(path):
            assert FLOOR[_package(imported)] <= floor, f"{path} imports {imported}"


def test_imports_make_no_circle():
    graph = {module: _imports(path) for module, path in _modules()}
    done: set[str] = set()

    def visit(module, trail):
        assert module not in trail, f"circle: {[*trail, module]}"
        if module not in done:
            for imported in graph.get(module, ()):
                visit(imported, [*trail, module])
            done.add(module)

    for module in graph:
        visit(module, [])


def test_contributing_draws_the_floors():
    """Its table has a row for each floor, with the packages of the floor in backquotes."""
    rows = re.findall(r"^\| (\d) \| (.+?) \|", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.M)
    drawn = {int(floor): re.findall(r"`(\w+)/?`", names) for floor, names in rows}
    assert drawn == FLOORS


@pytest.mark.parametrize("path", sorted(ROOT.glob("t2t_lite/*/__init__.py")), ids=str)
def test_packages_hold_only_a_docstring(path):
    tree = ast.parse(path.read_text("utf-8"))
    assert len(tree.body) == 1
    assert ast.get_docstring(tree)


@pytest.mark.parametrize(
    ("code", "left_out"),
    [
        ("import t2t_lite; t2t_lite.__version__; t2t_lite.hparams('transformer_big')", _TF),
        (
            "import importlib\n"
            f"for name in {sorted(documents.modules().values())}:\n"
            "    assert importlib.import_module(name).main(['', '--help']) == 0",
            [*_TF, "sacrebleu", "sacremoses"],
        ),
        (
            "from t2t_lite.bin import evalb\n"
            "assert evalb.main(['', '--gold=gold', '--predicted=gold']) == 0",
            _TF,
        ),
        ("from t2t_lite.decode import files, translator", ["sacrebleu"]),
        (
            "from t2t_lite.serving import client\n"
            "client.Grpc(client.parse_address('localhost:1'), ca=None, headers={})",
            [*_TF, "numpy"],
        ),
        (
            "import sys; from t2t_lite import registry; from t2t_lite.bin import datagen\n"
            "[registry.problem(name) for name in ('toy_ende', 'toy_enfr_rev', 'toy_parsing')]\n"
            "datagen.main(['t2t-lite-datagen', '--registry_help'])\n"
            "assert 't2t_lite.problems.translate_toy' in sys.modules",
            ["t2t_lite.problems.toy."],  # its tables
        ),
    ],
    ids=["the package", "helps", "EVALB", "decoding", "the client", "names of problems"],
)
def test_what_is_not_needed_is_not_imported(tmp_path, code, left_out):
    (tmp_path / "gold").write_text("(S (NP (NN a)) (VP (VB b)))\n")
    code += f"\nimport sys; print([x for x in sys.modules if x.startswith({(*left_out,)})])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"
