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
from dataclasses import dataclass

from . import toy_phrases, toy_rules


@dataclass(frozen=True)
class Sentence:
    english: str
    german: str
    french: str
    tree: str


RULES = {  # and how many of a hundred and some sentences are of each kind
    toy_rules.plain: 28,
    toy_rules.because: 12,
    toy_rules.conditional: 12,
    toy_rules.meanwhile: 6,
    toy_rules.report: 11,
    toy_rules.relative: 10,
    toy_rules.question: 7,
    toy_rules.address: 5,
    toy_rules.chain: 6,
    toy_rules.scene: 8,
    toy_rules.conjunction: 6,
}


ELISION = re.compile(
    rf"\b(le|la|je|ne|de|que|me|te|se|si(?= ils?\b)) (?=[{toy_phrases.VOWELS}])", re.I
)
CONTRACTION = re.compile(r"\b(de|à) (les?)\b")
CONTRACTED = {"de le": "du", "de les": "des", "à le": "au", "à les": "aux"}


def french_sound(text: str) -> str:
    """De le ami --> de l'ami; de le chien --> du chien."""
    text = ELISION.sub(lambda match: match[1][:-1] + "'", text)
    return CONTRACTION.sub(lambda match: CONTRACTED[match[0]], text)


def capital(text: str) -> str:
    return text[0].upper() + text[1:]


def leaves(tree: str) -> list[str]:
    return re.findall(r" ([^()\s]+)\)", tree)


def finish(draft: toy_rules.Draft) -> Sentence:
    tree = toy_phrases.node(draft.label, *draft.children, toy_phrases.node(".", draft.mark))
    tree = re.sub(r" ([^()\s]+)\)", lambda match: f" {capital(match[1])})", tree, count=1)
    english = " ".join(leaves(tree)).replace(" ,", ",")
    german = re.sub(r",(?=,|$)", "", draft.german)
    return Sentence(
        english=english.removesuffix(" " + draft.mark) + draft.mark,
        german=capital(german) + draft.mark,
        french=capital(french_sound(draft.french)) + draft.mark,
        tree=tree,
    )


def draws(*, seed: int) -> Iterator[Sentence]:
    """Draw sentences of 5 to 25 words, no name twice in one, without end, repeats and all."""
    rng = random.Random(seed)
    rules = [rule for rule, weight in RULES.items() for _ in range(weight)]
    while True:
        sentence = finish(rng.choice(rules)(rng))
        names = re.findall(r"\(NNP (\w+)\)", sentence.tree)
        if 4 <= sentence.english.count(" ") < 25 and len(set(names)) == len(names):
            yield sentence


def sentences(*, seed: int) -> Iterator[Sentence]:
    """Draw without end; no English, German or French sentence comes twice."""
    seen: tuple[set[str], ...] = (set(), set(), set())
    for sentence in draws(seed=seed):
        texts = (sentence.english, sentence.german, sentence.french)
        if any(text in known for text, known in zip(texts, seen, strict=True)):
            continue
        for text, known in zip(texts, seen, strict=True):
            known.add(text)
        yield sentence


def splits(*, seed: int, sizes: Mapping[str, int]) -> dict[str, list[Sentence]]:
    """Draw disjoint splits. "train" comes last, so that its size does not change the others."""
    stream = sentences(seed=seed)
    names = sorted(sizes, key=lambda name: (name == "train", name))
    return {name: list(itertools.islice(stream, sizes[name])) for name in names}
