"""t2t-lite-explore: one HTML file or a server."""

import json
import re
import signal
import subprocess
import sys
import urllib.request

import t2t_lite
from t2t_lite.bin import explore


def _content(target):
    """Return the data in a saved page."""
    return json.loads(target.read_text().split('id="data">')[1].split("</script>")[0])


def test_texts_in_one_file(run_dir, tmp_path, capsys):
    source, target = tmp_path / "in", tmp_path / "out.html"
    source.write_text("a dog runs\n\nhe sleeps\n")
    flags = [f"--output_dir={run_dir}", f"--decode_from_file={source}", f"--html={target}"]
    assert explore.main(["t2t-lite-explore", *flags]) == 0
    assert capsys.readouterr().out.startswith(f"{target}: ")
    first, second = _content(target)["texts"]
    assert first["translation"]["text"] == "a dog runs"
    assert set(first["attention"]) == {"encoder", "decoder", "cross"}
    assert first["search"]["extensions"]
    assert second["text"] == "he sleeps"


def test_an_export_shows_what_it_answers_with(export_dir, tmp_path, capsys):
    target = tmp_path / "out.html"
    flags = [f"--export_dir={export_dir}", "--text=a dog runs", f"--html={target}"]
    assert explore.main(["t2t-lite-explore", *flags]) == 0
    content = _content(target)
    (text,) = content["texts"]
    outputs = t2t_lite.load(export_dir).nbest(["a dog runs"])[0].hypotheses
    shown = text["translation"]["hypotheses"]
    assert [(each["text"], each["score"]) for each in shown] == [
        (output.text, output.score) for output in outputs
    ]
    assert len(outputs) == 4
    assert text["attention"] == {}
    assert text["search"] is None
    assert "--output_dir" in content["about"]["missing"]


def test_it_serves_until_interrupted(run_dir):
    command = [sys.executable, "-m", "t2t_lite.bin.explore", f"--output_dir={run_dir}", "--port=0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        (address,) = re.findall(r"http://127\.0\.0\.1:\d+/", line)
        with urllib.request.urlopen(address + "api/about", timeout=120) as answer:
            assert json.load(answer)["layers"] == {"encoder": 1, "decoder": 1}
        server.send_signal(signal.SIGINT)
        _, errors = server.communicate(timeout=120)
    finally:
        server.kill()
    assert "Traceback" not in errors
    assert server.returncode == 0
