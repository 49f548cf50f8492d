"""The server: what it answers, whom it refuses, and what it makes of hostile texts."""

import json
import urllib.error
import urllib.request

import hostile_texts
import numpy as np
import pytest
import tiny_run

from t2t_lite import errors
from t2t_lite.decode import options, translator
from t2t_lite.explore import attending, explorer, saving, server
from t2t_lite.tasks import translation
from t2t_lite.text import piece_vocabulary

TEXT = tiny_run.SENTENCES[2]


def _ask(page, path, body=None, **headers):
    data = None if body is None else json.dumps(body).encode()
    if data is not None:
        headers = {"Content-Type": "application/json", **headers}
    request = urllib.request.Request(page.address + path, data, headers)
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, answer.read(), answer.headers
    except urllib.error.HTTPError as error:
        return error.code, error.read(), error.headers


def test_a_translation_has_what_the_views_show(page):
    status, body, _ = _ask(page, "api/translation", {"text": TEXT})
    found = json.loads(body)
    assert status == 200
    assert len(found["hypotheses"]) == 4
    (expected,) = page.explorer.model.translate([TEXT])
    assert found["hypotheses"][0]["text"] == expected.text
    assert len(found["target"]) == len(expected.ids) == len(found["hypotheses"][0]["token_scores"])
    assert found["reference"] == TEXT[::-1]
    assert 0 <= found["chrf"] <= 100
    assert found["source"][-1] == "⟨end⟩"


@pytest.mark.parametrize(
    ("language", "text"), [("de", "Ein Hund rennt."), ("", "A dog runs."), ("en", "A dog runs.")]
)
def test_without_a_split_the_page_opens_with_a_sentence_of_the_source(answers, language, text):
    found = explorer.Explorer(answers.model, language=language).about()["examples"]
    assert found == [text]


def test_attention_is_that_of_the_arrays(page):
    expected = attending.attention(page.explorer.model, TEXT)
    for kind in attending.KINDS:
        body = {"text": TEXT, "target": None, "kind": kind, "layer": 0}
        status, data, _ = _ask(page, "api/attention", body)
        assert status == 200
        weights = np.frombuffer(data, "<u2").reshape(getattr(expected, kind)[0].shape) / 65535
        np.testing.assert_allclose(weights, getattr(expected, kind)[0], atol=1e-5)


def test_a_searchs_extensions_are_told_as_text(page):
    """Whatever the vocabulary: here subword-nmt's, whose pieces say where a word goes on."""
    pieces = ["<pad>", "</s>", "<unk>", *"abcdefgh", *(f"{letter}@@" for letter in "abcdefgh")]
    side = piece_vocabulary.side(pieces, codes="#version: 0.2")
    task = translation.Translation(
        piece_vocabulary.PieceVocabulary(piece_vocabulary.joined(side, side))
    )
    decode_options = options.for_model(tiny_run.HPARAMS, return_beams=4)
    model = translator.Translator(tiny_run.model(vocab_size=19), task, decode_options)
    answers = explorer.Explorer(model)
    search = answers.search("abc de")
    texts = {each["number"]: each["text"] for each in search["extensions"]}
    assert [texts[number] for number in search["hypotheses"]] == [
        each["text"] for each in answers.translation("abc de")["hypotheses"]
    ]
    assert any("@@" in each["token"] for each in search["extensions"])
    assert not any("@@" in text for text in texts.values())


def test_a_given_tree_may_be_in_its_linear_form(parser_page):
    body = {"text": "a dog runs", "target": "(S (NP XX XX )NP (VP XX )VP )S"}
    status, answer, _ = _ask(parser_page, "api/translation", body)
    found = json.loads(answer)
    assert status == 200, found
    assert found["given"]["text"] == "(S (NP (XX a) (XX dog)) (VP (XX runs)))"
    assert found["parse"]["figures"]["f1"] == 100


@pytest.mark.parametrize(("levels", "status"), [(300, 200), (500, 400)])
def test_a_deep_tree_is_shown_or_refused(parser_page, levels, status):
    target = "(S " + "(NP " * (levels - 1) + "(XX a)" + ")" * levels
    found, answer, _ = _ask(parser_page, "api/translation", {"text": "a", "target": target})
    assert found == status
    if status == 400:
        assert "more than 400 levels" in json.loads(answer)["error"]


@pytest.mark.parametrize(
    ("path", "body", "headers", "status"),
    [
        ("", None, {"Host": "evil.example"}, 403),
        ("api/about", None, {"Host": "evil.example:8765"}, 403),
        ("api/search", {"text": "a"}, {"Origin": "http://evil.example"}, 403),
        ("api/search", {"text": "a"}, {"Origin": "null"}, 403),
        ("api/search", {"text": "a"}, {"Content-Type": "text/plain"}, 415),
        ("api/translation", None, {}, 405),
        ("page/../server.py", None, {}, 404),
        ("page/%2e%2e/server.py", None, {}, 404),
        ("nothing", None, {}, 404),
        ("api/translation", [], {}, 400),
        ("api/translation", {"text": 7}, {}, 400),
        ("api/translation", {"text": "a", "target": 7}, {}, 400),
        ("api/attention", {"text": "a", "kind": "other", "layer": 0}, {}, 400),
        ("api/attention", {"text": "a", "kind": "cross", "layer": 99}, {}, 400),
        ("api/search", {"text": " "}, {}, 400),
        ("api/translation", {"text": "x" * server.MAX_BODY}, {}, 413),
    ],
)
def test_what_is_refused(page, path, body, headers, status):
    found, answer, sent = _ask(page, path, body, **headers)
    assert found == status
    assert json.loads(answer)["error"]
    assert "Access-Control-Allow-Origin" not in sent


def test_the_page_may_load_nothing_from_elsewhere(page):
    status, body, headers = _ask(page, "")
    assert status == 200
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert b"http://" not in body
    assert b"https://" not in body
    origin = {"Origin": page.address.rstrip("/")}
    assert _ask(page, "api/translation", {"text": "a"}, **origin)[0] == 200
    assert _ask(page, "api/about", Host=f"localhost:{page.port}")[0] == 200


@pytest.mark.parametrize("text", hostile_texts.TEXTS.values(), ids=hostile_texts.TEXTS)
def test_hostile_texts_are_answered(page, text):
    assert len(hostile_texts.TEXTS) == 40
    status, body, _ = _ask(page, "api/translation", {"text": text})
    assert status == 200
    found = json.loads(body)
    assert found["truncated"] is (len(found["source"]) >= 255)  # max_source_length is 256
    if found["is_blank"]:
        return
    status, body, _ = _ask(page, "api/attention", {"text": text, "kind": "encoder", "layer": 0})
    assert len(body) == 2 * 2 * len(found["source"]) ** 2  # bytes, heads
    if len(text) < 100:
        assert _ask(page, "api/search", {"text": text})[0] == 200


def test_a_saved_page_holds_no_foreign_markup(answers):
    saved = saving.page(answers, [(hostile_texts.SCRIPT, None), ("</script><b>", "<!--")])
    assert hostile_texts.SCRIPT not in saved
    assert "</script><b>" not in saved
    assert "<!--" not in saved
    assert "unsafe" not in saved
    for word in ("http://", "https://", "import "):
        assert word not in saved.replace("http://www.w3.org/2000/svg", "").replace(
            "of an import ", ""
        )


def test_a_taken_port_is_one_line(page):
    with pytest.raises(errors.UserError, match="another --port"):
        server.make(page.explorer, host="127.0.0.1", port=page.port)


def test_what_is_loopback():
    hosts = ("127.0.0.1", "::1", "localhost", "0.0.0.0", "box")
    assert [server.is_loopback(host) for host in hosts] == [True, True, True, False, False]
