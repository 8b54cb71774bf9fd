"""
When the lines of an undated curve were printed, by what the same log printed of the same step.

A program that prints its loss with a bare `print` beside a framework that dates its own lines says
one step in two lines, next to each other: they are of one moment.  Where the line with the loss
does not say its step, the one above it does (the Trainer's rows below DeepSpeed's steps).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
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
        if beside and not known:
            _of_those_above(track, beside)
            _by(track, beside)


def _of_those_above(track: Track, beside: Sequence[Track]) -> None:
    """Gives points none of which tells its step that of the line which stands right above each,
    where every one has another."""
    if not len(track) or max(track.steps) >= 0:
        return
    for other in beside:
        above = [bisect_left(other.lines, line) - 1 for line in track.lines]
        near = [
            at
            for at, line in zip(above, track.lines, strict=True)
            if at >= 0 and line - other.lines[at] <= NEAR and other.steps[at] >= 0
        ]
        if len(near) == len(above) == len(set(near)) and other.source == track.source:
            track.steps = array(track.steps.typecode, (other.steps[at] for at in near))
            track.attempts = array(track.attempts.typecode, (other.attempts[at] for at in near))
            return


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
