"""
When the lines of an undated curve were printed, by what the same log printed of the same step.

A program that prints its loss with a bare `print` beside a framework that dates its own lines says
one step in two lines, next to each other: they are of one moment.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from math import isfinite

from flatline.tracks import NAN, Track

NEAR = 16
"""Lines between two that tell of one step.  A judgement: frameworks print one to five a step, the
launchers of a few hosts put those of others between them."""
MOST = 0.9
"""Of the points of a curve that must be dated so: of fewer the numbers meet by chance."""


def date(tracks: Sequence[Track]) -> None:
    """Gives the points of each curve of a log without any date the times of such lines, as
    assumed ones."""
    dated = [any(map(isfinite, track.at)) for track in tracks]
    beside = [track for track, known in zip(tracks, dated, strict=True) if known]
    for track, known in zip(tracks, dated, strict=True):
        if beside and not known:
            _by(track, beside)


def _by(track: Track, beside: Sequence[Track]) -> None:
    told: dict[tuple[int, int], list[tuple[int, float]]] = {}
    for other in beside:
        for attempt, step, line, at in zip(
            other.attempts, other.steps, other.lines, other.at, strict=True
        ):
            if step >= 0 and isfinite(at):
                told.setdefault((attempt, step), []).append((line, at))
    times = array("d")
    for attempt, step, own in zip(track.attempts, track.steps, track.lines, strict=True):
        lines = told.get((attempt, step), ())
        off, time = min(((abs(line - own), time) for line, time in lines), default=(NEAR + 1, 0.0))
        times.append(time if off <= NEAR else NAN)
    known = [time for time in times if isfinite(time)]
    if known == sorted(known) and len(known) >= max(2.0, MOST * len(track)):
        track.at = times
        track.assumed = True
