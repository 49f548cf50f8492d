"""Decoding by Apache Beam: the local decoder's lines, each once, whatever is cut short."""

import pytest
import tiny_run

from t2t_lite.bin import decoder
from t2t_lite.decode import files
from t2t_lite.text import text_files

pytest.importorskip("apache_beam", reason="needs pip install 't2t-lite[beam]'")

PROCESSES = "direct_running_mode=multi_processing,direct_num_workers=2"
LINES = ["a dog runs", "", "the dog sees a cat", "\ufeffa small green house", "it is"] * 21


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    return tiny_run.write(tmp_path_factory.mktemp("bulk"))


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "WINDOW", 20)
    text_files.write_lines(tmp_path / "in.en", LINES)
    return tmp_path / "in.en"


def _decode(run_dir, source, target, *flags):
    command = ["t2t-lite-decoder", f"--output_dir={run_dir}", f"--decode_from_file={source}"]
    return decoder.main([*command, f"--decode_to_file={target}", *flags])


def _parts(target):
    paths = sorted(target.parent.glob(f"{target.name}-*-of-*"))
    assert [path.name[-14:] for path in paths] == [f"{i:05d}-of-00006" for i in range(6)]
    return [line for path in paths for line in text_files.read_lines(path)]


@pytest.mark.parametrize("options", ["", PROCESSES])
def test_lines_are_those_of_the_local_decoder(run_dir, source, tmp_path, capsys, options):
    local, target = tmp_path / "local.de", tmp_path / "out.de"
    assert _decode(run_dir, source, local) == 0
    assert _decode(run_dir, source, target, f"--beam_pipeline_options={options}") == 0
    expected = list(text_files.read_lines(local))
    assert len(expected) == len(LINES)
    assert _parts(target) == expected
    assert "105 lines" in capsys.readouterr().err
    # Given again, it makes what is missing and nothing else.
    lost, kept = (tmp_path / f"out.de-0000{i}-of-00006" for i in (2, 3))
    lost.unlink()
    time = kept.stat().st_mtime_ns
    assert _decode(run_dir, source, target, f"--beam_pipeline_options={options}") == 0
    assert _parts(target) == expected
    assert kept.stat().st_mtime_ns == time
    assert "85 lines came from the interrupted run before" in capsys.readouterr().err


def test_parts_of_another_job_are_not_gone_on_with(run_dir, source, tmp_path, capsys):
    target, flag = tmp_path / "out.de", "--beam_pipeline_options="
    assert _decode(run_dir, source, target, flag) == 0
    before = _parts(target)
    assert _decode(run_dir, source, target, flag, "--decode_hparams=beam_size=1") == 1
    text_files.write_lines(source, LINES[1:])
    assert _decode(run_dir, source, target, flag) == 1
    assert capsys.readouterr().err.count("is of other lines, another model or other options") == 2
    assert _parts(target) == before


def test_mistakes_are_one_line(run_dir, source, tmp_path, capsys):
    text_files.write_lines(tmp_path / "in.gz", LINES)
    (tmp_path / "empty").touch()
    flag = "--beam_pipeline_options="
    for other, target, message in [
        (tmp_path / "in.gz", tmp_path / "out", "expected a plain file"),
        (tmp_path / "empty", tmp_path / "out", "is empty"),
        (source, source, "is what is read"),
        ("-", tmp_path / "out", "is for --decode_from_file=FILE"),
    ]:
        assert _decode(run_dir, other, target, flag)
        err = capsys.readouterr().err
        assert message in err
        assert err.count("\n") == 1
    assert list(text_files.read_lines(source)) == LINES
