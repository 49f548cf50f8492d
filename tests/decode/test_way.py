"""A sentence's way through the package is short, as docs/how_it_works.md tells it."""

import pathlib
import sys

import tiny_run

import t2t_lite
from t2t_lite.bin import decoder
from t2t_lite.decode import files, translator

PACKAGE = pathlib.Path(t2t_lite.__file__).parent


def test_a_sentence_passes_twelve_files(tmp_path):
    run, source, target = tiny_run.write(tmp_path / "tiny"), tmp_path / "in", tmp_path / "out"
    source.write_text("a dog runs\n", "utf-8")
    model = translator.Translator.from_output_dir(run, engine="graph")
    files.decode_file(model, source, target)  # traces the graph, once and for all
    visited = []

    def note(frame, event, _):
        path = pathlib.Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(PACKAGE):
            visited.append(path.relative_to(PACKAGE).as_posix())

    decoder.FLAGS["columns"].unparse()  # a test before may have given them
    decoder.FLAGS(["decoder", f"--decode_from_file={source}", f"--decode_to_file={target}"])
    sys.setprofile(note)
    try:
        decoder._decode_file(model)
    finally:
        sys.setprofile(None)
        decoder.FLAGS.unparse_flags()
    assert target.read_text("utf-8").count("\n") == 1
    assert list(dict.fromkeys(visited)) == [
        "bin/decoder.py",
        "progress.py",  # of how many lines, no more
        "decode/files.py",
        "text/text_files.py",
        "decode/journal.py",
        "decode/translator.py",
        "decode/one_process.py",  # whether this process has loaded the model, no more
        "decode/translation.py",
        "tasks/task.py",
        "text/vocabulary.py",  # the rules for lone surrogates and special ids, no more
        "text/sentencepiece_vocabulary.py",
        "errors.py",  # of the words "1 line", no more
    ]
