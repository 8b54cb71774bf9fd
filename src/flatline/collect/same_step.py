"""
When the lines of an undated curve were printed, by what the same log printed of the same step.

A program that prints its loss with a bare `print` beside a framework that dates its own lines says
one step in two lines, next to each other: they are of one moment.  Where its lines count nothing,
as `transformers` tells a rounded epoch alone, and take turns with the framework's one for one, the
step is that of the framework's line as well.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from math import isfinite

from flatline.tracks import NAN, Track

NEAR = 16
"""Lines between two that tell of one step.  A judgement: frameworks print one to five a step, the
launchers of a few hosts put those of others between them."""
MOST_POINTS = 4 * NEAR
"""Of a bar that is drawn over itself thousands stand in one line."""
MOST = 0.9
"""Of the points of a curve that must be dated so: of fewer the numbers meet by chance."""


def date(tracks: Sequence[Track]) -> None:
    """Gives the points of each curve of a log without any date the times of such lines, as
    assumed ones."""
    dated = [any(map(isfinite, track.at)) for track in tracks]
    beside = [track for track, known in zip(tracks, dated, strict=True) if known]
    for track, known in zip(tracks, dated, strict=True):
        if beside and not known and any(step >= 0 for step in track.steps):
            _by(track, beside)
        elif beside and not known and len(track):
            _in_turn(track, beside)


def _by(track: Track, beside: Sequence[Track]) -> None:
    times = array("d", (_near(track, i, beside) for i in range(len(track))))
    known = [time for time in times if isfinite(time)]
    if known == sorted(known) and len(known) >= max(2.0, MOST * len(track)):
        track.at = times
        track.assumed = True


def _near(track: Track, i: int, beside: Sequence[Track]) -> float:
    """The time of the nearest dated line that tells of the same step; NaN where none does."""
    own, best = track.lines[i], (NEAR + 1, NAN)
    for other in beside:
        first = bisect_left(other.lines, own - NEAR)
        for j in range(first, min(first + MOST_POINTS, len(other))):
            off = abs(other.lines[j] - own)
            if other.lines[j] > own + NEAR:
                break
            same = (other.steps[j], other.attempts[j]) == (track.steps[i], track.attempts[i])
            if same and other.steps[j] >= 0 and off < best[0] and isfinite(other.at[j]):
                best = off, other.at[j]
    return best[1]


def _in_turn(track: Track, beside: Sequence[Track]) -> None:
    """Gives points that count nothing the steps and times of those they take turns with."""
    for other in beside:
        met = _turns(track, other, above=other.lines[0] < track.lines[0])
        steps = [other.steps[j] for j in met if j is not None]
        counted = len({*other.steps} - {-1})
        ordered = all(a < b for a, b in pairwise(steps))
        if ordered and len(steps) >= max(2.0, MOST * len(track), MOST * counted):
            track.steps = array("q", (-1 if j is None else other.steps[j] for j in met))
            track.at = array("d", (NAN if j is None else other.at[j] for j in met))
            track.assumed = True
            return


def _turns(track: Track, other: Track, *, above: bool) -> list[int | None]:
    """The point of the other that tells of the one step that stands between each and the next, on
    the one side of it; None where there is no such step, or are several."""
    met: list[int | None] = []
    for i, own in enumerate(track.lines):
        if above:
            low = max(own - NEAR, track.lines[i - 1] + 1 if i else 0)
            high = own
        else:
            low = own + 1
            high = min(own + NEAR, track.lines[i + 1] if i + 1 < len(track) else own + NEAR)
        first, end = bisect_left(other.lines, low), bisect_left(other.lines, high)
        near = range(first, min(end, first + MOST_POINTS))
        told = {(other.steps[j], other.attempts[j]) for j in near}
        one = len(told) == 1 and min(told)[0] >= 0 and min(told)[1] == track.attempts[i]
        met.append(near[0] if one and isfinite(other.at[near[0]]) else None)
    return met
