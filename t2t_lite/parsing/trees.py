"""Penn-style trees, and the linear form of them that a sequence model learns.

A treebank holds (`read`)

    ( (S (NP-SBJ-1 (PRP It)) (VP (VBD was) (VP (VBN seen) (NP (-NONE- *-1)))) (. .)) )

`clean` leaves what a parser has to find

    (S (NP (PRP It)) (VP (VBD was) (VP (VBN seen))) (. .))

and `linearize` writes it without its words: a label at both brackets, one symbol a word
(Vinyals et al. 2015, "Grammar as a Foreign Language")

    (S (NP XX )NP (VP XX (VP XX )VP )VP XX )S

`delinearize` puts the words back, and `repair` corrects a malformed linear form.

Labels, words and linear forms are separated by ASCII white space only: real corpora have words with
a no-break or a thin space inside. No function here recurses, so depth has no limit.
"""

import dataclasses
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from t2t_lite import errors

TRACE = "-NONE-"  # the tag of an empty element
TOP = "TOP"  # the root that COLLINS.prm leaves out of the score
ROOTS = ("", TOP, "ROOT", "S1")  # labels of outermost brackets that hold no information
PRETERMINAL = "XX"  # the symbol of a word in the linear form

_WORD = re.compile(r"\S+", re.ASCII)
_ATOM = re.compile(r"[^\s()]+", re.ASCII)
_BRACKET_OR_ATOM = re.compile(r"\((?P<label>[^\s()]*)|\)|[^\s()]+", re.ASCII)
_LINEAR_TOKEN = re.compile(r"[()][^\s()]*|[^\s()]+", re.ASCII)
_LABELLED_CLOSE = re.compile(r"\)[^\s()]", re.ASCII)
_ESCAPES = str.maketrans({"(": "-LRB-", ")": "-RRB-"})
SENTENCE_ESCAPES = _ESCAPES | str.maketrans({"\u2581": "_"})

# Penn tags that follow from the word alone. EVALB deletes words by their tags: a tree whose commas
# are not tagged as commas cannot be compared. "'" is left out, as it is POS as often as ''.
TAGS = {
    word: tag
    for tag, words in {
        ",": ",",
        ".": ". ? !",
        ":": ": ; ... -- —",
        "``": "`` ` “ ‘",
        "''": "'' \" ” ’",
        "-LRB-": "-LRB- -LCB- -LSB- [ {",
        "-RRB-": "-RRB- -RCB- -RSB- ] }",
        "$": "$",
        "#": "#",
    }.items()
    for word in words.split()
}


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tree:
    """A phrase (label and children) or a pre-terminal (label, which is its tag, and word).

    `str` gives the bracketed form on one line, which `parse` reads back. Trees are equal when that
    is equal. UserError where a label or a word could not be read back, or a tree would be empty.
    """

    label: str
    children: tuple["Tree", ...] = ()
    word: str | None = None

    def __post_init__(self):
        if bool(self.children) == (self.word is not None):
            raise errors.UserError(f"({self.label} needs either children or a word")
        texts = [self.label or "x"] if self.word is None else [self.label, self.word]
        for text in texts:  # the label of an outermost bracket may be empty
            if not _ATOM.fullmatch(text):
                raise errors.UserError(f"{text!r} in a tree is empty or has a space or a bracket")

    def __str__(self) -> str:
        parts = []
        for node, entering in walk(self):
            if node.word is not None:
                parts.append(f" ({node.label} {node.word})")
            else:
                parts.append(f" ({node.label}" if entering else ")")
        return "".join(parts)[1:]

    def __repr__(self) -> str:
        return f"Tree({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, Tree) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))

    def preterminals(self) -> Iterator["Tree"]:
        """Yield the nodes that hold the words, from left to right."""
        return (node for node, _ in walk(self) if node.word is not None)

    def words(self) -> list[str]:
        """Return the words, traces among them where the tree still has any."""
        return [node.word for node in self.preterminals() if node.word is not None]

    def tags(self) -> list[str]:
        """Return the label of each word."""
        return [node.label for node in self.preterminals()]


def walk(tree: Tree) -> Iterator[tuple[Tree, bool]]:
    """Yield (node, True) on entering a node and (node, False) on leaving a phrase."""
    stack = [(tree, True)]
    while stack:
        node, entering = stack.pop()
        yield node, entering
        if entering and node.word is None:
            stack.append((node, False))
            stack.extend((child, True) for child in reversed(node.children))


@dataclasses.dataclass(slots=True)
class _Open:
    """A bracket that is not closed yet."""

    label: str
    line: int = 0
    children: list[Tree] = dataclasses.field(default_factory=list)
    word: str | None = None

    @property
    def is_empty(self) -> bool:
        return self.word is None and not self.children


def read(
    lines: Iterable[str], *, name: str = "trees", first_line: int = 1, drop_empty: bool = False
) -> Iterator[Tree]:
    """Yield the trees of a text as they stand there, however they are broken into lines.

    A label follows its bracket immediately; only an outermost bracket may have none (its label is
    then ""). Raises UserError, with `name` and the line, for anything else. With `drop_empty`
    brackets without a word are left out, as by EVALB: "(())" then holds no tree.
    """
    opened: list[_Open] = []
    for number, line in enumerate(lines, first_line):
        for match in _BRACKET_OR_ATOM.finditer(line):
            token = match.group()
            try:
                if token == ")" and drop_empty and opened and opened[-1].is_empty:
                    opened.pop()
                elif token == ")":
                    if len(opened) > 1 and not opened[-1].label:
                        raise _unlabelled()
                    tree = _closed(opened)
                    if not opened:
                        yield tree
                elif token.startswith("("):
                    _open(opened, _Open(match.group("label"), number), may_be_bare=drop_empty)
                else:
                    _add_word(opened, token)
            except errors.UserError as error:
                raise errors.UserError(f"{name}, line {number}: {error}") from None
    if opened:
        raise errors.UserError(
            f"{name}, line {opened[0].line}: the tree that begins here is never closed; "
            f"{len(opened)} ')' are missing at the end"
        )


def parse(text: str) -> Tree:
    """Return the one tree that a text holds."""
    trees = list(read(text.split("\n")))
    if len(trees) != 1:
        raise errors.UserError(f"expected one tree and found {len(trees)} in {text[:60]!r}")
    return trees[0]


def clean(tree: Tree) -> Tree | None:
    """Return the tree that a parser has to find, None where it has no words.

    - Traces (-NONE-) are removed, and phrases that become empty with them.
    - Labels lose function tags and indices: NP-SBJ-1 and NP=2 become NP. A label that begins with
      "-" (-LRB-) stays as it is, so do alternatives (ADVP|PRT) and the tags of words.
    - Outermost brackets without information (no label, TOP, ROOT, S1) are removed, so that the root
      is a real phrase; where that leaves several parts or a bare word, they stay under one TOP.
    - Unary chains stay, X over X too: EVALB counts every bracket on a span, so that two NPs on a
      span are matched in full by two NPs only. What remains is what EVALB itself would count.
    """
    opened = [_Open("")]
    for node, entering in walk(tree):
        if node.word is not None:
            if node.label != TRACE:
                opened[-1].children.append(node)
        elif entering:
            opened.append(_Open(_phrase_label(node.label)))
        elif opened[-1].children:
            _closed(opened)
        else:
            opened.pop()
    parts = opened[0].children
    while len(parts) == 1 and parts[0].label in ROOTS and parts[0].children:
        parts = list(parts[0].children)
    if not parts:
        return None
    return parts[0] if len(parts) == 1 and parts[0].children else Tree(TOP, tuple(parts))


def sentence(text: str) -> str:
    """Return a parser's input: the text's words as trees have them, with one space between.

    Round brackets become -LRB- and -RRB-. U+2581, with which subwords mark a space, becomes "_", so
    that words can be counted in subwords too.
    """
    return " ".join(_WORD.findall(text)).translate(SENTENCE_ESCAPES)


def linearize(tree: Tree, *, with_tags: bool = False) -> str:
    """Return the linear form: `(S (NP XX XX )NP (VP XX )VP )S`, or with each word's tag for XX."""
    tokens = []
    for node, entering in walk(tree):
        if node.word is not None:
            tokens.append(node.label if with_tags else PRETERMINAL)
        else:
            tokens.append(f"({node.label}" if entering else f"){node.label}")
    return " ".join(tokens)


def linear_form(text: str, *, with_tags: bool = False) -> str:
    """Return the linear form of a text that is a tree, cleaned, or already such a form."""
    if _LABELLED_CLOSE.search(text):
        return text.strip()
    tree = clean(parse(text))
    if tree is None:
        raise errors.UserError("it has no words")
    return linearize(tree, with_tags=with_tags)


def delinearize(linear: str, words: Sequence[str], *, tags: Sequence[str] | None = None) -> Tree:
    """Return the tree of a linear form and its words.

    The tag of each word is that of `tags` where given (the gold ones, for scoring), else its symbol
    in the linear form; XX is replaced by the tag in TAGS, if the word has one. Round brackets in
    words become -LRB- and -RRB-. Raises UserError where the form is not one well-formed tree over
    exactly these words; `repair` makes it one.
    """
    if tags is not None and len(tags) != len(words):
        raise errors.UserError(f"expected one tag a word, got {len(tags)} for {len(words)} words")
    outside = _Open("")
    opened = [outside]
    used = 0
    for position, token in enumerate(_LINEAR_TOKEN.findall(linear), 1):
        try:
            if token.startswith("("):
                _open(opened, _Open(token[1:]), may_be_bare=len(opened) == 1)
            elif token.startswith(")"):
                if len(opened) == 1 or token[1:] != opened[-1].label:
                    expected = f"){opened[-1].label}" if len(opened) > 1 else "a bracket to open"
                    raise errors.UserError(f"expected {expected} and found {token}")
                _closed(opened)
            elif used == len(words):
                raise errors.UserError(f"{token} has no word left; there are {len(words)}")
            else:
                word, used = words[used].translate(_ESCAPES), used + 1
                symbol = TAGS.get(word, PRETERMINAL) if token == PRETERMINAL else token
                opened[-1].children.append(Tree(tags[used - 1] if tags else symbol, word=word))
        except errors.UserError as error:
            raise errors.UserError(f"linear form, token {position}: {error}") from None
    if len(opened) > 1 or used < len(words) or len(outside.children) != 1:
        raise errors.UserError(
            f"linear form: expected one tree over {len(words)} words; found "
            f"{len(outside.children)} with {len(opened) - 1} brackets left open, over {used} words"
        )
    return outside.children[0]


class Repaired(NamedTuple):
    """A well-formed linear form, and how many tokens were added, dropped or changed for it."""

    linear: str
    repairs: int


def repair(linear: str, num_words: int) -> Repaired:
    """Return a well-formed linear form over exactly `num_words` words; repair nothing needlessly.

    From left to right, each token added, dropped or changed counting one:

    1. A symbol beyond the last word is dropped, and so is `(` without a label.
    2. `)X` closes the innermost open X, and before it what is open inside that. Where no X is open,
       it closes the innermost bracket with that one's label; where none is open, it is dropped.
    3. A bracket that closes over no word is dropped.
    4. At the end, words without a symbol get theirs in the innermost open bracket (a sentence cut
       off mostly branches to the right), or at the end of the root; then open brackets are closed.
    5. Where the result is not one phrase but several parts, a bare symbol or nothing, TOP is put
       around it, which EVALB with COLLINS.prm does not count.
    """
    if num_words < 1:
        raise errors.UserError(f"a tree needs at least one word, got num_words={num_words}")
    out: list[str] = []
    opened: list[str] = []
    used = repairs = 0
    for token in _LINEAR_TOKEN.findall(linear):
        label = token[1:]
        if token.startswith("(") and label:
            out.append(token)
            opened.append(label)
        elif token.startswith(")") and opened:
            while label in opened and opened[-1] != label:
                _close_or_drop(out, opened)
                repairs += 1
            changed = opened[-1] != label
            repairs += changed if _close_or_drop(out, opened) else 2
        elif token[0] not in "()" and used < num_words:
            out.append(token)
            used += 1
        else:
            repairs += 1
    missing = [PRETERMINAL] * (num_words - used)
    repairs += len(missing) + len(opened)
    if opened:
        out, missing = out + missing, []
    while opened:
        _close_or_drop(out, opened)
    if not _is_one_phrase(out):
        out = [f"({TOP}", *out, f"){TOP}"]
        repairs += 2
    return Repaired(linear=" ".join(out[:-1] + missing + out[-1:]), repairs=repairs)


def _open(opened: list[_Open], bracket: _Open, *, may_be_bare: bool = False) -> None:
    if opened and not bracket.label and not may_be_bare:
        raise _unlabelled()
    if opened and opened[-1].word is not None:
        raise errors.UserError(f"expected ')' after ({opened[-1].label} {opened[-1].word}")
    opened.append(bracket)


def _unlabelled() -> errors.UserError:
    return errors.UserError("a bracket inside another needs a label")


def _add_word(opened: list[_Open], word: str) -> None:
    if not opened or not opened[-1].label:
        raise errors.UserError(f"expected a labelled bracket around the word {word!r}")
    if opened[-1].children or opened[-1].word is not None:
        raise errors.UserError(f"expected a bracket of its own around the word {word!r}")
    opened[-1].word = word


def _closed(opened: list[_Open]) -> Tree:
    """Close the innermost bracket; its tree becomes a child of the one around it."""
    if not opened:
        raise errors.UserError("')' closes a bracket that was not opened")
    bracket = opened.pop()
    if bracket.is_empty:
        raise errors.UserError(f"the bracket ({bracket.label}) is empty")
    tree = Tree(bracket.label, tuple(bracket.children), bracket.word)
    if opened:
        opened[-1].children.append(tree)
    return tree


def _phrase_label(label: str) -> str:
    return label if label[:1] in ("-", "=") else re.split("[-=]", label, maxsplit=1)[0]


def _close_or_drop(out: list[str], opened: list[str]) -> bool:
    """Close the innermost open bracket, or drop it where nothing is in it; True if closed."""
    label = opened.pop()
    if out[-1].startswith("("):
        out.pop()
        return False
    out.append(f"){label}")
    return True


def _is_one_phrase(tokens: Sequence[str]) -> bool:
    depth = 0
    for position, token in enumerate(tokens, 1):
        depth += token.startswith("(") - token.startswith(")")
        if depth == 0:
            return position == len(tokens) > 1
    return False
