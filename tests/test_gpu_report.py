"""The report of a GPU: rows in processes of their own, kept for the next call, and a page."""

import importlib.util
import json
import subprocess
import sys

import documents

SCRIPT = documents.ROOT / "benchmarks" / "gpu_report.py"


def _run(output, *flags):
    command = [sys.executable, str(SCRIPT), "--small", "--seconds=0.1", f"--output={output}"]
    done = subprocess.run([*command, *flags], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(output.with_suffix(".json").read_text()), done.stdout


def test_a_row_is_measured_once_and_stands_in_the_page(tmp_path):
    name = "train base one_device bfloat16 xla=off"
    results, page = _run(tmp_path / "report", f"--only={name}", "--minutes=5")
    (row,) = (result for key, result in results.items() if key.startswith(name))
    assert row["at_a_time"] == 512
    assert row["milliseconds"] > 0
    assert f"| {row['milliseconds']:,.1f} | " in page
    again, _ = _run(tmp_path / "report", f"--only={name}", "--minutes=5")
    assert again == results


def test_disagreement_and_failures_are_named():
    spec = importlib.util.spec_from_file_location("gpu_report", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    row = {"products": "float32", "logits": [1.0], "losses": [2.0], "outputs": [[3]]}
    results = {
        "machine": {"devices": 1},
        "check cpu xla=off": row,
        "check float32 xla=on": {**row, "logits": [1.01]},
        "check tf32 xla=on": {**row, "products": "tf32", "logits": [1.01]},
        "check bfloat16 xla=on": {"failure": "out of memory"},
        "learn cpu": {"loss": 2.0},
        "learn float32": {"loss": 2.05},
        "learn bfloat16": {"loss": 2.2},
    }
    rows = [line for line in module._page(results) if line.endswith("|")]
    _, with_xla, tf32, failed = (row for row in rows if "xla=" in row)
    assert [row for row in rows if row.startswith(("| cpu |", "| float32 |", "| bfloat16 |"))] == [
        "| cpu | 2.0000 | 2.0000 | agrees |",
        "| float32 | 2.0500 | 2.0000 | agrees |",
        "| bfloat16 | 2.2000 | 2.0000 | DIFFERS |",
    ]
    assert with_xla == "| float32 xla=on | 1.0e-02 | 0.0e+00 | 100% | DIFFERS |"
    assert tf32.endswith("| agrees |")
    assert failed == "| bfloat16 xla=on | DIFFERS: out of memory |"
