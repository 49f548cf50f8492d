"""The source distribution and the wheel: built, installed into a fresh environment, run from there.

The fresh environment has setuptools from the package index; all else that t2t-lite needs it takes
from the environment of the tests.
"""

import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile

import documents
import pytest

pytestmark = pytest.mark.slow

_NOT_PART = shutil.ignore_patterns(
    ".git", ".venv", "build", "dist", "runs", "*.egg-info", "__pycache__", ".*_cache", ".hypothesis"
)
_BUILD = "from setuptools import build_meta; print(build_meta.{}({!r}))"
# The commands of scripts/quickstart.sh, tiny, in one process: TensorFlow is imported once.
_QUICKSTART = """
import pathlib, t2t_lite
from t2t_lite.bin import bleu, datagen, decoder, exporter, trainer

problem = ["", "--problem=parallel_text", "--data_dir=data"]
assert datagen.main([*problem, "--raw_dir=raw", "--vocab_size=300", "--num_workers=1"]) == 0
small = ["--hparams_set=transformer_toy", "--hparams={tiny}", "--strategy=one_device"]
assert trainer.main([*problem, "--output_dir=run", *small, "--train_steps=2"]) == 0
files = ["--decode_from_file=raw/test.source", "--decode_to_file=out"]
assert decoder.main(["", "--output_dir=run", *files]) == 0
assert bleu.main(["", "--translation=out", "--reference=raw/test.target"]) == 0
assert exporter.main(["", "--output_dir=run", "--export_dir=export"]) == 0
assert isinstance(t2t_lite.load("export").translate(["A dog runs."])[0].text, str)
grammar = t2t_lite.problem("toy_ende").samples("train")  # reads the tables of the package
assert next(grammar)["inputs"]
print(pathlib.Path(t2t_lite.__file__).parent)
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Return a fresh environment's folder, the source distribution and the wheel made from it."""
    folder = tmp_path_factory.mktemp("distribution")
    environment, source = folder / "environment", folder / "source"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    python = environment / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    found = subprocess.run([*pip, "setuptools>=77"], capture_output=True, text=True)
    if found.returncode:
        pytest.skip("needs a package index with setuptools>=77: " + found.stderr.strip()[-200:])
    shutil.copytree(documents.ROOT, source, ignore=_NOT_PART)
    archive = folder / _built(python, "build_sdist", source, folder)
    shutil.unpack_archive(archive, folder / "unpacked")
    (unpacked,) = (folder / "unpacked").iterdir()
    wheel = folder / _built(python, "build_wheel", unpacked, folder)
    subprocess.run([*pip, "--no-deps", "--no-index", str(wheel)], check=True)
    packages = [path for path in sys.path if path.endswith("site-packages")]
    lib = sysconfig.get_path("purelib", vars={"base": str(environment)})
    pathlib.Path(lib, "of_the_tests.pth").write_text("\n".join(packages) + "\n")
    return environment, archive, wheel


def _built(python, kind: str, source: pathlib.Path, folder: pathlib.Path) -> str:
    """Build a distribution of a source tree; return its file's name."""
    code = _BUILD.format(kind, str(folder))
    made = subprocess.run([python, "-c", code], cwd=source, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return made.stdout.split()[-1]


def test_the_distributions_hold_what_they_should(built):
    environment, archive, wheel = built
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"t2t_lite"}
    modules = documents.ROOT.glob("t2t_lite/**/*.py")
    assert {str(path.relative_to(documents.ROOT)) for path in modules} <= set(names)
    for name in ("py.typed", "explore/page/index.html", "problems/toy/tables/nouns.tsv"):
        assert f"t2t_lite/{name}" in names
    with tarfile.open(archive) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    for name in ("README.md", "LICENSE", "docs/paper.md", "scripts/setup.sh", "tests/conftest.py"):
        assert name in names
    found = {path.name for path in (environment / "bin").glob("t2t-lite-*")}
    assert found == set(documents.modules())
    done = subprocess.run([environment / "bin" / "t2t-lite-bleu", "--help"], capture_output=True)
    assert done.stdout.startswith(b"t2t-lite-bleu: "), done.stderr


def test_the_wheel_trains_and_translates_outside_the_checkout(built, tmp_path):
    environment, _, _ = built
    raw = tmp_path / "raw"
    raw.mkdir()
    pairs = [(f"a dog has {n} bones .", f"ein Hund hat {n} Knochen .") for n in range(100)]
    for split in ("train", "dev", "test"):
        for side, lines in zip(("source", "target"), zip(*pairs)):
            (raw / f"{split}.{side}").write_text("\n".join(lines) + "\n")
    code = _QUICKSTART.format(tiny=documents.TINY)
    python = environment / "bin" / "python"
    done = subprocess.run([python, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert pathlib.Path(done.stdout.split()[-1]).is_relative_to(environment)
