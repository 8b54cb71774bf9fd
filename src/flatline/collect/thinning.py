"""
Progress without end: of what a bar draws over itself, and of lines of progress by the million,
some are read and the last.

Only hits of progress formats are ever left out, never one of a signature; beyond these bounds a
curve has more points than are kept of it.
"""

from __future__ import annotations

from array import array
from collections.abc import Container, Iterable, Iterator
from dataclasses import fields

from flatline.facts import Track
from flatline.logs.scan import Hit

REDRAWS = 20_000
"""Redraws of one line that are all read: ten times an epoch's."""
LINES = 2_000_000
"""Lines of progress of one file that are all read; they take two minutes."""
EVERY = 61
"""Beyond, one in so many is read; a prime, so that ranks which print in turn are all met."""
BAR, LINE = "redraw of a progress bar", "line of progress"


def thinned(hits: Iterable[Hit], formats: Container[int], left: dict[str, int]) -> Iterator[Hit]:
    """The hits that are read, in order; how many of which kind are not is counted in `left`."""
    return _lines(_bars(hits, formats, left), formats, left)


def _bars(hits: Iterable[Hit], formats: Container[int], left: dict[str, int]) -> Iterator[Hit]:
    line, drawn = 0, 0
    last: Hit | None = None
    for hit in hits:
        if hit.line != line:
            if last is not None:
                yield last
            line, drawn, last = hit.line, 0, None
        drawn += 1
        if drawn > REDRAWS and drawn % EVERY and hit.ids[0] in formats:
            last = hit
            left[BAR] = left.get(BAR, 0) + 1
            continue
        last = None
        yield hit
    if last is not None:
        yield last


def _lines(hits: Iterable[Hit], formats: Container[int], left: dict[str, int]) -> Iterator[Hit]:
    met = 0
    last: Hit | None = None
    for hit in hits:
        if hit.ids[0] in formats:
            met += 1
            if met > LINES and met % EVERY:
                last = hit
                left[LINE] = left.get(LINE, 0) + 1
                continue
            last = None
        yield hit
    if last is not None:
        yield last


def halve(track: Track) -> None:
    """Drops every second point; the last one stays."""
    for field_ in fields(track):
        column = getattr(track, field_.name)
        if isinstance(column, array):
            setattr(track, field_.name, column[(len(column) + 1) % 2 :: 2])
