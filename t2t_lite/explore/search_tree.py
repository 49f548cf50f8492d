"""The tree of a beam search, to be looked at: all extensions that its steps considered.

`decode.beam_search` searches for one sentence and records its steps; here they become a tree. The
letters are that module's: N beams, K hypotheses kept, M = 2 N extensions a step.
"""

import dataclasses
from collections.abc import Iterable

import tensorflow as tf

from t2t_lite import errors
from t2t_lite.decode import beam_search, candidates, translator
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


class RecordedSearch:
    """Searches with a translator and returns the tree.

    Raises UserError for a translator that draws outputs at random, which is not a search.
    """

    def __init__(self, model: translator.Translator):
        if model.options.sampling:
            raise errors.UserError("outputs drawn at random have no search tree")
        self._model = model
        ids = tf.TensorSpec([1, None], tf.int32)
        self._steps = tf.function(self._record, input_signature=[ids, ids], autograph=False)

    def run(self, source_ids: list[int]) -> Tree:
        """Search for the outputs of a source, EOS included."""
        prefix = self._model.vocabulary.targets.encode(self._model.options.prefix)
        steps, max_length = self._steps(translator.pad([source_ids]), translator.pad([prefix]))
        steps = beam_search.Steps(*(x.numpy() for x in steps))
        return _tree(steps, int(max_length), self._model.options)

    def _record(
        self, inputs: tf.Tensor, prefix_ids: tf.Tensor
    ) -> tuple[beam_search.Steps, tf.Tensor]:
        recorder = beam_search.Recorder()
        has_prefix = bool(self._model.options.prefix)
        self._model.search(inputs, prefix_ids if has_prefix else None, recorder=recorder)
        return recorder.steps, recorder.max_length


def _tree(steps: beam_search.Steps, max_length: int, options: decode_options.DecodeOptions) -> Tree:
    """Return the tree of the steps of a search (NumPy arrays)."""
    extensions: list[Extension] = []
    # Numbers of extensions: the beams (the first starts empty), and the K best finished ones.
    beams: list[int | None] = [None] * options.beam_size
    finished: list[int | None] = [None] * steps.finished.shape[1]
    for step, (scores, ids, parents, alive, kept) in enumerate(zip(*steps)):
        penalty = beam_search.length_penalty(tf.constant(step + 1), options).numpy()
        first = len(extensions)
        for score, token, parent in zip(scores, ids.tolist(), parents.tolist()):
            extension = Extension(
                number=len(extensions),
                parent=beams[parent],
                step=step,
                token=token,
                log_probability=float(score),
                score=float(score / penalty),
            )
            if token == vocabularies.EOS_ID:
                extension.fate = ENDED_LATE
            extensions.append(extension)
        beams = [first + place for place in alive.tolist()]
        for extension in _alive(extensions, beams):
            extension.fate = LIVES
        for number in _numbers(finished):
            extensions[number].fate = PUSHED_OUT
        choice = [*finished, *range(first, len(extensions))]
        finished = [choice[place] if place >= 0 else None for place in kept.tolist()]
        for number in _numbers(finished):
            extensions[number].fate = FINISHED
    living = [extension.number for extension in _alive(extensions, beams)]
    hypotheses = [*_numbers(finished), *living][: options.return_beams]
    place = hypotheses[0] if hypotheses else None
    while place is not None:
        extensions[place].is_best = True
        place = extensions[place].parent
    stopped = "no better end possible"
    if not living:
        stopped = "nothing left"
    elif len(steps.ids) == max_length:
        stopped = "length limit"
    elif options.early_stop != "false":
        stopped = "enough ends"
    return Tree(
        extensions=extensions, hypotheses=hypotheses, stopped=stopped, max_length=max_length
    )


def _numbers(numbers: Iterable[int | None]) -> list[int]:
    return [number for number in numbers if number is not None]


def _alive(extensions: list[Extension], beams: Iterable[int | None]) -> list[Extension]:
    """Return the extensions of the beams that exist: where too few go on, the rest do not."""
    chosen = [extensions[number] for number in _numbers(beams)]
    return [e for e in chosen if exists(e) and e.token != vocabularies.EOS_ID]


def exists(extension: Extension) -> bool:
    """Return whether an extension is one: where there are too few, the rest do not exist."""
    return extension.log_probability > candidates.NEVER / 2
