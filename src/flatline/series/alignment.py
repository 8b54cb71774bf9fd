"""
Whether two things happened at the same times, and how likely that is by chance.

Both are said per stretch of time, yes or no.  Chance is measured by turning one of them round
against the other: their runs keep their lengths, only their meeting is left to chance.  A test
on shuffled stretches would call any two slow things related.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Meeting:
    """
    How two series of yes and no meet.

    `precision` is the share of the first's time that lies in the second, `recall` the share of
    the second that the first covers, `chance` the share of turns that meet at least as well.
    """

    precision: float
    recall: float
    chance: float


def meet(ours: Sequence[bool], theirs: Sequence[bool]) -> Meeting | None:
    """How the first meets the second; None where either never or always holds, for then nothing
    can be told. Raises ValueError for unequal lengths."""
    if len(ours) != len(theirs):
        raise ValueError(f"{len(ours)} stretches against {len(theirs)}")
    own, other = sum(ours), sum(theirs)
    if not 0 < own < len(ours) or not 0 < other < len(theirs):
        return None
    both = _both(ours, theirs)
    turned = sum(_both((*ours[turn:], *ours[:turn]), theirs) >= both for turn in range(len(ours)))
    return Meeting(both / own, both / other, turned / len(ours))


def _both(a: Sequence[bool], b: Sequence[bool]) -> int:
    return sum(x and y for x, y in zip(a, b, strict=True))
