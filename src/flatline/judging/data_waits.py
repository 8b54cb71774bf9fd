"""What a loop prints of its waits for data, and whether steps are longer by what these grew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from statistics import median

from flatline.facts import Facts
from flatline.judging.claims import claim
from flatline.judging.throughput import Slow, course, times
from flatline.model import Claim
from flatline.tracks import NAN, Track

MOST_BESIDE = 0.25
"""Of the lines: in more of them a wait beyond its step may be given in another unit."""
GREW, EXPLAINED = 0.05, 0.6
"""Steps longer by so much are slower; so much of it must be had from their waits for data."""
FED_LATE = 0.2
"""Of a step that is spent on waiting for data: loaders that keep up take next to nothing."""
SMOOTH = 4
"""Lines over which a step is timed by the clock: stamps may be of whole seconds."""
BURSTS, LEAST_POINTS = 2, 8
"""Waits that are longer than their step, at least, and steps below which a loader has not
settled."""


@dataclass(frozen=True, slots=True)
class GrownWaits:
    """The slow phase, the seconds that a step waited and took before it and in it, and what shows
    them."""

    phase: Slow
    had: float
    took: float
    has: float
    takes: float
    shows: Claim


def grown_waits(facts: Facts) -> GrownWaits | None:
    """None where steps became no slower, or do not tell their waits, or lost more than these."""
    return facts.memo("data waits.grown", _grown)


def _grown(facts: Facts) -> GrownWaits | None:
    run, track = course(facts), facts.main_track(facts.last.n)
    later = [] if run is None else [p for p in run.slow if p.begins >= run.best.ends]
    if run is None or track is None or not later:
        return None
    at, _ = times(facts, track)
    worst = max(later, key=lambda phase: (1 - phase.part) * (phase.ends - phase.begins))
    lasted = lengths(track, at, track.of_attempt(facts.last.n))
    fast, slow = (
        [i for i, when in at.items() if phase.begins <= when <= phase.ends
         and 0 <= track.data_s[i] <= lasted.get(i, NAN)]
        for phase in (run.best, worst)
    )  # fmt: skip
    if min(len(fast), len(slow)) < LEAST_POINTS:
        return None
    (had, took), (has, takes) = (
        (median(track.data_s[i] for i in points), median(lasted[i] for i in points))
        for points in (fast, slow)
    )
    if takes - took < GREW * took or has - had < EXPLAINED * (takes - took):
        return None
    cites = [facts.point(track, i).cite for i in (fast[-1], slow[0], slow[-1])]
    text = (
        f"A step waited {has:.3g} s for its data in the slow phase and {had:.3g} s before; it took"
        f" {takes:.3g} s, {took:.3g} s before"
    )
    return GrownWaits(worst, had, took, has, takes, claim(text, *cites))


def lengths(
    track: Track, at: Mapping[int, float], span: Sequence[int], most: int | None = None
) -> dict[int, float]:
    """
    Seconds a step took, as each line prints them, for another line of the same step that tells its
    wait as well; where none does, by the clock over a few lines.
    A wait is added where the loop's clock starts only when the batch is there: where some waits,
    but few, are longer than the step they would be part of.

    The clock's are of lines no more than `most` steps apart: a wait that stands for many steps may
    be their sum.  They hold the pauses between steps as well, and so tell a smaller share.
    """
    said = {i: track.step_s[i] for i in span if isfinite(track.step_s[i])}
    dated = [i for i in span if i in at and track.steps[i] >= 0]
    beside = [i for i, length in said.items() if track.data_s[i] > length > 0]
    if BURSTS <= len(beside) <= MOST_BESIDE * len(said):
        said = {i: length + (track.data_s[i] if track.data_s[i] > 0 else 0.0)
                for i, length in said.items()}  # fmt: skip
    of_step = {track.steps[i]: length for i, length in said.items() if track.steps[i] >= 0}
    said |= {i: of_step[track.steps[i]] for i in span
             if i not in said and isfinite(track.data_s[i])
             and track.steps[i] in of_step}  # fmt: skip
    if said or (most is not None and apart(track, dated) > most):
        return said
    gone = ((b, at[b] - at[a], track.steps[b] - track.steps[a])
            for a, b in zip(dated, dated[SMOOTH:], strict=False))  # fmt: skip
    return {i: seconds / steps for i, seconds, steps in gone if steps > 0 and seconds > 0}


def apart(track: Track, points: Sequence[int]) -> int:
    """How many steps a line stands for: trackers print means over as many."""
    gaps = [track.steps[b] - track.steps[a] for a, b in pairwise(points)]
    return max(1, int(median(gaps))) if gaps else 1


def waits_told(facts: Facts) -> bool:
    """Whether the steps say what they wait for their data."""
    track = facts.main_track(facts.last.n)
    return track is not None and any(map(isfinite, track.data_s))


def fed_late(facts: Facts) -> bool:
    """Whether its steps wait so much of their time for data that a queue may be its loaders'."""
    track = facts.main_track(facts.last.n)
    if track is None:
        return False
    told = zip(track.data_s, track.step_s, strict=True)
    parts = [data / step for data, step in told if isfinite(data) and step > 0]
    return bool(parts) and median(parts) >= FED_LATE
