"""What each command answers to a user's mistake: one line, a status, and no file."""

import importlib
import pathlib
import shlex

import pytest

FILES = {
    "empty": "",
    "two": "a\nb\n",
    "three": "a\nb\nc\n",
    "trees": "(S (NN a))\n",
    "broken": "(S (NP (NN a)\n(VP (VB b))))\n",
    "bad.prm": "DELETE TOP\n",
}
# command and flags -> more flags, the status, words of the line; RUN is an output_dir
MISTAKES = {
    "avg_checkpoints --output_dir=RUN": [
        ("--num_last_checkpoints=8", 1, "1 checkpoint, 8 were asked for: give"),
        ("--num_last_checkpoints=0", 2, "num_last_checkpoints"),
        ("--checkpoints=1,9", 1, "has no checkpoint of step 9"),
        ("--checkpoints=run/other", 1, "run/other: expected a checkpoint's path"),
        ("--checkpoints=1,", 1, "--checkpoints=1,: expected path prefixes or steps"),
        ("--checkpoints=", 1, "--checkpoints=: expected path prefixes or steps"),
        ("--checkpoints=1,2 --num_last_checkpoints=2", 1, "expected one of the two"),
        ("--output_dir=nowhere", 1, "nowhere is not an output_dir"),
        ("--output_dir=", 2, "--output_dir must be given"),
    ],
    "bleu --reference=three": [
        ("--translation=two", 1, "two: 2 lines, three: 3 lines"),
        ("--translation=empty", 1, "empty: 0 lines"),
        ("--translation=nowhere", 1, "there is no file nowhere"),
        ("--translation=no/b/c", 1, "there is no file no/b/c: the folder no is missing"),
        ("", 2, "--translation must be given"),
    ],
    "datagen --data_dir=x": [
        ("", 2, "--problem must be given"),
        ("--problem=parallel_txt", 1, "did you mean parallel_text"),
        ("--problem=company_manuals", 1, "--t2t_usr_dir"),
        ("--problem=parallel_text", 1, "reads its text from --raw_dir"),
        ("--problem=parallel_text --raw_dir=.", 1, "lacks train.source"),
        ("--problem=parallel_text --raw_dir=/none", 1, "is not a folder"),
        ("--problem=toy_ende --vocab_size=many", 2, "vocab_size"),
        ("--problem=toy_ende --num_workers=0", 2, "num_workers"),
        ("--problem=toy_ende --num_workers=2 --beam_pipeline_options=", 1, "of this machine: give"),
        ("--problem=toy_ende --verify --overwrite", 1, "leave one out"),
        ("--problem=translate_ende_wmt32k", 1, "tensor2tensor wrote"),
    ],
    "decoder": [
        ("--split=test", 2, "--output_dir must be given"),
        ("--output_dir=/none/such --split=test", 1, "in it): the folder /none is missing"),
        ("--output_dir=RUN", 1, "expected one of --decode_from_file"),
    ],
    "decoder --output_dir=RUN --split=test": [
        ("", 1, "run t2t-lite-datagen"),
        ("--decode_interactive", 1, "expected one of"),
        ("--decode_hparams=alfa=1", 1, "mean alpha"),
        ("--target_language=German", 1, "a language code"),
        ("--checkpoint_path=/no", 1, "no checkpoint"),
        ("--checkpoint_path=RUN,", 1, "between commas"),
    ],
    "decoder --output_dir=RUN --decode_from_file=two": [
        ("", 1, "needs --decode_to_file"),
        ("--score_file=three --decode_to_file=two", 1, "two is what is read: give another"),
        ("--score_file=three --decode_to_file=three", 1, "three is what is read: give another"),
    ],
    "decoder --output_dir=RUN --decode_to_file=-": [
        ("--decode_interactive", 1, "not go with"),
        ("--decode_from_file=- --score_file=-", 1, "cannot both be the standard input"),
        ("--decode_from_file=two --decode_hparams=alignments=true", 1, "no place for it; add --js"),
        ("--score_file=two --decode_hparams=sampling=1,prefix=a", 1, "leave out sampling, prefix"),
        (
            "--decode_from_file=two --xla=on --decode_hparams=sampling=1",
            1,
            "by beams; not with sam",
        ),
        (
            "--decode_from_file=two --decode_hparams=sampling=1,beam_size=2",
            1,
            "does not search: lea",
        ),
        ("--score_file=two --xla=on", 1, "--xla=on is for searches in this process, without --eng"),
        ("--decode_from_file=two --data_dir=d", 1, "--target_language and --data_dir are for"),
        ("--decode_from_file=two --columns=texts", 1, "--columns names text and others of text,"),
        ("--split=test --columns=text,prefix", 1, "--columns is for --decode_from_file"),
    ],
    "evalb --gold=trees": [
        ("", 2, "--predicted must be given"),
        ("--predicted=three", 1, "sentence 2 has no gold one"),
        ("--predicted=trees --gold=broken", 1, "expected one gold tree a line"),
        ("--predicted=empty --gold=empty", 1, "are empty; expected trees"),
        ("--predicted=trees --params=nowhere.prm", 1, "nowhere.prm"),
        ("--predicted=trees --params=bad.prm", 1, "bad.prm, line 1: unknown keyword 'DELETE'"),
    ],
    "explore": [
        ("", 1, "--output_dir"),
        ("--output_dir=a --export_dir=b", 1, "--output_dir"),
        ("--export_dir=b --checkpoint_path=c", 1, "do not go with --export_dir"),
        ("--export_dir=b --decode_hparams=beam_size=2", 1, "do not go with --export_dir"),
        ("--export_dir=nowhere", 1, "no version"),
    ],
    "explore --output_dir=RUN": [
        ("--html=x.html", 1, "--text or --decode_from_file"),
        ("--text=a", 1, "need --html"),
        ("--text=a --decode_from_file=b --html=x", 1, "--text or --decode_from_file"),
        ("--target=a", 1, "--target needs --text"),
        ("--text=' ' --html=x.html", 1, "blank"),
        ("--text=a --html=.", 1, "is a folder"),
        ("--decode_from_file=two --html=two", 1, "two is what is read: give another file"),
        ("--decode_from_file=nowhere --html=x.html", 1, "nowhere"),
        ("--decode_hparams=beam=3", 1, "beam_size"),
        ("--data_dir=nowhere", 1, "nowhere"),
        ("--host=300.1.1.1", 1, "300.1.1.1"),
        ("--port=99999", 2, "99999"),
        ("--checkpoint_path=nowhere", 1, "nowhere"),
    ],
    "exporter": [
        ("", 2, "--output_dir and --export_dir must be given"),
        ("--output_dir=nowhere --export_dir=e", 1, "nowhere is not an output_dir"),
    ],
    "exporter --output_dir=RUN --export_dir=e": [
        ("--checkpoint_path=x", 1, "no checkpoint at x"),
        ("--decode_hparams=beam_sise=4", 1, "beam_size"),
        ("--precision=int4", 2, "int4"),
        ("--decode_hparams=precision=mixed", 1, "as --precision"),
        ("--decode_hparams=constrained=false", 1, "is for parsers, which this model is not"),
        ("--decode_hparams=max_source_length=9 --max_source_length=9", 1, "give it once"),
        ("--format=litert --decode_hparams=batch_size=4", 1, "at a time: leave out batch_size"),
        ("--max_source_length=1", 2, "max_source_length"),
        ("--decode_hparams=sampling=true,seed=3", 1, "leave out sampling, seed"),
        ("--decode_hparams=return_beams=2", 1, "leave out"),
    ],
    "trainer": [
        ("--xla=maybe", 2, "flag --xla=maybe: expected one of auto, on, off"),
        ("--save_checkpoints_secs=nan", 2, "=nan: expected a number, at least 0"),
        ("--keep_checkpoint_max=0", 2, "=0: expected a whole number, at least 1"),
        (
            "--describe --hparams_set=transformer_toy --problem=toy_ende",
            2,
            "--data_dir must be given",
        ),
    ],
    "trainer --problem=toy_ende --data_dir=x --output_dir=y --hparams_set=transformer_toy": [
        ("--save_checkpoints_steps=9 --save_checkpoints_secs=9", 1, "give one of the two"),
    ],
    "query_server --server=localhost:1 --retries=0 --servable_name=tiny": [
        ("--server=localhost", 1, "host:port"),
        ("--server=", 2, "--server must be given"),
        ("--version=1 --version_label=stable", 1, "not both"),
        ("--decode_from_file=nowhere", 1, "no file nowhere"),
        ("--timeout_secs=0", 2, "timeout_secs"),
        ("--header=abc", 1, "--header is name=value, got 'abc'"),
        ("--ca_file=nowhere", 1, "--ca_file nowhere is not a file of certificates"),
        ("--decode_from_file=two --decode_to_file=/tmp", 1, "/tmp is a folder"),
        ("--decode_from_file=two --decode_to_file=two", 1, "two is what is read"),
        ("--wait_secs=0 --decode_from_file=two --decode_to_file=out", 1, "localhost:1"),
    ],
}


@pytest.mark.parametrize(
    ("command", "flags", "status", "message"),
    [(command, *mistake) for command, mistakes in MISTAKES.items() for mistake in mistakes],
)
def test_a_mistake_is_one_line(
    run_dir, tmp_path, monkeypatch, capsys, command, flags, status, message
):
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        pathlib.Path(name).write_text(content)
    before = sorted(run_dir.iterdir())
    name, *arguments = shlex.split(f"{command} {flags}".replace("RUN", str(run_dir)))
    main = importlib.import_module(f"t2t_lite.bin.{name}").main
    assert main([f"t2t-lite-{name}", *arguments]) == status
    out, err = capsys.readouterr()
    (line,) = [line for line in err.splitlines() if "no example texts" not in line]
    assert out == ""
    assert line.startswith(f"t2t-lite-{name}: ")
    assert message in line
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == FILES
    assert sorted(run_dir.iterdir()) == before
