"""A beam search that keeps everything it saw, to be looked at.

The search of decode.beam_search for one sentence, step by step in Python over the same cached
decoder and the same candidates: it comes to the same hypotheses and tells how. Shapes and words
are that module's: N beams, K hypotheses kept, of the best 2 N extensions of a step some end and the
best N others live on.
"""

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

from t2t_lite import errors
from t2t_lite.decode import beam_search, cached_decoder, candidates, translator
from t2t_lite.decode import options as decode_options
from t2t_lite.text import vocabulary as vocabularies

# What becomes of an extension.
LIVES, FINISHED, PUSHED_OUT, FELL_OUT, ENDED_LATE = (
    "lives",  # goes on as a beam
    "finished",  # is among the K finished when it ends
    "pushed out",  # was among them, until better ones ended
    "fell out",  # neither
    "ended too low",  # ends, but not among the K best, or (strict ends) not among the best N
)


@dataclasses.dataclass
class Extension:
    """One of the best 2 N extensions of a step.

    Attributes:
      number: its place among all, from 0; parents have smaller ones.
      parent: the extension that it adds a token to; None at the first step.
      step: from 0; it has step + 1 tokens.
      token: its last token.
      log_probability: of all of its tokens.
      score: that over the length penalty of its length.
      fate: what became of it.
      is_best: whether the best hypothesis went through it.
    """

    number: int
    parent: int | None
    step: int
    token: int
    log_probability: float
    score: float
    fate: str = FELL_OUT
    is_best: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tree:
    """All extensions by number, the hypotheses (numbers, best first), and why it stopped."""

    extensions: list[Extension]
    hypotheses: list[int]
    stopped: str
    max_length: int

    def ids(self, number: int) -> list[int]:
        """Return the tokens of an extension, the first first."""
        tokens = []
        place: int | None = number
        while place is not None:
            tokens.append(self.extensions[place].token)
            place = self.extensions[place].parent
        return tokens[::-1]


class TracedSearch:
    """Searches with a translator's models and options and keeps the tree.

    Raises UserError for a translator that draws outputs at random, which is not a search.
    """

    def __init__(self, model: translator.Translator):
        if model.options.sampling:
            raise errors.UserError("outputs drawn at random have no search tree")
        self._model = model
        self._options = model.options
        # Outside the steps, so that weights are cast and transposed once.
        self._decoder = cached_decoder.of_models(model.models, model.options)
        self._emittable = model.emittable
        self._run_step = tf.function(self._step, autograph=False, reduce_retracing=True)
        self._encode = tf.function(
            self._decoder.encode,
            autograph=False,
            input_signature=[tf.TensorSpec([1, None], tf.int32)],
        )

    def run(self, source_ids: list[int]) -> Tree:
        """Search for the outputs of a source, EOS included."""
        options, grammar = self._options, self._model.grammar
        prefix = self._model.vocabulary.targets.encode(options.prefix)
        inputs = tf.constant(translator.pad([source_ids]))
        max_length = max(len(source_ids) + options.extra_length + len(prefix), 1)
        grammar_state: Any = ()
        if grammar:
            num_words = grammar.count_words(inputs)
            grammar_state = tf.nest.map_structure(
                lambda x: tf.repeat(x, options.beam_size, axis=1), grammar.start(num_words)
            )
            max_length = max(max_length, int(grammar.shortest_length(num_words)[0]))
        tree = _Growing(options, max_length)
        state, ancestry = self._encode(inputs), np.zeros([1, tree.width, 0], np.int32)
        for step in range(max_length):
            if step == ancestry.shape[2]:
                state = self._decoder.grow(state, tf.constant(ancestry), beam_search.SEGMENT)
                grown = np.full([1, tree.width, beam_search.SEGMENT], -1, np.int32)
                ancestry = np.concatenate([ancestry, grown], axis=2)
            ancestry[0, :, step] = np.arange(ancestry.shape[1])
            forced = prefix[step] if step < len(prefix) else vocabularies.PAD_ID
            best, state = self._run_step(
                tf.constant([tree.last_tokens], tf.int32),
                tf.constant(step),
                tf.constant(ancestry),
                tf.constant([tree.log_probabilities], tf.float32),
                state,
                grammar_state,
                tf.constant([max_length - step - 1]),
                tf.constant([forced]),
            )
            parents = tree.extend(*(x.numpy()[0] for x in best))
            if grammar:
                ids = tf.constant([tree.last_tokens], tf.int32)
                grammar_state = grammar.advance(_of_parents(grammar_state, parents), ids)
            ancestry = ancestry[:, parents]
            if tree.is_done():
                break
        return tree.finish()

    def _step(self, ids, position, ancestry, scores, state, grammar_state, steps_left, forced):
        """Return the best extensions [1, M] of beams with ids and scores [1, N], and the state."""
        options, grammar = self._options, self._model.grammar
        logits, state = self._decoder.step(ids, position, ancestry, state)
        rules = candidates.Rules(forced_ids=forced if options.prefix else None)
        if grammar:
            allowed = grammar.allowed(grammar_state, steps_left)
            rules = candidates.Rules(grammar_ids=grammar.ids, grammar_allows=allowed)
        elif options.min_length > 1:
            rules = rules._replace(may_end=position + 1 >= options.min_length)
        count = 2 * options.beam_size if options.beam_size > 1 else 1
        best = candidates.extend(
            logits, scores, count, rules=rules, emittable=self._emittable, options=options
        )
        return best, state


class _Growing:
    """A tree under way; `beams` are the numbers of the extensions that live, best first."""

    def __init__(self, options, max_length: int):
        self._options = options
        self._max_length = max_length
        self._extensions: list[Extension] = []
        self._step = 0
        self._num_kept = options.beam_size if options.early_stop else options.return_beams
        self._finished: list[Extension] = []  # at most that many, best first
        # At first one empty beam, the first; the others do not exist.
        self.beams: list[int | None] = [None] * options.beam_size
        self.stopped = "length limit"
        self._is_dead = False

    @property
    def width(self) -> int:
        """The number of beams that live."""
        return len(self.beams)

    @property
    def last_tokens(self) -> list[int]:
        """The last token of each beam, PAD before the first step."""
        return [vocabularies.PAD_ID if b is None else self._extensions[b].token for b in self.beams]

    @property
    def log_probabilities(self) -> list[float]:
        """The log-probability of each beam."""
        empty = [0.0] + [candidates.NEVER] * (self.width - 1)
        return [
            start if b is None else self._extensions[b].log_probability
            for b, start in zip(self.beams, empty)
        ]

    def extend(self, scores, ids, parents) -> list[int]:
        """Take the best extensions of a step; return the parents' beams of those that live on.

        Beams that do not exist stay as such, so that there are always N: a step has N slots.
        """
        width = self._options.beam_size
        step, penalty = self._step, length_penalty(self._step + 1, self._options)
        made = []
        for score, token, parent in zip(scores.tolist(), ids.tolist(), parents.tolist()):
            made.append(
                Extension(
                    number=len(self._extensions) + len(made),
                    parent=self.beams[parent],
                    step=step,
                    token=token,
                    log_probability=score,
                    score=float(np.float32(score) / penalty),
                )
            )
        ends = [extension.token == vocabularies.EOS_ID for extension in made]
        # Of N beams at most N end, so that N of 2 N extensions live; of the one of one beam, none.
        living = [place for place, is_end in enumerate(ends) if not is_end][:width]
        for place, (extension, is_end) in enumerate(zip(made, ends)):
            if is_end and exists(extension):
                is_late = self._options.strict_ends and place >= width
                extension.fate = ENDED_LATE if is_late else FINISHED
        self._extensions += made
        self._rank([extension for extension in made if extension.fate == FINISHED])
        for place in living:
            if exists(made[place]):
                made[place].fate = LIVES
        places = living or [0]
        self.beams = [made[place].number for place in places]
        self._is_dead = not living
        self._step += 1
        return [int(parents[place]) for place in places]

    def _rank(self, new: list[Extension]) -> None:
        """Put new ends among the K best finished ones; the others are pushed out or too low."""
        old = list(self._finished)
        ranked = sorted([*old, *new], key=lambda e: -e.score)
        self._finished = ranked[: self._num_kept]
        for extension in ranked[self._num_kept :]:
            extension.fate = PUSHED_OUT if extension in old else ENDED_LATE

    def is_done(self) -> bool:
        """Return whether no beam can reach the worst of K finished ones, or enough have ended.

        As in beam_search._should_continue.
        """
        best = self._extensions[self.beams[0] or 0]
        if self._is_dead or not exists(best):
            self.stopped = "nothing left"
            return True
        if len(self._finished) < self._num_kept:
            return False
        if self._options.early_stop:
            self.stopped = "enough ends"
            return True
        largest = max(
            length_penalty(self._max_length, self._options),
            length_penalty(self._step + 1, self._options),
        )
        if np.float32(best.log_probability) / largest > np.float32(self._finished[-1].score):
            return False
        self.stopped = "no better end possible"
        return True

    def finish(self) -> Tree:
        """Return the tree: its hypotheses are the finished ones, then those still alive."""
        alive = [] if self._is_dead else [self._extensions[b or 0] for b in self.beams]
        alive = [extension for extension in alive if exists(extension)]
        hypotheses = [*self._finished, *alive][: self._options.return_beams]
        extensions = self._extensions
        place: int | None = hypotheses[0].number if hypotheses else None
        while place is not None:
            extensions[place].is_best = True
            place = extensions[place].parent
        return Tree(
            extensions=extensions,
            hypotheses=[extension.number for extension in hypotheses],
            stopped=self.stopped,
            max_length=self._max_length,
        )


def _of_parents(state: Any, parents: list[int]) -> Any:
    """Return a grammar's state [1, N, ...] of the beams that those which live on came from."""
    return tf.nest.map_structure(lambda x: tf.gather(x, parents, axis=1), state)


def length_penalty(length: int, options: decode_options.DecodeOptions) -> np.float32:
    """Return ((5 + n) / 6)^alpha or n^alpha, in float32 as beam_search.length_penalty has it."""
    base = length if options.length_penalty == "power" else (5.0 + length) / 6.0
    return np.float32(np.power(np.float32(base), np.float32(options.alpha)))


def exists(extension: Extension) -> bool:
    """Return whether an extension is one: where there are too few, the rest do not exist."""
    return extension.log_probability > candidates.NEVER / 2
