"""
Logs that are named after the moment at which they were begun, each by a start of its own.

`train_0122_1241.log` beside `train_0122_1305.log`: names that differ in their digits alone, where
what these give as a time of day lies as far apart as the first dated lines.  One of them that ends
in an exception before another began, and made no step, was a start that failed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from datetime import timedelta

from flatline.collect.events import LogEvents

ALIKE = timedelta(minutes=2)
"""Between the name's minute and the first dated line: imports and the set-up of a logger."""
APART = timedelta(minutes=5)
"""Ranks of one start begin within less."""
DAY = timedelta(days=1)
_DIGITS = re.compile(r"\d+")
_CLOCK = re.compile(r"(?<!\d)([01]\d|2[0-3])[-_.:]?([0-5]\d)(?:[-_.:]?[0-5]\d)?(?!\d)")


def failed_starts(
    told: Sequence[LogEvents], known: Collection[str]
) -> list[tuple[float, float, str]]:
    """When each began and ended (POSIX seconds), and its name; with the logs of later starts whose
    steps carry no times, where they are not `known`."""
    failed = [one for one in told if one.crashes and not _stepped(one)
              and any(_began_anew(one, other) for other in told)]  # fmt: skip
    later = [one for one in told if failed and _stepped(one) and one.source not in known]
    return [
        (one.first_seen.timestamp(), (one.last_seen or one.first_seen).timestamp(), one.source)
        for one in (*failed, *later)
        if one.first_seen is not None
    ]


def _stepped(one: LogEvents) -> bool:
    return any(map(len, one.tracks.values()))


def _began_anew(failed: LogEvents, other: LogEvents) -> bool:
    """Whether another log is of a later start that made steps, by its name and by its lines."""
    if _DIGITS.sub("#", failed.source) != _DIGITS.sub("#", other.source):
        return False
    if failed.first_seen is None or other.first_seen is None or not _stepped(other):
        return False
    if other.first_seen - (failed.last_seen or failed.first_seen) < APART:
        return False
    between = other.first_seen - failed.first_seen
    named = (b - a for a, b in zip(_clocks(failed.source), _clocks(other.source), strict=False))
    return any(min((gap - between) % DAY, (between - gap) % DAY) <= ALIKE for gap in named if gap)


def _clocks(name: str) -> list[timedelta]:
    """The times of day that a name may give."""
    return [timedelta(hours=int(h), minutes=int(m)) for h, m in _CLOCK.findall(name)]
