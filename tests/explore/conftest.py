"""A page of a small translator and one of a small parser, served."""

import threading
from types import SimpleNamespace

import pytest
import tiny_run

from t2t_lite import registry
from t2t_lite.decode import options, translator
from t2t_lite.explore import explorer, server

GOLD = "(S (NP (DT a) (NN dog)) (VP (VBZ runs)))"


def _serve(answers):
    made = server.make(answers, host="127.0.0.1", port=0)
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{made.port}/"
    yield SimpleNamespace(address=address, port=made.port, explorer=answers)
    made.shutdown()
    made.server_close()
    thread.join(10)


@pytest.fixture(scope="session")
def answers():
    registry.load("t2t_lite.problems")
    decode_options = options.for_model(tiny_run.HPARAMS, return_beams=4, max_source_length=256)
    model = translator.Translator(
        tiny_run.model(), tiny_run.task(), decode_options, name="runs/tiny/ckpt-1"
    )
    references = {text: text[::-1] for text in tiny_run.SENTENCES}
    return explorer.Explorer(model, references=references)


@pytest.fixture(scope="session")
def page(answers):
    yield from _serve(answers)


@pytest.fixture(scope="session")
def parser_page():
    task = tiny_run.tree_task()
    model = tiny_run.model(vocab_size=task.vocabulary.size)
    decode_options = options.for_model(tiny_run.HPARAMS, beam_size=3, return_beams=3)
    parser = translator.Translator(model, task, decode_options)
    yield from _serve(explorer.Explorer(parser, references={"a dog runs": GOLD}))
