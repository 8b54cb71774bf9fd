"""
The plain texts by which a pattern is told, and what else the engine need not look at.

Where every match holds one of some long texts, those are the pattern.  Where it does not, what
holds but short texts is left out as far as something longer stands behind it: the engine makes
eight groups of all texts, by their length, and each length below eight takes one from the many of
eight bytes, which look like any text the more of them are in one group.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from flatline.logs.nodes import (
    BLANK,
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

TELLING_BYTES = 14
"""A text as long stands in few lines but those that are meant: of 59,116 lines of recorded logs
the whole patterns propose 5,726, the texts 5,915."""
SHORT_BYTES = 6
FEW_MEMBERS = 8
"""A class that the engine spells out where that makes texts longer."""


def told(nodes: Nodes) -> Nodes:
    """What a pattern is told by: its texts where it has long ones, itself without short ones."""
    found = _telling(nodes)
    if found is None:
        return _strong(nodes)
    return found.texts[0] if len(found.texts) == 1 else (Branch(found.texts),)


# --- long texts ----------------------------------------------------------------------------------


class _Told(NamedTuple):
    """Texts of which every match holds one, and how long they are together."""

    size: int
    texts: tuple[Nodes, ...]


def _telling(nodes: Nodes) -> _Told | None:
    """The longest such texts on average; None where there are none of `TELLING_BYTES`."""
    found: list[_Told] = []
    run: list[Node] = []
    for node in (*nodes, END):
        if isinstance(node, One) and len(node.members) == 1:
            run.append(node)
            continue
        if len(run) >= TELLING_BYTES:
            found.append(_Told(len(run), (_at_blank(run),)))
        run = []
        inside = _telling_inside(node)
        if inside is not None:
            found.append(inside)
    return max(found, key=lambda told: told.size / len(told.texts), default=None)


def _at_blank(text: Sequence[Node]) -> Nodes:
    """The text up to its last blank, where enough of it is left: the engine looks for the last
    eight bytes of each text, all at once, and the more alike they are the less looks like them."""
    ends = [i for i in range(len(text), TELLING_BYTES - 1, -1) if text[i - 1] == BLANK]
    return tuple(text[: ends[0]] if ends else text)


def _telling_inside(node: Node) -> _Told | None:
    match node:
        case Repeat(low, _, inner) if low > 0:
            return _telling(inner)
        case Branch(branches):
            each = [told for branch in branches if (told := _telling(branch)) is not None]
            if len(each) == len(branches):
                texts = tuple(text for told in each for text in told.texts)
                return _Told(sum(told.size for told in each), texts)
        case Folded(inner):
            folded = _telling(inner)
            if folded is not None:
                return _Told(folded.size, tuple((Folded(text),) for text in folded.texts))
    return None


# --- short texts --------------------------------------------------------------------------------


def _strong(nodes: Nodes) -> Nodes:
    """Without a beginning that holds but short texts, where a longer one stands behind it; of
    alternatives each by itself."""
    first = next((i for i in range(len(nodes)) if _begins(nodes[i:])), 0)
    if 0 < _strength(nodes[:first]) < SHORT_BYTES and any(map(_varies, nodes[: first + 1])):
        nodes = nodes[first:]
    match nodes:
        case (Folded(inner),) if isinstance(inner[-1], Branch):
            return (Folded(_strong(inner)),)
        case (Mark() as mark, Branch(branches)):
            return _strong((Branch(tuple((mark, *branch) for branch in branches)),))
        case (Branch(branches),):
            return (Branch(tuple(map(_strong, branches))),)
        case (Branch(branches), *rest):
            strong = map(_strong, branches)
            if rest and anything(rest[0]):
                strong = map(_no_blank, strong)
            return (Branch(tuple(strong)), *rest)
    return _behind_three(nodes) if _strength(nodes) == 3 else nodes


def _behind_three(nodes: Nodes) -> Nodes:
    """Without the first of three bytes where one of a few must follow, and more: the engine spells
    out what stands behind two, and takes three as they are."""
    for i in range(3, len(nodes) - 1):
        node = nodes[i]
        few = isinstance(node, One) and 1 < len(node.members) <= FEW_MEMBERS
        if few and _strength(nodes[i - 3 : i]) == 3 and _strength_inside(nodes[i + 1]) >= 3:
            return nodes[i - 2 :]
    return nodes


def _no_blank(text: Nodes) -> Nodes:
    """Of three bytes the last, where it is a blank: what follows may be anything."""
    return text[:-1] if _strength(text) == 3 and text[-1] == BLANK else text


def _begins(nodes: Nodes) -> bool:
    """Whether a text that is not short begins here."""
    text = nodes[:SHORT_BYTES]
    plain = all(isinstance(node, One) and len(node.members) == 1 for node in text)
    return (plain and len(text) == SHORT_BYTES) or _strength_inside(nodes[0]) >= SHORT_BYTES


def _varies(node: Node) -> bool:
    """Whether it may take more or less bytes by a count, behind which the engine looks anew."""
    match node:
        case Repeat(low, high, inner):
            return low != high or any(map(_varies, inner))
        case Branch(branches):
            return any(_varies(one) for branch in branches for one in branch)
        case Folded(inner):
            return any(map(_varies, inner))
    return False


def _strength(nodes: Nodes) -> int:
    """The longest text that every match holds one of, by its shortest alternative."""
    best = run = 0
    for node in nodes:
        run = run + 1 if isinstance(node, One) and len(node.members) == 1 else 0
        best = max(best, run, _strength_inside(node))
    return best


def _strength_inside(node: Node) -> int:
    match node:
        case Repeat(low, _, inner) if low > 0:
            return _strength(inner)
        case Branch(branches):
            return min(map(_strength, branches))
        case Folded(inner):
            return _strength(inner)
    return 0
