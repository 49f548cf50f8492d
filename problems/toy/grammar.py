"""One synchronous grammar of English, German and French, with the English Penn-style tree.

    The old dog sleeps in the garden because it is tired.
    Der alte Hund schläft im Garten, weil er müde ist.
    Le vieux chien dort dans le jardin parce qu'il est fatigué.
    (S (NP (DT The) (JJ old) (NN dog)) (VP (VBZ sleeps) (PP (IN in) ...) (SBAR ...)) (. .))

Every rule draws once and builds all three languages; whatever German or French must know (gender,
case, which bank) stands in the English sentence, so that a translation is never a matter of chance.
French question marks follow without a space.
"""

import itertools
import random
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from . import lexicon, phrases, rules


class Sentence(NamedTuple):
    english: str
    german: str
    french: str
    tree: str


CONTRACTIONS = {
    where: {row["words"]: row["contraction"] for row in entries}
    for where, entries in lexicon.grouped("contractions").items()
}


def contracted(where: str, text: str, ahead: str = "") -> str:
    """In dem Garten --> im Garten."""
    words = rf"\b({'|'.join(CONTRACTIONS[where])})\b{ahead}"
    return re.sub(words, lambda match: CONTRACTIONS[where][match[0]], text)


def french_sound(text: str) -> str:
    """De le ami --> de l'ami; de le chien --> du chien."""
    text = contracted("french before a vowel", text, rf"(?= (?i:[{phrases.VOWELS}]))")
    return contracted("french", text.replace("' ", "'"))


def capital(text: str) -> str:
    return text[0].upper() + text[1:]


def written(text: str) -> str:
    """Write a sentence: "der Hund , der bellt, ." --> "Der Hund, der bellt."."""
    return capital(re.sub(r",(?=[,.?])", "", re.sub(r" (?=[,.?])", "", text)))


def finish(drawn: rules.Texts) -> Sentence:
    leaf = re.compile(r" ([^()\s]+)\)")
    tree = leaf.sub(lambda match: f" {capital(match[1])})", drawn["english"], count=1)
    return Sentence(
        english=written(" ".join(leaf.findall(tree))),
        german=written(contracted("german", drawn["german"])),
        french=written(french_sound(drawn["french"])),
        tree=tree,
    )


def draws(*, seed: int) -> Iterator[Sentence]:
    """Draw sentences of 5 to 25 words, no name twice in one, without end, repeats and all."""
    rng = random.Random(seed)
    kinds = [rule for rule, weight in rules.WEIGHTS.items() for _ in range(weight)]
    while True:
        sentence = finish(rng.choice(kinds)(rng))
        names = re.findall(r"\(NNP (\w+)\)", sentence.tree)
        if 4 <= sentence.english.count(" ") < 25 and len(set(names)) == len(names):
            yield sentence


def sentences(*, seed: int) -> Iterator[Sentence]:
    """Draw without end; no English, German or French sentence comes twice."""
    seen: set[tuple[str, str]] = set()
    for sentence in draws(seed=seed):
        texts = set(sentence._asdict().items())  # with their languages: one may equal another's
        if not texts & seen:
            seen |= texts
            yield sentence


def split(name: str, *, sizes: Mapping[str, int], seed: int) -> Iterator[Sentence]:
    """Yield one of several splits, which follow each other in the order of `sizes`.

    Sentences are distinct, so splits are disjoint; the last one's size does not change the others.
    """
    names = list(sizes)
    start = sum(sizes[each] for each in names[: names.index(name)])
    return itertools.islice(sentences(seed=seed), start, start + sizes[name])
