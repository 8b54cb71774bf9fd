"""What a run shows to have learnt by where it prints no loss: its own measures of the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from statistics import median

from flatline.facts import Facts
from flatline.judging.level_kept import REWARDED_Z
from flatline.judging.shapes import SHAPE_POINTS, trend
from flatline.model import RISING, Cite

SEVERAL = 3
"""Measurements: two differ by chance."""
APART = 1.5
"""Times, by which an error is hardly lower by chance: fewer than three tell then.  A judgement;
what rises, as an accuracy, may rise so from what a guess gives."""
GAINED, KEPT = 0.1, 0.8
"""Of the first value, what was won at least, and how much of the most that was ever won is left.
A judgement."""
PARTS, PART = 20, 5
"""Parts of a curve, each of so many values at least: its last twentieth shows a collapse."""
OBJECTIVES, GAINED_LATE = ("logprob", "loglike"), 0.02
"""Of the same held-out cases each time, so that little is chance: where the first that is told is
of a late step, as Kaldi's summary tells it, this is what is left to gain.  A judgement."""
LATE = 0.5
"""Of the steps, behind which the last one is: a best value is told only where it is one."""


@dataclass(frozen=True, slots=True)
class Better:
    """A measure with its first and last value, and the lines that tell them."""

    name: str
    first: float
    last: float
    cites: tuple[Cite, ...]


def better(facts: Facts) -> Better | None:
    """None where a loss is printed, or nothing is measured that became better and stayed so."""
    track = facts.main_track(facts.last.n)
    if track is None:
        return None
    points = [i for i in track.of_attempt(facts.last.n) if track.has_loss[i]]
    if not points:
        return _evaluated(facts)
    values = [float(track.loss[i]) for i in points]
    few = track.loss_name == RISING and len(values) < SHAPE_POINTS
    if few and (told := _evaluated(facts)) is not None:
        return told
    if track.loss_name != RISING or trend(values) <= REWARDED_Z:
        return None
    ends = tuple(facts.point(track, i).cite for i in (points[0], points[-1]))
    return Better("metric", values[0], values[-1], ends) if _gained(_levels(values), 1) else None


def _levels(values: Sequence[float]) -> Sequence[float]:
    """Medians of as many parts, of values that are enough: single ones scatter, as the returns of
    episodes do, and the last may lie far below the best."""
    each = len(values) // PARTS
    if each < PART:
        return values
    return [median(values[max(0, end - each) : end]) for end in range(len(values), 0, -each)][::-1]


def _evaluated(facts: Facts) -> Better | None:
    n, track = facts.last.n, facts.main_track(facts.last.n)
    told = [m for m in facts.markers_of("eval") if m.attempt == n and m.progress.loss is not None]
    if track is None or not told:
        return None
    last = told[-1]
    same = [m for m in told if m.progress.loss_name == last.progress.loss_name]
    values = [m.progress.loss or 0.0 for m in same]
    made, steps = facts.steps_before(last.cite, n), len(track.of_attempt(n))
    fell = last.progress.falling and 0 < APART * values[-1] <= values[0]
    few = len(values) < SEVERAL and not fell
    if few or made is None or made < LATE * steps:
        return None
    name = last.progress.loss_name
    late = name in OBJECTIVES and (same[0].progress.step or 0) >= LATE * steps
    sign = -1 if last.progress.falling else 1
    if not _gained(values, sign, GAINED_LATE if late else GAINED):
        return None
    return Better(name, values[0], values[-1], (same[0].cite, last.cite))


def _gained(values: Sequence[float], sign: int, least: float = GAINED) -> bool:
    """Whether the last value is better than the first, and near the best."""
    if not all(map(isfinite, values)):
        return False
    most, won = (sign * (value - values[0]) for value in (max(values, key=lambda v: sign * v),
                                                          values[-1]))  # fmt: skip
    return most >= least * abs(values[0]) and won >= KEPT * most > 0
