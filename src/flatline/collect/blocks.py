"""Ranges of the lines of a log."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from flatline.model import Place


class Blocks:
    """Ranges of lines by place, asked whether any holds a line: logs hold thousands of each."""

    def __init__(self, ranges: Iterable[tuple[Place | None, int, int]]) -> None:
        self._of: dict[Place | None, tuple[list[int], list[int]]] = {}
        for where, first, last in sorted(ranges, key=lambda block: block[1]):
            firsts, furthest = self._of.setdefault(where, ([], []))
            firsts.append(first)
            furthest.append(max(last, furthest[-1] if furthest else last))

    def hold(self, where: Place | None, line: int) -> bool:
        """Whether a range of this place that begins by `line` reaches to it."""
        firsts, furthest = self._of.get(where, ([], []))
        at = bisect_right(firsts, line)
        return at > 0 and furthest[at - 1] >= line
