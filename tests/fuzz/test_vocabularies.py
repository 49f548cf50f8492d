"""Vocabulary files: SentencePiece's `.model` and tensor2tensor's `.subwords`."""

import pytest
import tiny_run
from fuzz import inputs
from hypothesis import given
from hypothesis import strategies as st
from sentencepiece import sentencepiece_model_pb2 as sentencepiece_model

from t2t_lite import errors
from t2t_lite.text import any_vocabulary

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
        "".join(vocab.pieces)


@given(st.data())
def test_damaged_files_are_read_or_refused(folder, data):
    _use(folder / "vocab.fuzzed.subwords", data.draw(inputs.damaged([_SUBWORDS], chunks=_CHUNKS)))
    model = inputs.damaged([tiny_run.subwords().model_bytes])
    _use(folder / "vocab.fuzzed.model", data.draw(model))


def _model():
    """Return SentencePiece's message of a vocabulary."""
    return sentencepiece_model.ModelProto.FromString(tiny_run.subwords().model_bytes)  # pyright: ignore


_CHANGES = {
    "type": st.integers(1, 6),
    "piece": st.sampled_from(["", "x", "<0x41>", "<unk>", "a" * 5_000]),
    "score": st.floats(width=32),
    "model_type": st.integers(1, 4),
    "vocab_size": st.integers(-3, 10**6),
    **dict.fromkeys(["unk_id", "bos_id", "eos_id", "pad_id"], st.integers(-3, 10**6)),
    **dict.fromkeys(
        ["add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces"], st.booleans()
    ),
    "precompiled_charsmap": st.binary(max_size=400).map(lambda b: b"\x64\0\0\0" + b),
    "fewer": st.sampled_from([1, 10, 400]),
}


@given(st.data())
def test_well_formed_models_of_other_content_are_read_or_refused(folder, data):
    model = _model()
    for _ in range(data.draw(st.integers(0, 3))):
        place = data.draw(st.integers(0, max(0, len(model.pieces) - 1)))
        name = data.draw(st.sampled_from([*_CHANGES]))
        value = data.draw(_CHANGES[name])
        if name == "fewer":
            del model.pieces[place : place + value]
        for part in (*model.pieces[place : place + 1], model.trainer_spec, model.normalizer_spec):
            if name in part.DESCRIPTOR.fields_by_name:
                setattr(part, name, value)
    _use(folder / "vocab.fuzzed.model", model.SerializeToString())


@pytest.mark.parametrize("reserved", range(3))
def test_a_model_whose_reserved_ids_mean_something_else_is_refused(folder, reserved):
    model = _model()
    one, other = model.pieces[reserved], model.pieces[(reserved + 1) % 3]
    for field in ("piece", "type"):
        values = getattr(other, field), getattr(one, field)
        setattr(one, field, values[0])
        setattr(other, field, values[1])
    path = folder / "vocab.swapped.model"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(errors.UserError, match="EOS 1"):
        any_vocabulary.load(path)
