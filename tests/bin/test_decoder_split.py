"""t2t-lite-decoder --split: whose language, and whose problem."""

import tiny_run

from t2t_lite import registry
from t2t_lite.bin import decoder as decoder_command
from t2t_lite.data import generate

NAME = "t2t-lite-decoder"


def _write_run(folder, problem):
    run = tiny_run.write(folder, problem=problem)
    raw = folder / "raw"
    raw.mkdir()
    for split in ("train", "dev"):
        for side in ("source", "target"):
            text = "".join(f"{line}\n" for line in tiny_run.SENTENCES)
            (raw / f"{split}.{side}").write_text(text)
    generate.generate(
        registry.problem(problem), data_dir=folder / "data", raw_dir=raw, vocab_size=300
    )
    return run


def test_an_unknown_language_is_told_in_the_figures_own_lines(tmp_path, capsys):
    run = _write_run(tmp_path, "parallel_text")
    flags = [NAME, f"--output_dir={run}", "--split=dev", "--decode_hparams=beam_size=2"]
    target = tmp_path / "out.gz"
    assert decoder_command.main([*flags, f"--decode_to_file={target}"]) == 0
    remarks = {line.split()[1]: "(English" in line for line in capsys.readouterr().out.splitlines()}
    assert [name for name, remark in remarks.items() if remark] == [
        *("bleu_moses", "bleu_compound_split")
    ]
    assert target.read_bytes().startswith(b"\x1f\x8b")  # gzip's own mark
    assert decoder_command.main([*flags, "--target_language=cs"]) == 0
    out = capsys.readouterr().out
    assert "English" not in out
    assert "tok:moses-cs" in out


def test_a_problem_of_ones_own_is_looked_for_in_a_folder(tmp_path, capsys):
    run = tiny_run.write(tmp_path, problem="company_manuals")
    assert decoder_command.main([NAME, f"--output_dir={run}", "--split=test"]) == 1
    err = capsys.readouterr().err
    assert "unknown problem 'company_manuals'" in err
    assert "--t2t_usr_dir" in err
    assert "wmt14_ende" not in err
