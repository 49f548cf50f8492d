"""Vocabulary files: SentencePiece's `.model` and tensor2tensor's `.subwords`."""

import functools

import pytest
import tiny_run
from fuzz import inputs
from hypothesis import given
from hypothesis import strategies as st
from sentencepiece import sentencepiece_model_pb2 as sentencepiece_model

from t2t_lite import errors
from t2t_lite.text import any_vocabulary, vocabulary

_SUBWORDS = b"'<pad>'\n'<EOS>'\n'dog_'\n'a'\n'd'\n'o'\n'g'\n'_'\n'\\'\n'u'\n';'\n'0'\n'1'\n" + (
    b"".join(b"'%d'\n" % digit for digit in range(2, 10)) + b"', '\n' '\n'.'\n"
)
_CHUNKS = [b"'", b"''\n", b'"\n', b"\n", b"\\\n", b"_\n", b"\xff", b"\r\n"]
_SENTENCES = ["a dog runs", "Ä ☃\t\ud800\u2581  \\u _ \\9;", "", "\\" + inputs.DIGITS + ";"]


def _use(path, data):
    """Load a vocabulary of these bytes and run texts and ids through it."""
    path.write_bytes(data)
    with inputs.answered():
        vocab = any_vocabulary.load(path)
        for text in _SENTENCES:
            ids = vocab.encode(text)
            assert all(0 <= token < vocab.size for token in ids)
            vocab.decode(ids)
        vocab.decode([*range(2, vocab.size), -1, 10**6])
        "".join(map(vocab.piece, range(vocab.size)))


@given(inputs.damaged([_SUBWORDS], chunks=_CHUNKS))
def test_subwords_are_read_or_refused(folder, data):
    _use(folder / "vocab.fuzzed.subwords", data)


@given(st.data())
def test_model_files_are_read_or_refused(folder, data):
    model = tiny_run.subwords().model_bytes
    _use(folder / "vocab.fuzzed.model", data.draw(inputs.damaged([model])))


@functools.cache
def _fields():
    return sentencepiece_model.ModelProto.FromString(tiny_run.subwords().model_bytes)  # pyright: ignore


@given(st.data())
def test_well_formed_models_of_other_content_are_read_or_refused(folder, data):
    model = sentencepiece_model.ModelProto()  # pyright: ignore[reportAttributeAccessIssue]
    model.CopyFrom(_fields())
    for _ in range(data.draw(st.integers(0, 3))):
        _change(data.draw, model)
    _use(folder / "vocab.fuzzed.model", model.SerializeToString())


def _change(draw, model) -> None:
    place = draw(st.integers(0, max(0, len(model.pieces) - 1)))
    kind = draw(st.sampled_from(["type", "piece", "score", "fewer", "kind", "map", "id", "flag"]))
    ids = ["unk_id", "bos_id", "eos_id", "pad_id", "vocab_size"]
    flags = ["add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces"]
    if kind == "type" and model.pieces:
        model.pieces[place].type = draw(st.integers(1, 6))
    elif kind == "piece" and model.pieces:
        model.pieces[place].piece = draw(st.sampled_from(["", "x", "<0x41>", "<unk>", "a" * 5_000]))
    elif kind == "score" and model.pieces:
        model.pieces[place].score = draw(st.floats(width=32))
    elif kind == "fewer":
        del model.pieces[place : place + draw(st.sampled_from([1, 10, 400]))]
    elif kind == "kind":
        model.trainer_spec.model_type = draw(st.integers(1, 4))
    elif kind == "map":
        size = draw(st.integers(0, 100))
        content = draw(st.binary(max_size=4 * size))
        model.normalizer_spec.precompiled_charsmap = (4 * size).to_bytes(4, "little") + content
    elif kind == "id":
        setattr(model.trainer_spec, draw(st.sampled_from(ids)), draw(st.integers(-3, 10**6)))
    elif kind == "flag":
        setattr(model.normalizer_spec, draw(st.sampled_from(flags)), draw(st.booleans()))


@pytest.mark.parametrize("reserved", range(3))
def test_a_model_whose_reserved_ids_mean_something_else_is_refused(folder, reserved):
    model = sentencepiece_model.ModelProto()  # pyright: ignore[reportAttributeAccessIssue]
    model.CopyFrom(_fields())
    other = (reserved + 1) % 3
    for field in ("piece", "type"):
        one, two = getattr(model.pieces[reserved], field), getattr(model.pieces[other], field)
        setattr(model.pieces[reserved], field, two)
        setattr(model.pieces[other], field, one)
    path = folder / "vocab.swapped.model"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(errors.UserError, match="EOS 1"):
        any_vocabulary.load(path)
    assert vocabulary.EOS_ID == 1
