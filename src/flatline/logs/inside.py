"""
Times that stand within lines, where nothing else in a log says when: a column of a table, a field
of a row, a clock at a line's end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

_TIME = re.compile(
    r"(?<![\d:.+-])([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(?:[.,](\d{1,9}))?(?![\d:]|\.\d{4})"
)
_LENGTH = re.compile(r"(?i)(?:eta|left|remain\w*|elapsed|took|total|duration|uptime|in)\W{1,4}$")
"""What stands before a length of time."""
LEAST = 5
"""Lines that must say a time."""
MOSTLY = 0.9
"""Of the pairs of lines so many do not go back."""
BACK_S, DAY_S = 600.0, 86_400.0
"""Ranks that print in turn go back by less; over midnight more."""


def inside(text: str) -> tuple[str | None, ...] | None:
    """Hour, minute, second and its part of the first time of a day in a line."""
    for found in _TIME.finditer(text):
        if not _LENGTH.search(text, max(0, found.start() - 16), found.start()):
            return found.groups()
    return None


def runs_on(lines: Iterable[str]) -> bool:
    """Whether the times in these lines run on as a clock's do; what counts down does not."""
    said = [_seconds(found) for text in lines if (found := inside(text)) is not None]
    if len(said) < LEAST or said[0] == said[-1]:
        return False
    on = sum(before <= after or before - after > DAY_S / 2 for before, after in pairwise(said))
    near = all(before - after <= BACK_S or before - after > DAY_S / 2
               for before, after in pairwise(said))  # fmt: skip
    return near and on >= MOSTLY * (len(said) - 1)


def _seconds(time: tuple[str | None, ...]) -> float:
    hour, minute, second = (int(part or 0) for part in time[:3])
    return 3600.0 * hour + 60.0 * minute + second
