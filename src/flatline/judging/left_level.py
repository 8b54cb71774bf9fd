"""Where a number of the training left its level, beside where throughput began to fall."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import median

from flatline.judging.throughput import Course, Slow
from flatline.series.spread import SIGMA, mad

FAR, PART, FLUTTER = 6.0, 0.25, 0.02
"""A metric begins to move where it leaves its level in the fast phase by so many standard
deviations for two stretches, and has moved where it leaves it by a quarter; less than a fiftieth
is none of a number that hardly scatters."""
AT_LEVEL = 0.01
"""Throughput within this of its best level has not begun to fall."""
CHANCE = 0.15
"""A metric that moves once meets the fall by chance as often as its window is long."""


def left_level(
    run: Course,
    points: Sequence[tuple[float, float]],
    slack: Callable[[tuple[float, float]], float],
    tried: int,
    beside: bool = False,
) -> tuple[int, int, int, float] | None:
    """Where the values left their level, where they last stood at it and were farthest from it,
    and how likely that met the fall by chance; None where it is not when throughput fell."""
    known = falls(run)
    many = tried * len(known)
    met = [_met(run, points, fall, slack(fall), many) for fall in known]
    if beside:
        met += [_met_beside(points, fall, many) for fall in known]
    return next(filter(None, met), None)


def _met(
    run: Course,
    points: Sequence[tuple[float, float]],
    fall: tuple[float, float],
    slack: float,
    tried: int,
) -> tuple[int, int, int, float] | None:
    begins, fell = fall
    left = _leaves(points, sum(time <= begins - slack for time, _ in points))
    if left is None:
        return None
    moved, most = left
    time = points[moved][0]
    window = fell - begins + 2 * slack
    chance = tried * window / (run.pace.times[-1] - run.pace.times[0])
    if not begins - slack <= time <= fell + slack or chance > CHANCE:
        return None
    return moved, moved - 1, most, chance


def _met_beside(
    points: Sequence[tuple[float, float]], fall: tuple[float, float], tried: int
) -> tuple[int, int, int, float] | None:
    """What is printed with the pace moves at the same points: of few, these are counted, not the
    time that they took, which is longer where they are slow."""
    near = [at for at, (time, _) in enumerate(points) if fall[0] <= time <= fall[1]]
    left = _leaves(points, near[0]) if near else None
    chance = tried * (len(near) + 1) / max(1, len(points))
    if left is None or not near[0] <= left[0] <= near[-1] + 1 or chance > CHANCE:
        return None
    moved, most = left
    return moved, moved - 1, most, chance


def _leaves(points: Sequence[tuple[float, float]], calm: int) -> tuple[int, int] | None:
    """Where the values leave the level of so many first ones, and where they are farthest."""
    known = [value for _, value in points[:calm]]
    if len(known) < 8:
        return None
    level = median(known)
    noise = max(FAR * SIGMA * mad(known), FLUTTER * abs(level))
    away = [abs(value - level) > noise for _, value in points]
    far = max(FAR * SIGMA * mad(known), PART * abs(level))
    if not any(abs(a - level) > far < abs(b - level) for (_, a), (_, b) in pairwise(points)):
        return None
    settled = away.index(False)  # a router learns to balance first
    moved = next((at for at in range(settled, len(points) - 1) if away[at] and away[at + 1]), None)
    if moved is None:
        return None
    return moved, max(range(moved, len(points)), key=lambda at: abs(points[at][1] - level))


def falls(run: Course) -> tuple[tuple[float, float], ...]:
    """From when throughput last stood at its best level to the first slow phase; and, where it had
    drifted below that by less than a fall, the border of the phase before this."""
    first = first_slow(run)
    pairs = zip(run.pace.times, run.pace.values, strict=True)
    good = [time for time, value in pairs
            if time <= first.begins and value >= (1 - AT_LEVEL) * run.best.level]  # fmt: skip
    before = [p.ends for p in run.phases if run.best.ends <= p.begins and p.ends <= first.begins]
    begins = good[-1] if good else first.begins
    return tuple((at, first.begins) for at in (begins, *before[-1:]))


def first_slow(run: Course) -> Slow:
    """The first slow phase after the best one: compiling makes a slow beginning."""
    return next(phase for phase in run.slow if phase.begins >= run.best.begins)
