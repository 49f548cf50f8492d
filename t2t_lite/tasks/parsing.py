"""Constituency parsing (Section 6.3): words in, a tree over them out, scored by EVALB.

An input is words with spaces between, an output the tree's linear form: a label at both brackets,
one symbol a word (see parsing.trees). The same in Python and in the graph:

    It rained .  ->  " (S (NP XX )NP (VP XX )VP XX )S"  ->  (S (NP (XX It)) (VP (XX rained)) (. .))
"""

import dataclasses
from collections.abc import Callable, Sequence

import tensorflow as tf

from t2t_lite import errors
from t2t_lite.parsing import evalb, tree_grammar, trees
from t2t_lite.tasks import task
from t2t_lite.text import vocabulary as vocabularies

_SPACES = r"[ \t\n\v\f\r]+"  # ASCII white space
# A sentence that cannot be compared is counted, and never stops an evaluation.
_PARAMETERS = dataclasses.replace(evalb.COLLINS, max_error=10**9)


class Parsing(task.Task):
    """Words to trees."""

    name = "parsing"
    score_name = "F1"
    # Whether a word's symbol in the linear form is its tag, not XX.
    with_tags = False
    # Section 6.3
    decoding_defaults = {"beam_size": 21, "alpha": 0.3, "extra_length": 300}  # noqa: RUF012

    def __init__(self, vocabulary: vocabularies.Vocabulary):
        super().__init__(vocabulary)
        self.grammar = tree_grammar.TreeGrammar(vocabulary)
        self.space_id = vocabulary.space_id

    def input_text(self, text: str) -> str:
        """Return the words as trees have them, with one space between."""
        return trees.sentence(text)

    def target_text(self, text: str) -> str:
        """Return the linear form of a text that is a tree or such a form."""
        try:
            return f" {trees.linear_form(text, with_tags=self.with_tags)}"
        except errors.UserError as error:
            raise errors.UserError(f"{text[:60]!r} is not a tree: {error}") from None

    def decode(self, ids: Sequence[int], source: task.EncodedText) -> task.Output:
        """Return the tree; a malformed one of a free search is repaired."""
        words = self.vocabulary.decode(source.ids).split(" ")
        mended = trees.repair(self.vocabulary.decode(ids), len(words))
        return task.Output(str(trees.delinearize(mended.linear, words)), mended.repairs)

    def metrics(
        self, references: Sequence[str], target_language: str = ""
    ) -> dict[str, task.Metric]:
        """Return the F1 of labelled brackets in percent."""
        return {self.score_name: lambda outputs: score(outputs, references).all.f1}

    def scorer(self, target_language: str) -> Callable[[Sequence[str], Sequence[str]], str]:
        """Return a function that gives EVALB's report; the language does not matter."""
        return lambda outputs, references: evalb.report(score(outputs, references))

    def graph_inputs(self, texts: tf.Tensor) -> tf.Tensor:
        """Return `input_text` of string [B] inputs."""
        texts = tf.strings.strip(tf.strings.regex_replace(texts, _SPACES, " "))
        for character, escape in trees.SENTENCE_ESCAPES.items():
            texts = tf.strings.regex_replace(texts, rf"\x{{{character:x}}}", escape)
        return texts

    def graph_targets(self, texts: tf.Tensor) -> tf.Tensor:
        """Return linear forms with the space that each symbol has before it."""
        return tf.strings.join([" ", tf.strings.strip(texts)])

    def graph_outputs(self, texts: tf.Tensor, inputs: tf.Tensor) -> tf.Tensor:
        """Return the trees [B, N] of well-formed linear forms over the sentences [B]."""
        sentences = tf.repeat(inputs, tf.shape(texts)[1])
        return tf.reshape(delinearize(tf.reshape(texts, [-1]), sentences), tf.shape(texts))


class ParsingWithTags(Parsing):
    """Words to trees whose words have tags."""

    name = "parsing_with_tags"
    with_tags = True


def score(outputs: Sequence[str], references: Sequence[str]) -> evalb.Score:
    """Return the score of trees, one a string, against gold trees by EVALB with COLLINS.prm.

    The outputs get the gold tags, because a parser of words finds no tags and EVALB leaves words
    out by their tags. An empty output counts as skipped, a tree over other words as an error.
    """
    gold = [trees.parse(reference) for reference in references]
    return evalb.score(gold, map(_with_gold_tags, outputs, gold), _PARAMETERS)


def delinearize(linear: tf.Tensor, sentences: tf.Tensor) -> tf.Tensor:
    """Return the trees, string [R], of well-formed linear forms [R] over sentences [R].

    Like `trees.delinearize`: ")NP" becomes ")", "(NP" becomes " (NP", and a word's symbol becomes
    " (tag word)"; for XX the tag follows from the word alone.
    """
    tokens = tf.strings.split(tf.strings.strip(linear), " ").to_tensor("")
    bracket = tf.strings.substr(tokens, 0, 1)
    is_word = (bracket != "(") & (bracket != ")") & (tokens != "")
    words = tf.strings.split(sentences, " ").to_tensor("")
    number = tf.maximum(tf.cumsum(tf.cast(is_word, tf.int32), axis=1) - 1, 0)
    # A row without any form has no words to look up, as long as there is one column of them.
    words = tf.gather(tf.pad(words, [[0, 0], [0, 1]]), number, batch_dims=1)
    text = tf.where(bracket == "(", tf.strings.join([" ", tokens]), "")
    text = tf.where(bracket == ")", ")", text)
    text = tf.where(is_word, tf.strings.join([" (", _tags(tokens, words), " ", words, ")"]), text)
    return tf.strings.strip(tf.strings.reduce_join(text, axis=1))


def _tags(symbols: tf.Tensor, words: tf.Tensor) -> tf.Tensor:
    """Return the tag of each word: its symbol, or for XX that of trees.TAGS."""
    marks, tags = zip(*trees.TAGS.items())
    is_mark = words[..., None] == tf.constant(marks)
    kind = tf.where(tf.reduce_any(is_mark, axis=-1), tf.argmax(is_mark, axis=-1), len(tags))
    guess = tf.gather(tf.constant([*tags, trees.PRETERMINAL]), kind)
    return tf.where(symbols == trees.PRETERMINAL, guess, symbols)


def _with_gold_tags(output: str, gold: trees.Tree) -> evalb.Prediction:
    if not output.strip():
        return ()
    try:
        tree = trees.parse(output)
    except errors.UserError:
        return None
    # Words are compared in the form that a parser reads.
    if tree.words() != trees.sentence(" ".join(gold.words())).split(" "):
        return None
    return trees.delinearize(trees.linearize(tree), gold.words(), tags=gold.tags())
