"""The shape of a loss that is meant to fall, from its points alone."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from statistics import median
from typing import Literal

from flatline.facts import Facts, Point, Track

Shape = Literal["non-finite", "spiked", "never-fell", "flat-no-gradient", "falling", "unclear"]

HEAD = 3
SHAPE_POINTS = 20
"""Fewer points than this show no shape: per-batch losses of small runs scatter by tens of percent
(measured on the bundled healthy runs: 3 to 12 % between neighbouring points)."""
FALLING_POINTS = 5
WINDOWS = 6
"""The curve is compared in stretches of a sixth: long enough for a median of noisy batches."""
SPIKE_RATIO = 1.5
"""A tail half as high again as the best level the run had held. Healthy curves in the bundled runs
stay within 1.15 of it."""
LOST_SHARE = 0.25
RISEN_RATIO = 2.0
"""An end at twice the very first value: an untrained model's loss is a ceiling for a sound run."""
ZERO_GRADIENT = 1e-8
NON_FINITE_TAIL = 2
"""One non-finite point can be a step the loss scaler skips; two in a row to the end are not."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A loss curve in words, with the points that show it."""

    shape: Shape
    track: Track
    points: tuple[Point, ...]
    onset: Point | None
    head: float | None
    best: float | None
    tail: float | None
    count: int


def curve(facts: Facts) -> Curve | None:
    """The curve of the last attempt's main stream; None without a loss, or where the number
    printed as loss is not meant to fall."""
    track = facts.main_track(facts.last.n)
    if track is None or not track.falling:
        return None
    points = [i for i in track.of_attempt(facts.last.n) if track.has_loss[i] or track.has_grad[i]]
    losses = [i for i in points if track.has_loss[i] and not track.skipped[i]]
    if not losses and not points:
        return None
    bad = _non_finite(facts, track, losses, points)
    if bad is not None:
        return bad
    return _finite(facts, track, losses)


def _non_finite(facts: Facts, track: Track, losses: list[int], points: list[int]) -> Curve | None:
    for column, indexes in ((track.loss, losses), (track.grad_norm, points)):
        said = [i for i in indexes if column is track.loss or track.has_grad[i]]
        tail = 0
        for i in reversed(said):
            if isfinite(column[i]):
                break
            tail += 1
        if not tail or (tail < NON_FINITE_TAIL and len(said) > 1):
            continue
        onset = said[-tail]
        before = [i for i in said if i < onset]
        shown = [onset, said[-1], *before[-1:]]
        good = [track.loss[i] for i in before if isfinite(track.loss[i])]
        return Curve(
            shape="non-finite",
            track=track,
            points=tuple(facts.point(track, i) for i in dict.fromkeys(shown)),
            onset=facts.point(track, onset),
            head=good[0] if good else None,
            best=min(good, default=None),
            tail=None,
            count=tail,
        )
    return None


def _finite(facts: Facts, track: Track, losses: list[int]) -> Curve | None:
    values = [(i, track.loss[i]) for i in losses if isfinite(track.loss[i])]
    if not values:
        return None
    numbers = [value for _, value in values]
    width = max(HEAD, len(numbers) // WINDOWS)
    start, best, end = _levels(numbers, width)
    shape: Shape = "unclear"
    onset = None
    if _no_gradient(track, losses) and abs(end.middle - start.middle) <= 0.01 * abs(start.middle):
        shape = "flat-no-gradient"
        onset = values[0][0]
    elif len(numbers) >= SHAPE_POINTS and 0 < RISEN_RATIO * numbers[0] <= end.low:
        counts_up = all(b >= a for a, b in pairwise(numbers))
        shape = "never-fell" if counts_up else "spiked"
        onset = _crossing(values, numbers[0])
    elif len(numbers) >= SHAPE_POINTS and _stayed_high(start, best, end):
        shape = "spiked"
        onset = _crossing(values, best.middle)
    elif len(numbers) >= FALLING_POINTS and end.middle < start.middle:
        shape = "falling"
    shown = [values[0][0], *([onset] if onset is not None else []), values[-1][0]]
    return Curve(
        shape=shape,
        track=track,
        points=tuple(facts.point(track, i) for i in dict.fromkeys(shown)),
        onset=facts.point(track, onset) if onset is not None else None,
        head=start.middle,
        best=best.middle,
        tail=end.middle,
        count=len(numbers),
    )


@dataclass(frozen=True, slots=True)
class _Level:
    """A stretch of the curve by its quartiles: per-batch losses scatter, levels do not."""

    low: float
    middle: float
    high: float


def _levels(numbers: list[float], width: int) -> tuple[_Level, _Level, _Level]:
    """The first stretch, the one with the lowest median, and the last."""

    def level(stretch: list[float]) -> _Level:
        ordered = sorted(stretch)
        n = len(ordered)
        return _Level(ordered[n // 4], median(ordered), ordered[-1 - n // 4])

    step = max(1, width // 2)
    starts = range(0, max(1, len(numbers) - width + 1), step)
    stretches = [level(numbers[k : k + width]) for k in starts]
    best = min(stretches, key=lambda s: s.middle)
    return stretches[0], best, level(numbers[-width:])


def _stayed_high(start: _Level, best: _Level, end: _Level) -> bool:
    """Whether the end lies above the best level by more than its scatter, by half of it again,
    and by a quarter of the whole descent: near zero, noise alone doubles a loss."""
    if start.middle <= 0 or best.middle <= 0 or end.low <= best.high:
        return False
    lost = end.middle - best.middle
    return end.middle >= SPIKE_RATIO * best.middle and lost >= LOST_SHARE * (
        start.middle - best.middle
    )


def _crossing(values: list[tuple[int, float]], best: float) -> int:
    """Where the curve last left its best level for good."""
    limit = SPIKE_RATIO * best
    first = values[-1][0]
    for index, value in reversed(values):
        if value < limit:
            break
        first = index
    return first


def _no_gradient(track: Track, losses: list[int]) -> bool:
    half = losses[len(losses) // 2 :]
    grads = [track.grad_norm[i] for i in half if track.has_grad[i]]
    return len(grads) >= FALLING_POINTS and all(abs(g) <= ZERO_GRADIENT for g in grads)
