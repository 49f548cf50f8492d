"""Learning: a small model must learn its task to a stated score, by the commands that users run."""

import random

import pytest

from t2t_lite import registry
from t2t_lite.bin import bleu, datagen, decoder, trainer
from t2t_lite.data import data_dir
from t2t_lite.decode import translator
from t2t_lite.tasks import parsing

pytestmark = pytest.mark.slow

DIGITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


def _write_corpus(folder, *, train, test):
    """Sentences of three to eight digits; the target names them from last to first."""
    draw = random.Random(1)
    for split, count in (("train", train), ("dev", 50), ("test", test)):
        lines = [[draw.choice(DIGITS) for _ in range(draw.randint(3, 8))] for _ in range(count)]
        for side, order in (("source", 1), ("target", -1)):
            text = "".join(" ".join(line[::order]) + "\n" for line in lines)
            (folder / f"{split}.{side}").write_text(text, "utf-8")


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_reverses_digits(tmp_path, capsys, precision):
    _write_corpus(tmp_path, train=4000, test=100)
    data, run, output = tmp_path / "data", tmp_path / "run", tmp_path / "out"
    problem = "--problem=parallel_text"
    raw = f"--raw_dir={tmp_path}"
    flags = ["", problem, raw, f"--data_dir={data}", "--vocab_size=400"]
    assert datagen.main(flags) == 0
    hparams = (
        "d_model=64,d_ff=128,d_k=16,d_v=16,batch_tokens=1024,dropout=0,max_buckets=2,"
        "warmup_steps=100,learning_rate_scale=0.4"
    )
    flags = ["", problem, f"--data_dir={data}", f"--output_dir={run}", f"--precision={precision}"]
    flags += ["--hparams_set=transformer_toy", f"--hparams={hparams}", "--train_steps=1000"]
    assert trainer.main([*flags, "--eval_sentences=0"]) == 0
    source, reference = tmp_path / "test.source", tmp_path / "test.target"
    flags = ["", f"--output_dir={run}", f"--decode_from_file={source}"]
    assert decoder.main([*flags, f"--decode_to_file={output}"]) == 0
    outputs, references = (path.read_text("utf-8").splitlines() for path in (output, reference))
    right = sum(ours == theirs for ours, theirs in zip(outputs, references, strict=True))
    assert right >= 95
    capsys.readouterr()
    assert bleu.main(["", f"--translation={output}", f"--reference={reference}"]) == 0
    assert float(capsys.readouterr().out.split()[0]) > 95


def test_parses_the_toy_grammar(tmp_path):
    """Trees of sentences that training did not see, by the constrained search and a free one."""
    data, run = tmp_path / "data", tmp_path / "run"
    flags = ["", "--problem=toy_parsing", f"--data_dir={data}"]
    assert datagen.main(flags) == 0
    flags += [f"--output_dir={run}", "--hparams_set=transformer_parsing_toy", "--eval_sentences=0"]
    assert trainer.main(flags) == 0
    text = data_dir.read(data, registry.problem("toy_parsing")).text("test")
    f1 = {}
    for constrained in (True, False):
        parser = translator.Translator.from_output_dir(run, constrained=constrained)
        found = parser.translate(text.sources)
        if constrained:
            assert not any(parse.repairs for parse in found)
        score = parsing.score([parse.text for parse in found], text.references)
        assert score.all.num_valid == len(text.sources)
        f1[constrained] = score.all.f1
    # Other roundings lead elsewhere: 98.2 and 99.0 were seen with two seeds.
    assert f1[True] >= 97
    assert f1[True] >= f1[False]
