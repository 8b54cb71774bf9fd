"""Whether the training steps took longer from some moment on, by the log's own clock."""

from __future__ import annotations

from flatline.facts import Facts
from flatline.judging.claims import claim
from flatline.model import Claim, LogCite

SLOWER_RATIO = 1.05
"""Less than a twentieth longer is within what steps vary by without a cause."""
POINTS = 4
"""Dated steps needed on each side."""


def slowdown(facts: Facts, began: float) -> tuple[Claim | None, bool | None]:
    """
    Seconds a step before and since a moment (POSIX seconds), with the first and last line of each
    side; and whether they got longer.  Nothing where the steps are not dated on both sides.
    """
    track = facts.main_track()
    if track is None:
        return None, None
    dated = [i for i in range(len(track)) if track.at[i] == track.at[i] and track.steps[i] >= 0]
    seconds: list[float] = []
    cites: list[LogCite] = []
    for side in (
        [i for i in dated if track.at[i] < began],
        [i for i in dated if track.at[i] >= began],
    ):
        steps = track.steps[side[-1]] - track.steps[side[0]] if len(side) >= POINTS else 0
        if steps <= 0:
            return None, None
        seconds.append((track.at[side[-1]] - track.at[side[0]]) / steps)
        cites += [facts.point(track, side[0]).cite, facts.point(track, side[-1]).cite]
    before, since = seconds
    text = f"A step took {before:.3g} s on average before it began and {since:.3g} s since"
    return claim(text, *cites), since > SLOWER_RATIO * before
