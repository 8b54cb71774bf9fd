r"""
Patterns as Python reads them, turned into ones a multi-pattern engine can run over raw bytes.

The engine's pattern matches wherever the Python one does on the cleaned line, and in places
where it does not: it proposes, `re` decides.  So everything may be widened and nothing narrowed.

- A match stays within one line and one segment: `.`, `\s` and negated sets lose newline and
  carriage return.
- `^` holds at the start of a line and after anything that is not a letter, digit or underscore,
  for a label (`3: `, `[rank1]: `) may stand before the text it anchors.  `$` may be followed by
  blanks, which cleaning strips.
- Classes are ASCII; a character that need not be may take up to four bytes.
- Look-around is dropped, back references match anything, large counts become unbounded.
- What may be left out at either end is left out: whether `NCCL WARN .*` matches is settled by
  `NCCL WARN `, and an engine that reports every end of a match reports one, not a hundred.
- A label that a program writes before each of its lines is left out before what follows it, and so
  is the class of bytes that a long text ends with.
- Where every match holds one of some long plain texts, those texts are the pattern, up to a blank:
  what else it asks for rarely decides, and texts cost the engine half of what expressions do.

Refused, with `CatalogueError`: what Python cannot compile, what can match an empty text, and what
can only match across a line break.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

from flatline.errors import CatalogueError

LARGEST_COUNT = 24
"""Counts beyond this cost an automaton more than they discriminate."""
TELLING_BYTES = 14
"""A text as long stands in few lines but those that are meant: of 59,116 lines of recorded logs
the whole patterns propose 5,726, the texts 5,915."""
SEEN_BYTES = 8
"""Of a text the engine looks for so many bytes at once, its last; a class behind them takes a text
for each of its members."""
LABELS = (b"wandb:",)
"""What stands before lines by the million is no text to look for: one pattern that began so took a
seventh of the engine's time in a log of which each sixth line does."""
WORD = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")
DIGIT = frozenset(b"0123456789")
SPACE = frozenset(b" \t\n\r\x0b\x0c")
BYTES = frozenset(range(256))
ASCII = frozenset(range(128))
BREAKS = frozenset(b"\n\r")
CLASSES = {
    sre.CATEGORY_DIGIT: DIGIT,
    sre.CATEGORY_NOT_DIGIT: BYTES - DIGIT,
    sre.CATEGORY_SPACE: SPACE,
    sre.CATEGORY_NOT_SPACE: BYTES - SPACE,
    sre.CATEGORY_WORD: WORD,
    sre.CATEGORY_NOT_WORD: BYTES - WORD,
}


@dataclass(frozen=True, slots=True)
class Prefilter:
    """The pattern to run over raw bytes; `^` and `$` in it are line ends."""

    pattern: str
    caseless: bool


@dataclass(frozen=True, slots=True)
class _One:
    """One byte out of a set."""

    members: frozenset[int]

    @property
    def wide(self) -> bool:
        """Whether it stands for characters that may take several bytes."""
        return len(self.members) > 1 and not self.members <= ASCII


@dataclass(frozen=True, slots=True)
class _Repeat:
    low: int
    high: int | None
    inner: tuple[_Node, ...]


@dataclass(frozen=True, slots=True)
class _Branch:
    branches: tuple[tuple[_Node, ...], ...]


@dataclass(frozen=True, slots=True)
class _Folded:
    """Where case does not count."""

    inner: tuple[_Node, ...]


@dataclass(frozen=True, slots=True)
class _Mark:
    """A place between bytes."""

    text: str


_Node = _One | _Repeat | _Branch | _Folded | _Mark
_Nodes = tuple[_Node, ...]
_START = _Mark("(?:^|[^A-Za-z0-9_\\x0a\\x0d])")
_END = _Mark("[ \\x09\\x0b\\x0c]*$")
_BOUNDARY = _Mark("\\b")
_BLANK = _One(frozenset(b" "))
_BLANKS = _Repeat(1, None, (_BLANK,))
_ANYTHING = _Repeat(0, None, (_One(BYTES),))


class _Never(Exception):
    """This part can match nothing within a line."""


def prefilter(pattern: str, *, whole: bool = False) -> Prefilter:
    """
    The widened form of a Python pattern; `whole` keeps what stands beside its telling texts.

    Raises `CatalogueError` where there is none.
    """
    try:
        re.compile(pattern)
        tree = _parser.parse(pattern, re.ASCII)
        if tree.getwidth()[0] == 0:
            raise CatalogueError(f"pattern {pattern!r} may match an empty text")
        nodes = _trimmed(_widened(tree))
        text = _text(nodes)
        told = None if whole else _telling(nodes)
    except (re.error, RecursionError, OverflowError) as fault:
        raise CatalogueError(f"pattern {pattern!r}: {fault}") from fault
    except _Never as fault:
        raise CatalogueError(f"pattern {pattern!r} matches nothing within one line") from fault
    if _optional(nodes):
        raise CatalogueError(f"pattern {pattern!r} matches every line once it is widened")
    if told is not None:
        text = _text(told.texts[0] if len(told.texts) == 1 else (_Branch(told.texts),))
    return Prefilter(text, bool(tree.state.flags & re.IGNORECASE))


# --- widening: Python's own syntax tree, which has no types, to ours -----------------------------


def _widened(tree: Iterable[tuple[Any, Any]]) -> _Nodes:
    return tuple(node for op, value in tree for node in _WIDEN.get(op, _refuse)(value))


def _refuse(value: Any) -> _Nodes:
    raise _Never


def _literal(code: int) -> _Nodes:
    return tuple(_One(frozenset({byte})) for byte in chr(code).encode("utf-8", "surrogatepass"))


def _not_literal(code: int) -> _Nodes:
    return (_One(BYTES - ({code} & ASCII)),)


def _set(items: Sequence[tuple[Any, Any]]) -> _Nodes:
    """One of its ASCII members, or the bytes of one that is not."""
    negated = items[0][0] is sre.NEGATE
    low: set[int] = set()
    high: list[_Nodes] = []
    for op, value in items[negated:]:
        if op is sre.LITERAL and value >= 128:
            high.append(_literal(value))
        elif op is sre.LITERAL:
            low.add(value)
        elif op is sre.RANGE:
            low.update(range(value[0], min(value[1], 127) + 1))
            low.update(BYTES - ASCII if value[1] >= 128 else ())
        else:
            low |= CLASSES[value]
    if negated:
        return (_One(BYTES - (low & ASCII)),)
    if not high:
        return (_One(frozenset(low)),)
    return (_Branch(((_One(frozenset(low)),), *high) if low else tuple(high)),)


def _subpattern(value: tuple[Any, int, int, Any]) -> _Nodes:
    inner = _widened(value[3])
    return (_Folded(inner),) if value[1] & re.IGNORECASE and inner else inner


def _repeat(value: tuple[int, int, Any]) -> _Nodes:
    inner = _widened(value[2])
    if not inner:
        return ()
    low = min(int(value[0]), LARGEST_COUNT)
    high = None if value[1] is sre.MAXREPEAT or value[1] > LARGEST_COUNT else int(value[1])
    if high is not None and any(isinstance(node, _One) and node.wide for node in inner):
        high = 4 if high == 1 else None
    return (_Repeat(low, high, inner),)


def _anchor(where: Any) -> _Nodes:
    if where in (sre.AT_BEGINNING, sre.AT_BEGINNING_STRING):
        return (_START,)
    if where in (sre.AT_END, sre.AT_END_STRING):
        return (_END,)
    return (_BOUNDARY,) if where is sre.AT_BOUNDARY else ()


def _either(value: tuple[Any, Any, Any]) -> _Nodes:
    return (_Branch((_widened(value[1]), _widened(value[2] or ()))),)


_WIDEN: dict[Any, Callable[[Any], _Nodes]] = {
    sre.LITERAL: _literal,
    sre.NOT_LITERAL: _not_literal,
    sre.ANY: lambda value: (_One(BYTES),),
    sre.IN: _set,
    sre.BRANCH: lambda value: (_Branch(tuple(_widened(branch) for branch in value[1])),),
    sre.SUBPATTERN: _subpattern,
    sre.ATOMIC_GROUP: _widened,
    sre.MAX_REPEAT: _repeat,
    sre.MIN_REPEAT: _repeat,
    sre.POSSESSIVE_REPEAT: _repeat,
    sre.AT: _anchor,
    sre.GROUPREF: lambda value: (_ANYTHING,),
    sre.GROUPREF_EXISTS: _either,
    sre.ASSERT: lambda value: (),
    sre.ASSERT_NOT: lambda value: (),
}


# --- trimming: what need not be there to know that it matches ------------------------------------


def _optional(nodes: _Nodes) -> bool:
    return all(_optional_node(node) for node in nodes)


def _optional_node(node: _Node) -> bool:
    match node:
        case _Repeat(low, _, inner):
            return low == 0 or _optional(inner)
        case _Branch(branches):
            return any(_optional(branch) for branch in branches)
        case _Folded(inner):
            return _optional(inner)
    return isinstance(node, _Mark)


def _trimmed(nodes: _Nodes) -> _Nodes:
    """Without what is optional at either end; an anchor that anything may separate from the
    rest anchors nothing."""
    if len(nodes) > 1 and nodes[0] == _START and _anything(nodes[1]):
        nodes = nodes[2:]
    if len(nodes) > 1 and nodes[-1] == _END and _anything(nodes[-2]):
        nodes = nodes[:-2]
    nodes = _trim(_trim(nodes, first=False), first=True)
    for label in LABELS:
        text = tuple(_One(frozenset({byte})) for byte in label)
        if nodes[: len(text)] == text and _is_blanks(nodes[len(text) : len(text) + 1]):
            nodes = _trim(nodes[len(text) + 1 :], first=True) or nodes
    return nodes


def _is_blanks(nodes: _Nodes) -> bool:
    return nodes in ((_BLANK,), (_BLANKS,))


def _anything(node: _Node) -> bool:
    match node:
        case _Repeat(0, None, (_One(members),)):
            return members >= BYTES - BREAKS
    return False


def _trim(nodes: _Nodes, first: bool) -> _Nodes:
    while nodes:
        node, rest = (nodes[0], nodes[1:]) if first else (nodes[-1], nodes[:-1])
        if not isinstance(node, _Mark) and _optional_node(node):
            nodes = rest
            continue
        short = _shortened(node, first)
        if first:
            return (*short, *rest)
        return rest if _is_class(short) and _is_seen(rest) else (*rest, *short)
    return nodes


def _is_class(nodes: _Nodes) -> bool:
    match nodes:
        case (_One(members),) | (_Repeat(_, _, (_One(members),)),):
            return len(members) > 1
    return False


def _is_seen(nodes: _Nodes) -> bool:
    """Whether they end with as much text as the engine looks for at once."""
    last = nodes[-SEEN_BYTES:]
    return len(last) == SEEN_BYTES and all(
        isinstance(node, _One) and len(node.members) == 1 for node in last
    )


def _shortened(node: _Node, first: bool) -> _Nodes:
    """A repeat at an end as short as may be."""
    match node:
        case _Repeat(1, _, inner):
            return _trim(inner, first)
        case _Repeat(low, _, inner):
            return (_Repeat(low, low, inner),)
        case _Branch(branches):
            kept = _sufficient([_trim(branch, first) for branch in branches], first)
            return kept[0] if len(kept) == 1 else (_Branch(tuple(kept)),)
        case _Folded(inner):
            return (_Folded(_trim(inner, first)),)
    return (node,)


def _sufficient(branches: list[_Nodes], first: bool) -> list[_Nodes]:
    """Without those that another holds for by its one byte: of `(?:pid=[0-9]|[^ ])` at the end
    `[^ ]` says all, and is found once instead of twice."""
    singles = [node.members for (node, *rest) in branches if isinstance(node, _One) and not rest]
    enough = frozenset[int]().union(*singles)
    beside = -1 if first else 0
    return [
        branch
        for branch in branches
        if len(branch) == 1
        or not (isinstance(node := branch[beside], _One) and node.members <= enough)
    ]


# --- telling texts ------------------------------------------------------------------------------


class _Told(NamedTuple):
    """Texts of which every match holds one, and how long they are together."""

    size: int
    texts: tuple[_Nodes, ...]


def _telling(nodes: _Nodes) -> _Told | None:
    """The longest such texts on average; None where there are none of `TELLING_BYTES`."""
    found: list[_Told] = []
    run: list[_Node] = []
    for node in (*nodes, _END):
        if isinstance(node, _One) and len(node.members) == 1:
            run.append(node)
            continue
        if len(run) >= TELLING_BYTES:
            found.append(_Told(len(run), (_at_blank(run),)))
        run = []
        inside = _telling_inside(node)
        if inside is not None:
            found.append(inside)
    return max(found, key=lambda told: told.size / len(told.texts), default=None)


def _at_blank(text: Sequence[_Node]) -> _Nodes:
    """The text up to its last blank, where enough of it is left: the engine looks for the last
    eight bytes of each text, all at once, and the more alike they are the less looks like them."""
    ends = [i for i in range(len(text), TELLING_BYTES - 1, -1) if text[i - 1] == _BLANK]
    return tuple(text[: ends[0]] if ends else text)


def _telling_inside(node: _Node) -> _Told | None:
    match node:
        case _Repeat(low, _, inner) if low > 0:
            return _telling(inner)
        case _Branch(branches):
            each = [told for branch in branches if (told := _telling(branch)) is not None]
            if len(each) == len(branches):
                texts = tuple(text for told in each for text in told.texts)
                return _Told(sum(told.size for told in each), texts)
        case _Folded(inner):
            folded = _telling(inner)
            if folded is not None:
                return _Told(folded.size, tuple((_Folded(text),) for text in folded.texts))
    return None


# --- writing it out ------------------------------------------------------------------------------


def _text(nodes: _Nodes) -> str:
    last = len(nodes) - 1
    return "".join(_node_text(node, 0 < i < last, i == last) for i, node in enumerate(nodes))


def _node_text(node: _Node, inside: bool = True, last: bool = False) -> str:
    """`inside` the pattern a character is all its bytes; at its end the first of them will do."""
    match node:
        case _One(members):
            return _set_text(members) + ("{1,4}" if inside and node.wide else "")
        case _Repeat(low, high, inner):
            return _group(inner) + _count(low, high)
        case _Branch(branches):
            return "(?:" + "|".join(_branch(one, last) for one in branches) + ")"
        case _Folded(inner):
            return "(?i:" + "".join(map(_node_text, inner)) + ")"
    return node.text


def _branch(nodes: _Nodes, last: bool) -> str:
    end = len(nodes) - 1 if last else -1
    return "".join(_node_text(node, i != end, i == end) for i, node in enumerate(nodes))


def _group(nodes: _Nodes) -> str:
    match nodes:
        case (_One(members),):
            return _set_text(members)
    return "(?:" + "".join(map(_node_text, nodes)) + ")"


def _count(low: int, high: int | None) -> str:
    if high is None:
        return {0: "*", 1: "+"}.get(low, f"{{{low},}}")
    if (low, high) == (0, 1):
        return "?"
    return f"{{{low}}}" if low == high else f"{{{low},{high}}}"


def _set_text(members: frozenset[int]) -> str:
    members -= BREAKS
    if not members:
        raise _Never
    if len(members) == 1:
        return _byte(min(members))
    if len(members) > 128:
        return "[^" + _ranges(BYTES - members) + "]"
    return "[" + _ranges(members) + "]"


def _ranges(members: Iterable[int]) -> str:
    parts: list[tuple[int, int]] = []
    for byte in sorted(members):
        if parts and parts[-1][1] == byte - 1:
            parts[-1] = (parts[-1][0], byte)
        else:
            parts.append((byte, byte))
    return "".join(_byte(a) if a == b else f"{_byte(a)}-{_byte(b)}" for a, b in parts)


def _byte(byte: int) -> str:
    character = chr(byte)
    return character if character.isascii() and character.isalnum() else f"\\x{byte:02x}"
