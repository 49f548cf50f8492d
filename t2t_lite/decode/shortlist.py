"""A lexical shortlist: of the softmax only the columns that the source of a batch may need.

A file tells which target pieces each source piece may become, and which may come always (no source
piece). It is CTranslate2's vocabulary map, so that one file serves both:

    <TAB>. , ▁a ▁in
    ▁dog<TAB>▁Hund ▁Hunde hund

Before a search begins, the decoder takes the rows of the embedding that any sentence of the batch
may need. Of these each sentence has its own, and the others are hidden from it: what it gets
depends on no other. A prefix's tokens are its own too, and what a line cannot name, for it has a
space in it, may always come. Probabilities are those among the columns that a sentence has; PAD and
UNK, which are never emitted, take part as always.

Shapes: B sentences, S source length, P tokens of a prefix, V ids of the targets, K targets of a
source id at most, W columns of the batch, D width of the embedding.
"""

import hashlib
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from t2t_lite import errors
from t2t_lite.decode import cached_decoder, candidates
from t2t_lite.text import any_vocabulary, text_files
from t2t_lite.text import vocabulary as vocabularies

# Targets of one source piece: all rows of the table are as long as the longest.
LONGEST = 1000


class Shortlist:
    """What a file says, as a table [V of the sources, K] that is filled up with EOS.

    Args:
      path: the file, plain or compressed.
      vocabulary: of both sides.
      emittable: which ids may be emitted.

    Attributes:
      digest: tells the file's content from any other.

    Raises UserError where the file is none, or of another vocabulary.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        vocabulary: any_vocabulary.AnyVocabulary,
        emittable: candidates.EmittableIds,
    ):
        if os.path.isdir(path):
            raise errors.UserError(f"{path} is a folder: expected a shortlist")
        with text_files.explain_damage(path), text_files.open_binary(path) as file:
            content = file.read()
        self.digest = hashlib.sha256(content).hexdigest()
        rows = _rows(content, path, vocabulary)
        # They keep their places before all others in every batch's columns: see candidates.extend.
        first = [*emittable.forbidden, emittable.eos_id]
        assert sorted(first) == list(range(len(first))), first
        always = np.zeros([vocabulary.targets.size], bool)
        always[[*rows.pop(None, ()), *first, *unwritable(vocabulary.targets)]] = True
        longest = max(map(len, rows.values()), default=0)
        targets = np.full([vocabulary.size, longest], emittable.eos_id, np.int32)
        for source, ids in rows.items():
            targets[source, : len(ids)] = ids
        self._least_columns = emittable.least_columns
        with tf.init_scope():
            self._always, self._targets = tf.constant(always), tf.constant(targets)

    def columns(self, inputs: tf.Tensor, prefix_ids: tf.Tensor | None = None) -> candidates.Columns:
        """Return the columns that a batch has.

        Args:
          inputs: int32 [B, S], padded with PAD.
          prefix_ids: int32 [B, P], what outputs begin with, padded with PAD; or None.
        """
        batch_size, length = tf.unstack(tf.shape(inputs))
        ids = tf.gather(self._targets, inputs)  # [B, S, K] --> [B, S K]
        ids = tf.reshape(ids, [batch_size, length * self._targets.shape[1]])
        if prefix_ids is not None:
            ids = tf.concat([ids, prefix_ids], axis=1)
        counts = tf.raw_ops.DenseBincount(
            input=ids, size=tf.size(self._always), weights=tf.zeros([0]), binary_output=True
        )
        has_BV = (counts > 0) | self._always
        is_needed = tf.reduce_any(has_BV, axis=0)
        needed = tf.cast(tf.where(is_needed)[:, 0], tf.int32)
        num_needed = tf.maximum(tf.size(needed), self._least_columns)
        num_groups = -(-num_needed // candidates.GROUP_SIZE)
        spare = num_groups * candidates.GROUP_SIZE - tf.size(needed)
        has_BW = tf.pad(tf.gather(has_BV, needed, axis=1), [[0, 0], [0, spare]])
        has_BW.set_shape([inputs.shape[0], None])
        return candidates.Columns(
            ids=tf.pad(needed, [[0, spare]], constant_values=vocabularies.PAD_ID),
            places=tf.cumsum(tf.cast(is_needed, tf.int32)) - 1,
            hidden=tf.where(has_BW, 0.0, candidates.NEVER),
        )


class ShortDecoder:
    """A cached decoder with a batch's columns alone, as a beam_search.Decoder.

    A state is the cached decoder's, and which columns are hidden from each sentence.
    """

    def __init__(self, decoder: cached_decoder.CachedDecoder, columns: candidates.Columns):
        self._decoder = decoder.with_columns(columns.ids)
        self._columns = columns

    def encode(self, inputs: tf.Tensor) -> tuple[cached_decoder.State, tf.Tensor]:
        """Return the state before the first step of the batch [B, S] that has the columns."""
        return self._decoder.encode(inputs), self._columns.hidden

    def grow(self, state: Any, ancestry: tf.Tensor, num_steps: tf.Tensor) -> Any:
        """See beam_search.Decoder."""
        own, hidden = state
        return self._decoder.grow(own, ancestry, num_steps), hidden

    def step(
        self, ids: tf.Tensor, position: tf.Tensor, ancestry: tf.Tensor, state: Any
    ) -> tuple[candidates.ListedLogits, Any]:
        """See beam_search.Decoder."""
        own, hidden = state
        logits, own = self._decoder.step(ids, position, ancestry, own)
        return candidates.ListedLogits(logits, self._columns._replace(hidden=hidden)), (own, hidden)


def unwritable(vocabulary: any_vocabulary.AnyVocabulary) -> list[int]:
    """Return the ids whose pieces no line can name, as tensor2tensor's ", _"."""
    return [token for token in range(vocabulary.size) if not is_writable(vocabulary.piece(token))]


def is_writable(piece: str) -> bool:
    """Return whether a line can name a piece."""
    return bool(piece) and not set(piece) & set(" \t\r\n")


def _rows(
    content: bytes, path: str | os.PathLike[str], vocabulary: any_vocabulary.AnyVocabulary
) -> dict[int | None, list[int]]:
    """Return the targets of each source id, those that may always come under None."""
    sources, targets = (
        {side.piece(token): token for token in range(side.size)}
        for side in (vocabulary, vocabulary.targets)
    )
    # Padding would give a sentence this row or not, as its batch has it.
    del sources[vocabulary.piece(vocabularies.PAD_ID)]
    rows: dict[int | None, list[int]] = {}
    for number, line in _lines(content, path):
        source, tab, listed = line.partition("\t")
        if not tab:
            raise errors.UserError(
                f"{path}, line {number}: expected a source piece, a tab and target pieces with "
                "spaces between"
            )
        pieces = listed.split(" ") if listed else []
        for known, piece in ((sources, source), *((targets, piece) for piece in pieces)):
            if piece not in known and (piece or known is targets):
                raise errors.UserError(
                    f"{path}, line {number}: {piece!r} is no piece of the run's vocabulary; a "
                    "shortlist is made for one vocabulary, and has single source pieces"
                )
        if source and len(pieces) > LONGEST:
            raise errors.UserError(
                f"{path}, line {number}: {len(pieces):,} targets of one source piece; at most "
                f"{LONGEST:,} are of use"
            )
        key = sources[source] if source else None
        if key in rows:
            raise errors.UserError(f"{path}, line {number}: a second line of {source!r}")
        rows[key] = [targets[piece] for piece in pieces]
    if not rows:
        raise errors.UserError(f"{path} is empty: expected a shortlist")
    return rows


def _lines(content: bytes, path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each line that is not blank."""
    for number, line in enumerate(content.split(b"\n"), start=1):
        try:
            text = line.removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError:
            raise errors.UserError(f"{path}, line {number} is not valid UTF-8") from None
        if text:
            yield number, text
