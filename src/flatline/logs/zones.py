"""The zone of stamps that state none, by lines beside them that are dated absolutely."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import pairwise

OFFSETS_H = (*range(-12, 15), -9.5, -3.5, -2.5, 3.5, 4.5, 5.5, 5.75, 6.5, 8.75, 9.5, 10.5, 12.75,
             13.75)  # fmt: skip
"""Hours before or behind UTC that are in use (IANA time zone database, 2025)."""
NAMED_H: dict[str, frozenset[float]] = {
    name: frozenset(hours)
    for name, *hours in (
        ("AEDT", 11), ("AEST", 10), ("BST", 1, 6), ("CDT", -5, -4), ("CEST", 2), ("CET", 1),
        ("CST", -6, -5, 8), ("EDT", -4), ("EEST", 3), ("EET", 2), ("EST", -5), ("HKT", 8),
        ("IST", 1, 2, 5.5), ("JST", 9), ("KST", 9), ("MDT", -6), ("MSK", 3), ("MST", -7),
        ("NZDT", 13), ("NZST", 12), ("PDT", -7), ("PST", -8, 8), ("SAST", 2), ("WEST", 1),
        ("WIB", 7),
    )
}  # fmt: skip
"""Hours ahead of UTC that a name may mean which `date` prints (the same database); other processes
of a node may be in another zone, so that it tells of no stamp but its own."""
NEAR, ALONE = timedelta(seconds=10), timedelta(seconds=2)
"""How near to an offset in use two neighbours must lie, and one pair where there is no other: by
chance one in a hundred, and in four hundred, does."""
SAME = timedelta(minutes=10)
"""Neighbours that lie so near to one another are of one zone."""


def offset_beside(stamps: Iterable[tuple[datetime, bool]]) -> timedelta | None:
    """
    How far ahead of UTC the clock is that the assumed ones of these stamps, in the order of their
    lines, were read from; None where those next to absolute ones do not tell it, or are UTC's.

    Each stamp is an instant, and whether its zone was assumed (to be UTC).
    """
    apart = [
        local - absolute
        for (a, of_a), (b, of_b) in pairwise(stamps)
        if of_a != of_b
        for local, absolute in ((a, b) if of_a else (b, a),)
    ]
    if any(abs(one) < SAME for one in apart):
        return None
    told = [(offset, off) for one in apart for offset, off in (_nearest(one),) if off <= NEAR]
    offsets = {offset for offset, _ in told}
    if len(offsets) != 1 or (len(told) == 1 and told[0][1] > ALONE):
        return None
    return offsets.pop()


def _nearest(apart: timedelta) -> tuple[timedelta, timedelta]:
    """The offset in use that is nearest, and how far off it is."""
    offsets = (timedelta(hours=hours) for hours in OFFSETS_H if hours)
    return min(((one, abs(apart - one)) for one in offsets), key=lambda pair: pair[1])
