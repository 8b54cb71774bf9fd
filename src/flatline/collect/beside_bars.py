"""
What the points of a curve took, by a progress bar without a label that is drawn beside each.

A loop writes its loss below its bar (`pbar.write`, a bare `print`): the line says the step, and
the bar that stands with it how long the loop had run by then.
"""

from __future__ import annotations

from math import isfinite

from flatline.collect.events import LogEvents
from flatline.collect.shares import Shares
from flatline.logs.reading import clean, segments
from flatline.parsers.tqdm import Clocked, clocked
from flatline.tracks import Track

LINE_BYTES = 65_536
"""Of a line: a bar that is drawn over itself for hours makes a longer one, of which the end is of
the step that is told next."""
BEFORE_IT_COUNTS = (0, 1, -1)
"""Steps by which a bar is ahead: a loop may tell a step before its bar counts it, and number its
steps from 0 or 1."""
MOST = 0.9
"""Of the points that must have such a bar beside them: of fewer the numbers meet by chance."""
LEAST = 3


def told_by_bars(events: LogEvents, near: Shares) -> None:
    """Gives the points of each curve without any time of its own those of such bars."""
    if not any(marker.kind == "bar" for marker in events.markers):
        return
    for track in events.tracks.values():
        timed = (track.at, track.step_s, track.since_s)
        if len(track) >= LEAST and not any(isfinite(t) for column in timed for t in column):
            _told(track, near)


def _told(track: Track, near: Shares) -> None:
    beside = [_beside(line, near) for line in track.lines]
    for ahead in BEFORE_IT_COUNTS:
        found = [
            next((bar for bar in bars if bar.n == step + ahead), None)
            for bars, step in zip(beside, track.steps, strict=True)
        ]
        if sum(bar is not None for bar in found) < MOST * len(found):
            continue
        for i, bar in enumerate(found):
            if bar is not None and track.steps[i] >= 0:
                track.since_s[i] = bar.since_s
                track.step_s[i] = track.step_s[i] if bar.step_s is None else bar.step_s
        return


def _beside(line: int, near: Shares) -> list[Clocked]:
    """The bars drawn last above a line, within it, and first below it."""
    above, own, below = (
        segments(b"".join(near.lines(n, n))[-LINE_BYTES:]) for n in (line - 1, line, line + 1)
    )
    drawn = [*reversed(own), *above[-1:], *below[:1]]
    return [bar for raw in drawn if (bar := clocked(clean(raw))) is not None]
