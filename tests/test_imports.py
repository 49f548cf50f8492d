"""The house stands: imports point downward, and commands start without TensorFlow."""

import ast
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]

# Modules by floor, as the README draws them; a module may import only from lower floors, or from
# its own floor where that makes no circle (the graph as a whole is checked for circles).
FLOORS = {
    0: ["errors", "registry", "config"],
    1: [
        *("data.text_files", "data.bitexts", "data.vocabulary", "data.t2t_vocabulary"),
        *("data.trees", "data.shards", "data.workers", "data.buckets", "data.packing"),
        *("data.cleaning", "data.wmt_archives", "data.treebanks"),
        *("model.linear", "model.dropout", "model.normalization", "model.position"),
        *("model.embedding", "model.feed_forward", "model.attention"),
        *("train.schedule", "train.devices", "train.optimizer", "train.cost"),
        *("train.interruption", "evaluate.bleu", "evaluate.brackets"),
        *("infer.beam_search", "infer.beam_step", "infer.top_k", "infer.candidates"),
        *("infer.options", "infer.devices"),
        *("infer.batching", "infer.journal", "infer.tree_grammar", "evaluate.parses"),
    ],
    2: [
        *("data.problem", "data.manifest", "data.spill"),
        *("model.transformer", "model.decoding", "train.loss", "train.metrics"),
    ],
    3: [
        *("data.generate", "data.pipeline", "train.output_dir", "train.checkpoint", "train.best"),
        *("train.averaging", "train.reporter", "train.step", "infer.translator", "infer.scoring"),
    ],
    4: [
        *("train.evaluator", "train.trainer", "infer.decoder"),
        *("serving.export", "serving.signatures", "serving.batches", "serving.codec"),
        *("serving.client", "serving.loopback", "serving.protocol", "serving.warmup"),
        *("serving.weights", "serving.parses"),
    ],
}
COMMANDS = [path.stem for path in sorted(ROOT.glob("t2t_lite/bin/*.py"))]
FLOOR = {f"t2t_lite.{name}": floor for floor, names in FLOORS.items() for name in names}


def _modules():
    for path in sorted((ROOT / "t2t_lite").rglob("*.py")):
        if path.name != "__init__.py":
            yield ".".join(path.relative_to(ROOT).with_suffix("").parts), path


def _imports(path):
    """Return the modules of ours that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("t2t_lite"):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.name for a in node.names if a.name.startswith("t2t_lite")}
    return found


def _floor(module):
    return 5 if module.startswith("t2t_lite.bin.") else FLOOR[module]


@pytest.mark.parametrize(("module", "path"), list(_modules()), ids=lambda x: str(x).split("/")[-1])
def test_imports_point_downward(module, path):
    assert module.startswith("t2t_lite.bin.") or module in FLOOR, f"give {module} a floor"
    for imported in _imports(path):
        assert imported in FLOOR or imported.startswith("t2t_lite.bin."), (
            f"{module} imports {imported}: import modules, not names"
        )
        assert _floor(imported) <= _floor(module), f"{module} imports {imported} from above"


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


def test_content_is_imported_only_by_name():
    for module, path in _modules():
        assert not any(
            name.startswith(("t2t_lite.problems", "t2t_lite.hparams")) for name in _imports(path)
        ), f"{module} names content statically"


@pytest.mark.parametrize("path", sorted(ROOT.glob("t2t_lite/**/__init__.py")), ids=str)
def test_packages_hold_only_a_docstring(path):
    body = ast.parse(path.read_text("utf-8")).body
    assert len(body) == 1
    assert ast.get_docstring(ast.parse(path.read_text("utf-8")))


@pytest.mark.integration
@pytest.mark.parametrize(
    "name", [name for name in COMMANDS if name not in ("__init__", "command", "prompt")]
)
def test_help_needs_no_tensorflow(name):
    code = (
        f"import sys; from t2t_lite.bin import {name} as command; "
        "status = command.main(['t2t-lite', '--help']); "
        "assert not {'tensorflow', 'keras'} & set(sys.modules); sys.exit(status)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--" in done.stdout
