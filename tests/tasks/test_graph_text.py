"""Text to ids and back in a graph, against the vocabulary outside of it."""

import resource
import sys

import pytest
import tensorflow as tf
import tiny_run

from t2t_lite.tasks import graph_text
from t2t_lite.text import vocabulary as vocabularies

EOS = vocabularies.EOS_ID


@pytest.fixture(scope="module")
def coder():
    return graph_text.GraphText(tiny_run.task())


def _rows(rows):
    return [ids[:length].tolist() for ids, length in zip(rows.ids.numpy(), rows.lengths.numpy())]


def test_any_bytes_become_the_vocabularys_ids_and_come_back(coder, hostile):
    texts = [b"a dog runs", "Zwei  Hunde.\t☃".encode(), *hostile.values()]
    decoded = [text.decode("utf-8", "replace") for text in texts]
    found = coder.encode(tf.constant(texts), 200_000)
    assert _rows(found) == [[*ids, EOS] for ids in tiny_run.subwords().encode_batch(decoded)]
    assert not found.truncated.numpy().any()
    # The one sign that is not kept.
    expected = [text.replace("\u2581", " ") for text in decoded]
    assert [text.decode() for text in coder.decode(found.ids).numpy()] == expected


def test_blank_is_what_python_strips(coder):
    characters = [chr(i) for i in range(sys.maxunicode + 1) if not 0xD800 <= i < 0xE000]
    spaces = [c for c in characters if not c.strip()]
    others = [c for c in characters[:0x3100] if c.strip()]
    blank = coder.encode(tf.constant([*spaces, "", " \t\n", "".join(spaces)]), 9).is_blank
    assert blank.numpy().all()
    assert not coder.encode(tf.constant([*others, " a ", "\n.\n"]), 9).is_blank.numpy().any()


def test_decoding_equals_the_vocabularys_for_any_ids(coder):
    subwords = tiny_run.subwords()
    first_byte = subwords.byte_ids.start
    rows = [[5, EOS, 0, 0], [0, 5, 0, EOS], [2, 5, subwords.size, 10**9]]
    rows.append([first_byte + 0xE2, first_byte + 0x98, 5, EOS])  # a cut character
    expected = [subwords.decode(row) for row in rows]
    found = coder.decode(tf.constant([rows[:2], rows[2:]]))
    assert [text.decode() for text in found.numpy().ravel()] == expected


@pytest.mark.parametrize(
    ("text", "ids", "is_truncated"),
    [
        ("5 6 1", [5, 6, EOS], False),
        ("5 6", [5, 6, EOS], False),
        ("5 6 1 0 0", [5, 6, EOS], False),  # what follows EOS is not read
        ("5 6 7 8", [5, 6, 7, EOS], True),
        ("5 " * 100_000, [5, 5, 5, EOS], True),
        ("", [EOS], False),
        ("1 5", [EOS], False),
        *((text, [EOS], True) for text in ("5 0 1", "5 -7", "5 300", "9999999999", "5  6", "a")),
        *((text, [EOS], True) for text in (" 5", "5\t6", "5,6", "5.0", "5\x006", b"\xff")),
    ],
)
def test_clients_ids_end_at_eos_and_are_the_vocabularys(text, ids, is_truncated):
    texts = tf.constant([text, "7"])
    read = graph_text.rows_of_ids(texts, 4, tiny_run.subwords().size)
    assert _rows(read) == [ids, [7, EOS]]
    assert read.truncated.numpy().tolist() == [is_truncated, False]
    assert read.is_blank.numpy().tolist() == [len(ids) == 1, False]


def test_ids_become_the_texts_that_a_client_sends():
    ids = tf.constant([[[5, 6, EOS], [7, EOS, 0]], [[EOS, 0, 0], [0, 0, 0]]])
    texts = graph_text.texts_of_ids(ids).numpy().tolist()
    assert texts == [[b"5 6 1", b"7 1"], [b"1", b""]]


def test_a_text_is_read_as_far_as_its_tokens_can_reach(coder):
    """What is left out before the tokenizer changes neither the tokens that are kept nor a flag."""
    texts = ["a dog runs " * 5000, "x" * 100_000, "☃" * 50_000, "a dog", " " * 90_000 + "a dog"]
    whole = [[*ids, EOS] for ids in tiny_run.subwords().encode_batch(texts)]
    for limit in (2, *range(len(whole[3]) - 1, len(whole[3]) + 2), 12):
        expected = [[*ids[:-1][: limit - 1], EOS] for ids in whole]
        outside = tiny_run.task().encode(texts, limit)
        inside = coder.encode(tf.constant(texts), limit)
        assert [source.ids for source in outside] == _rows(inside) == expected
        cut = [len(ids) > limit for ids in whole]
        assert [source.truncated for source in outside] == inside.truncated.numpy().tolist() == cut
        assert inside.is_blank.numpy().tolist() == [False, False, False, False, True]


def test_a_request_of_100_megabytes_costs_little(coder):
    text = tf.constant([b"a dog runs " * 9_500_000])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    encode = tf.function(lambda texts: coder.encode(texts, 512).ids)
    encode(text)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 50_000  # KiB; tokenizing all of it takes 2.5 GB
