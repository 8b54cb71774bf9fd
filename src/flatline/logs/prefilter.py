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
from typing import Any

from flatline.errors import CatalogueError
from flatline.logs.nodes import (
    ASCII,
    BLANK,
    BREAKS,
    BYTES,
    END,
    Branch,
    Folded,
    Mark,
    Node,
    Nodes,
    One,
    Repeat,
    anything,
)
from flatline.logs.texts import told

LARGEST_COUNT = 24
"""Counts beyond this cost an automaton more than they discriminate."""
SEEN_BYTES = 8
"""Of a text the engine looks for so many bytes at once, its last; a class behind them takes a text
for each of its members."""
LABELS = (b"wandb:",)
"""What stands before lines by the million is no text to look for: one pattern that began so took a
seventh of the engine's time in a log of which each sixth line does."""
WORD = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")
DIGIT = frozenset(b"0123456789")
SPACE = frozenset(b" \t\n\r\x0b\x0c")
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


_START = Mark("(?:^|[^A-Za-z0-9_\\x0a\\x0d])")
_BOUNDARY = Mark("\\b")
_BLANKS = Repeat(1, None, (BLANK,))
_ANYTHING = Repeat(0, None, (One(BYTES),))


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
    except (re.error, RecursionError, OverflowError) as fault:
        raise CatalogueError(f"pattern {pattern!r}: {fault}") from fault
    except _Never as fault:
        raise CatalogueError(f"pattern {pattern!r} matches nothing within one line") from fault
    if _optional(nodes):
        raise CatalogueError(f"pattern {pattern!r} matches every line once it is widened")
    if not whole:
        text = _text(told(nodes))
    return Prefilter(text, bool(tree.state.flags & re.IGNORECASE))


# --- widening: Python's own syntax tree, which has no types, to ours -----------------------------


def _widened(tree: Iterable[tuple[Any, Any]]) -> Nodes:
    return tuple(node for op, value in tree for node in _WIDEN.get(op, _refuse)(value))


def _refuse(value: Any) -> Nodes:
    raise _Never


def _literal(code: int) -> Nodes:
    return tuple(One(frozenset({byte})) for byte in chr(code).encode("utf-8", "surrogatepass"))


def _not_literal(code: int) -> Nodes:
    return (One(BYTES - ({code} & ASCII)),)


def _set(items: Sequence[tuple[Any, Any]]) -> Nodes:
    """One of its ASCII members, or the bytes of one that is not."""
    negated = items[0][0] is sre.NEGATE
    low: set[int] = set()
    high: list[Nodes] = []
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
        return (One(BYTES - (low & ASCII)),)
    if not high:
        return (One(frozenset(low)),)
    return (Branch(((One(frozenset(low)),), *high) if low else tuple(high)),)


def _subpattern(value: tuple[Any, int, int, Any]) -> Nodes:
    inner = _widened(value[3])
    return (Folded(inner),) if value[1] & re.IGNORECASE and inner else inner


def _repeat(value: tuple[int, int, Any]) -> Nodes:
    inner = _widened(value[2])
    if not inner:
        return ()
    low = min(int(value[0]), LARGEST_COUNT)
    high = None if value[1] is sre.MAXREPEAT or value[1] > LARGEST_COUNT else int(value[1])
    if high is not None and any(isinstance(node, One) and node.wide for node in inner):
        high = 4 if high == 1 else None
    return (Repeat(low, high, inner),)


def _anchor(where: Any) -> Nodes:
    if where in (sre.AT_BEGINNING, sre.AT_BEGINNING_STRING):
        return (_START,)
    if where in (sre.AT_END, sre.AT_END_STRING):
        return (END,)
    return (_BOUNDARY,) if where is sre.AT_BOUNDARY else ()


def _either(value: tuple[Any, Any, Any]) -> Nodes:
    return (Branch((_widened(value[1]), _widened(value[2] or ()))),)


_WIDEN: dict[Any, Callable[[Any], Nodes]] = {
    sre.LITERAL: _literal,
    sre.NOT_LITERAL: _not_literal,
    sre.ANY: lambda value: (One(BYTES),),
    sre.IN: _set,
    sre.BRANCH: lambda value: (Branch(tuple(_widened(branch) for branch in value[1])),),
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


def _optional(nodes: Nodes) -> bool:
    return all(_optional_node(node) for node in nodes)


def _optional_node(node: Node) -> bool:
    match node:
        case Repeat(low, _, inner):
            return low == 0 or _optional(inner)
        case Branch(branches):
            return any(_optional(branch) for branch in branches)
        case Folded(inner):
            return _optional(inner)
    return isinstance(node, Mark)


def _trimmed(nodes: Nodes) -> Nodes:
    """Without what is optional at either end; an anchor that anything may separate from the
    rest anchors nothing."""
    if len(nodes) > 1 and nodes[0] == _START and anything(nodes[1]):
        nodes = nodes[2:]
    if len(nodes) > 1 and nodes[-1] == END and anything(nodes[-2]):
        nodes = nodes[:-2]
    nodes = _trim(_trim(nodes, first=False), first=True)
    for label in LABELS:
        text = tuple(One(frozenset({byte})) for byte in label)
        if nodes[: len(text)] == text and _is_blanks(nodes[len(text) : len(text) + 1]):
            nodes = _trim(nodes[len(text) + 1 :], first=True) or nodes
    return nodes


def _is_blanks(nodes: Nodes) -> bool:
    return nodes in ((BLANK,), (_BLANKS,))


def _trim(nodes: Nodes, first: bool) -> Nodes:
    while nodes:
        node, rest = (nodes[0], nodes[1:]) if first else (nodes[-1], nodes[:-1])
        if not isinstance(node, Mark) and _optional_node(node):
            nodes = rest
            continue
        short = _shortened(node, first)
        if first:
            return (*short, *rest)
        return rest if _is_class(short) and _is_seen(rest) else (*rest, *short)
    return nodes


def _is_class(nodes: Nodes) -> bool:
    match nodes:
        case (One(members),) | (Repeat(_, _, (One(members),)),):
            return len(members) > 1
    return False


def _is_seen(nodes: Nodes) -> bool:
    """Whether they end with as much text as the engine looks for at once."""
    last = nodes[-SEEN_BYTES:]
    return len(last) == SEEN_BYTES and all(
        isinstance(node, One) and len(node.members) == 1 for node in last
    )


def _shortened(node: Node, first: bool) -> Nodes:
    """A repeat at an end as short as may be."""
    match node:
        case Repeat(1, _, inner):
            return _trim(inner, first)
        case Repeat(low, _, inner):
            return (Repeat(low, low, inner),)
        case Branch(branches):
            kept = _sufficient([_trim(branch, first) for branch in branches], first)
            return kept[0] if len(kept) == 1 else (Branch(tuple(kept)),)
        case Folded(inner):
            return (Folded(_trim(inner, first)),)
    return (node,)


def _sufficient(branches: list[Nodes], first: bool) -> list[Nodes]:
    """Without those that another holds for by its one byte: of `(?:pid=[0-9]|[^ ])` at the end
    `[^ ]` says all, and is found once instead of twice."""
    singles = [node.members for (node, *rest) in branches if isinstance(node, One) and not rest]
    enough = frozenset[int]().union(*singles)
    beside = -1 if first else 0
    return [
        branch
        for branch in branches
        if len(branch) == 1
        or not (isinstance(node := branch[beside], One) and node.members <= enough)
    ]


# --- writing it out ------------------------------------------------------------------------------


def _text(nodes: Nodes) -> str:
    last = len(nodes) - 1
    return "".join(_node_text(node, 0 < i < last, i == last) for i, node in enumerate(nodes))


def _node_text(node: Node, inside: bool = True, last: bool = False) -> str:
    """`inside` the pattern a character is all its bytes; at its end the first of them will do."""
    match node:
        case One(members):
            return _set_text(members) + ("{1,4}" if inside and node.wide else "")
        case Repeat(low, high, inner):
            return _group(inner) + _count(low, high)
        case Branch(branches):
            return "(?:" + "|".join(_branch(one, last) for one in branches) + ")"
        case Folded(inner):
            return "(?i:" + "".join(map(_node_text, inner)) + ")"
    return node.text


def _branch(nodes: Nodes, last: bool) -> str:
    end = len(nodes) - 1 if last else -1
    return "".join(_node_text(node, i != end, i == end) for i, node in enumerate(nodes))


def _group(nodes: Nodes) -> str:
    match nodes:
        case (One(members),):
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
