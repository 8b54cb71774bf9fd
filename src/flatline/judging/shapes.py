"""What a row of losses looks like: levels, trends, plateaus. Numbers in, numbers out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import isfinite, log, sqrt
from statistics import fmean, median, stdev

HEAD = 3
SHAPE_POINTS = 20
"""Fewer points than this show no shape: per-batch losses of small runs scatter by tens of percent
(measured on the bundled healthy runs: 3 to 12 % between neighbouring points)."""
FALLING_POINTS = 5
FEW_STEPS = 10
"""Optimizer steps below which no learning is claimed, nor expected (DESIGN, E3)."""
LATE_STEP = 1_000
FALLEN_RATIO = 0.6
"""The last of a few points, the lowest of them, so far below the first: neighbouring points of
sound runs scatter by an eighth at most."""
MEAN_ERRORS = 4.0
"""Standard errors: by chance five losses of one level lie so far off in 0.8 % of cases."""
WINDOWS = 6
"""The curve is compared in stretches of a sixth: long enough for a median of noisy batches."""
CLIMBED_RATIO = 1.1
"""An end so far above the beginning of a row that climbs throughout."""
HELD, STAYED, HELD_RATIO = 3, 4, 1.05
"""Points of a level that held within so much, and of one that it was left for."""
SUM_STEPS = 2.0
"""Times its greatest step: what begins above that began at a level, not at nought. A judgement."""
SPIKE_RATIO = 1.5
"""A tail half as high again as the best level the run had held. Healthy curves in the bundled runs
stay within 1.15 of it."""
OF_ANOTHER_SCALE = 10.0
"""Times its first value: what rose so far had exploded. A judgement, between a detector's
eightfold rise while boxes are first matched and the hundredfold one of too high a rate."""
OVERSHOOTS = 10
"""Points within which a leap comes to its peak."""
LOST_SHARE = 0.25
STUCK_RATIO, STUCK_SHARE = 1.25, 1 / 3
"""A level that was leapt to, above the best one and of the whole descent, and that is not fallen
from again: a loss in nats of 5 that is lost for good comes to no half more. A judgement, between
another mix of data, whose loss falls on, and a model that is back at the words' frequencies."""
KICK = 20.0
"""Times the median norm before it: clipped runs show some tenfold ones that do no harm."""
DIED = 0.2
"""Of the gradients before it, all that come long after.  A judgement: a run that recovers has as
large ones again."""
FORGOTTEN_SHARE = 0.25
"""Of the points before it, so many behind it that do not fall: a judgement."""
TREND_POINTS = 60
"""Medians a long row is reduced to before its trend is tested."""
TREND_Z = 1.645
"""One-sided 5 %: how seldom a row without a trend passes for one that has it."""
RISE_Z = 3.1
"""One-sided 0.1 %: a verdict of divergence asks for more than a ruling-out does."""
EXPLODED_RATIO = 1_000.0
OVERSHOT_SHARE = 0.4
"""Of the whole rise, the greatest step of it: five even steps have a fifth each. A judgement."""
ABRUPT_SHARE = 0.1
"""Of the span the row had covered: a loss that nears its limit arrives there in small steps."""
UNDECIDED = 5e-4
"""About ln 2: what is printed with three decimals or more."""
CHANCES = (2, 3, 4, 5, 10, 100, 1000)
"""Cases of which a loss of their logarithm calls each as likely as the next: tasks have so many
classes or choices."""
SCATTERED, LATE_STEPS, SCATTER, MEAN_OFF = 10, 5_000, 0.02, 0.005
"""A judgement: ImageNet's classifiers leave chance within hundreds of steps; of a batch of 128
untrained guesses the mean loss scatters by a hundredth."""
AT_CHANCE = 0.97
"""Of it, below which a loss has been lower than chance: batches scatter by percents."""
UNDECIDED_DIGITS = range(4, 8)
"""Decimals a loss is printed with: fewer would take any 0.69 for ln 2."""


@dataclass(frozen=True, slots=True)
class Level:
    """A stretch of the curve by its quartiles: per-batch losses scatter, levels do not."""

    low: float
    middle: float
    high: float


def level(stretch: Sequence[float]) -> Level:
    ordered = sorted(stretch)
    n = len(ordered)
    return Level(ordered[n // 4], median(ordered), ordered[-1 - n // 4])


def levels(numbers: Sequence[float], width: int) -> tuple[Level, Level, Level]:
    """The first stretch, the lowest that held, and the last."""
    step = max(1, width // 2)
    starts = range(0, max(1, len(numbers) - width + 1), step)
    stretches = [level(numbers[k : k + width]) for k in starts]
    # By its upper quartile: half of a stretch that holds a jump lies low as well.
    best = min(stretches, key=lambda s: s.high)
    return stretches[0], best, level(numbers[-width:])


def trend(numbers: Sequence[float]) -> float:
    """
    The Mann-Kendall statistic as a normal deviate: below zero where the row falls.

    Long rows are reduced to medians of equal stretches, so that neighbours that depend on one
    another do not count as so many witnesses.
    """
    size = -(-len(numbers) // TREND_POINTS)
    row = [median(numbers[k : k + size]) for k in range(0, len(numbers), size)]
    n = len(row)
    if n < 2:
        return 0.0
    score = sum((row[j] > row[i]) - (row[j] < row[i]) for i in range(n) for j in range(i + 1, n))
    spread = sqrt(n * (n - 1) * (2 * n + 5) / 18)
    return (score - (score > 0) + (score < 0)) / spread


def fell(numbers: Sequence[float], start: Level, best: Level, end: Level) -> bool:
    """Whether it ends below its beginning by more than its scatter, or falls all along, and has
    not lost again a good part of what it had gained."""
    if len(numbers) < FALLING_POINTS:
        return len(numbers) > 1 and min(numbers) == numbers[-1] <= FALLEN_RATIO * numbers[0]
    if end.middle >= max(start.middle, *numbers[:HEAD]) or end.middle > start.high:
        return False
    lost = end.middle - best.middle
    if end.low > best.high and lost >= LOST_SHARE * (max(numbers[:HEAD]) - best.middle):
        return False
    if end.high < start.low or end.high < min(numbers[:HEAD]):
        return True
    return end.middle < start.middle and trend(numbers) < -TREND_Z


def stayed_high(start: Level, best: Level, end: Level) -> bool:
    """Whether the end lies above the best level by more than its scatter, by half of it again,
    and by a quarter of the whole descent: near zero, noise alone doubles a loss."""
    if start.middle <= 0 or best.middle <= 0 or end.low <= best.high:
        return False
    lost = end.middle - best.middle
    return end.middle >= SPIKE_RATIO * best.middle and lost >= LOST_SHARE * (
        start.middle - best.middle
    )


def stuck_since(numbers: Sequence[float], start: Level, best: Level, end: Level) -> int | None:
    """Where a row leapt from about its best level to one far above it and did not fall again; or
    to less far above it, by a peak that no other data have."""
    lost = end.middle - best.middle
    if best.middle <= 0 or lost < STUCK_SHARE * (start.middle - best.middle):
        return relapsed_at(numbers, start)
    far = end.middle >= STUCK_RATIO * best.middle
    if not far and (end.low <= best.high or end.middle < HELD_RATIO * best.middle):
        return None
    limit = (best.middle + end.middle) / 2
    first = len(numbers) - next((n for n, x in enumerate(reversed(numbers)) if x < limit), 0)
    before, since = numbers[max(0, first - HEAD) : first], numbers[first:]
    if len(since) < SHAPE_POINTS or not before or median(before) - best.middle > lost / 4:
        return None
    settled = since[HEAD:]  # what it overshot by is no descent
    if not far:
        top = since.index(max(since))
        down = next((n for n, x in enumerate(since) if n > top and x <= end.high), len(since))
        settled = since[down:]
        if (
            since[top] < SPIKE_RATIO * end.middle
            or len(settled) < SHAPE_POINTS
            or top > OVERSHOOTS
        ):
            return None
    return None if trend(settled) < -TREND_Z or min(settled) < limit else first


def relapsed_at(numbers: Sequence[float], start: Level) -> int | None:
    """Where a row that still fell rose to where it had begun, came down again to a level above the
    one it left, and has stood there since for a good part of the time it had fallen.  A bad batch
    is one point, other data have no such peak, and a run that recovers falls on."""
    top = max(range(len(numbers)), key=numbers.__getitem__)
    if start.middle <= 0 or top < 2 * SHAPE_POINTS:
        return None
    left = levels(numbers[:top], SHAPE_POINTS)[1]
    first = next((n + 1 for n in range(top - 1, -1, -1) if numbers[n] <= left.high), 0)
    before, since = numbers[:first], numbers[first:]
    settled = since[len(since) // 2 :]
    held = level(settled)
    still_fell = first >= SHAPE_POINTS and trend(before[first // 2 :]) < -RISE_Z
    if not still_fell or len(settled) < max(SHAPE_POINTS, FORGOTTEN_SHARE * first):
        return None
    forgot = sum(x >= start.middle for x in since[: len(since) // 2]) >= FALLING_POINTS
    peak = numbers[top] >= STUCK_RATIO * held.high and top < first + len(since) // 2
    above = min(since) > left.high and held.middle >= HELD_RATIO * left.middle
    near = median(before[-HEAD:]) <= left.high
    stands = trend(settled) >= -TREND_Z
    return first if forgot and peak and above and near and stands else None


def kicked_at(numbers: Sequence[float], norms: Sequence[float]) -> int | None:
    """Where a gradient far beyond those before it threw a row to a level above the one it had,
    from which it has not come down since: where a run recovers from a spike its losses fall again.
    Norms that were not printed are no numbers."""
    for n in range(SHAPE_POINTS // 2, len(numbers) - SHAPE_POINTS):
        known = [norm for norm in norms[:n] if isfinite(norm)]
        if len(known) >= HEAD and norms[n] >= KICK * median(known) > 0:
            before, since = numbers[max(0, n - FALLING_POINTS) : n], numbers[n + 1 :]
            if _died(norms[n + 1 :], median(known)):
                since = since[len(since) // 2 :]  # it may have come down from the spike itself
            stays = min(since) > max(before) and trend(since[HEAD:]) >= -TREND_Z
            far = 0 < CLIMBED_RATIO * median(before) <= median(since)
            return n if stays and far else None
    return None


def _died(norms: Sequence[float], before: float) -> bool:
    """Whether gradients stay far below those of before: a model that no longer moves."""
    last = [norm for norm in norms[len(norms) // 2 :] if isfinite(norm)]
    return len(last) >= SHAPE_POINTS and max(last) <= DIED * before


def rises_at_end(numbers: Sequence[float], start: Level, best: Level) -> float | None:
    """How surely the last stretch climbs away from the best level, as a normal deviate; None
    where it does not lie above it."""
    width = max(SHAPE_POINTS, len(numbers) // WINDOWS)
    if len(numbers) < 2 * width:
        return None
    last = numbers[-width:]
    if not stayed_high(start, best, level(last[-max(HEAD, width // 4) :])):
        return None
    return trend(last)


def dead_since(numbers: Sequence[float]) -> int | None:
    """
    Where a row that varied stops dead: to its end exactly one number, reached in one leap.

    None for a row that was never other than constant, repeats numbers elsewhere (a display that
    shows the last one), or nears its last number step by step (a loss that reaches 0.0000).
    ln 2 counts sooner and however it is reached, where the row had stood far above it: it is the
    loss of a model that calls every case of two even.
    """
    runs = [len(list(group)) for _, group in groupby(numbers)]
    tail, dead = runs[-1], numbers[-1]
    head = len(numbers) - tail
    undecided = any(dead == round(log(2), digits) for digits in UNDECIDED_DIGITS)
    enough = FALLING_POINTS if dead == 0 else SHAPE_POINTS // 2 if undecided else SHAPE_POINTS
    if tail < enough or head < 2 or max(runs[:-1]) >= FALLING_POINTS:
        return None
    before = numbers[:head]
    if undecided and max(before) > SPIKE_RATIO * dead:
        return head
    span = max(before) - min(*before, dead)
    near = median(before[-HEAD:])
    return head if abs(near - dead) > ABRUPT_SHARE * span else None


def undecided(numbers: Sequence[float]) -> int | None:
    """Of how many cases every value, five at the least, is the logarithm to three decimals: a
    model that calls each as likely as the next has learnt nothing."""
    if len(numbers) < FALLING_POINTS:
        return None
    near = (k for k in CHANCES if all(abs(n - log(k)) < UNDECIDED for n in numbers))
    return next(near, None)


def at_chance(numbers: Sequence[float]) -> bool:
    """Whether a row never fell below what chance gives and ends in that very number: the logarithm
    of so many cases, to five decimals or more, time after time.  A preference loss shows ln 2
    through its warm-up, so that must stand for longer."""
    dead = numbers[-1]
    cases = [k for k in CHANCES for d in UNDECIDED_DIGITS[1:] if dead == round(log(k), d)]
    if not cases or min(numbers) < AT_CHANCE * dead:
        return False
    tail = next((n for n, one in enumerate(reversed(numbers)) if one != dead), len(numbers))
    return tail >= (SHAPE_POINTS if 2 in cases else FALLING_POINTS)


def about_chance(numbers: Sequence[float], steps: int) -> bool:
    """Whether, thousands of steps in, a row scatters closely about the logarithm of a thousand
    cases: batches of an untrained classifier do.  Fewer classes have logarithms that losses of
    other kinds pass through."""
    if len(numbers) < SCATTERED or steps < LATE_STEPS:
        return False
    level = log(CHANCES[-1])
    near = all(abs(n - level) <= SCATTER for n in numbers)
    return near and abs(fmean(numbers) - level) <= MEAN_OFF


def exploded_at(numbers: Sequence[float]) -> int | None:
    """Where the last values, two at the least, lie a thousand times above all before them: no
    scatter and no spike of a sound run reaches that."""
    for first in range(len(numbers) - 2, 1, -1):
        before, since = numbers[:first], numbers[first:]
        if min(since) >= EXPLODED_RATIO * max(map(abs, before)) > 0:
            return first
    return None


def beyond_chance(mean: float, numbers: Sequence[float]) -> bool:
    """Whether the mean of a whole run lies so far above its last losses, five at the least, that
    their own scatter does not explain it."""
    if len(numbers) < FALLING_POINTS:
        return False
    error = stdev(numbers) / sqrt(len(numbers))
    return mean - fmean(numbers) > MEAN_ERRORS * error


def all_zero(numbers: Sequence[float], last_step: int = -1) -> bool:
    """Far into a run, three zeros tell as much as five at its beginning."""
    enough = HEAD if last_step >= LATE_STEP else FALLING_POINTS
    return len(numbers) >= enough and not any(numbers)


def only_rises(numbers: Sequence[float]) -> bool:
    return all(b >= a for a, b in pairwise(numbers))


def falls_from_its_peak(numbers: Sequence[float]) -> bool:
    """Whether a row that rose at its beginning has been falling since: a detector's losses are
    small while nothing is matched.  What rose tenfold had exploded before it fell."""
    peak = max(numbers)
    since = numbers[numbers.index(peak) :]
    return (
        peak < OF_ANOTHER_SCALE * numbers[0]
        and len(since) >= len(numbers) // 2
        and trend(since) < -TREND_Z
    )


def only_climbed(numbers: Sequence[float], start: Level, best: Level, end: Level) -> bool:
    """Whether a long row climbs throughout and was never lower than at its beginning."""
    return (
        len(numbers) >= SHAPE_POINTS
        and end.low > start.high > 0
        and best.middle >= start.low
        and end.middle >= CLIMBED_RATIO * start.middle
        and trend(numbers) > RISE_Z
    )


def climbs(numbers: Sequence[float]) -> bool:
    """
    Whether a short row rises at every point and ends half as high again.

    A sum that a loop prints as it grows does so as well: it begins about where one of its own
    steps would take it from nought.
    """
    if not FALLING_POINTS <= len(numbers) < SHAPE_POINTS or numbers[0] <= 0:
        return False
    grows = [b - a for a, b in pairwise(numbers)]
    of_a_sum = numbers[0] <= SUM_STEPS * max(grows)
    return min(grows) > 0 and numbers[-1] >= SPIKE_RATIO * numbers[0] and not of_a_sum


def jumped_at(numbers: Sequence[float]) -> int | None:
    """Where a short row that had held its level leaves it at once and stays half as high again to
    its end: too few points for a shape, and no scatter of such a level reaches there."""
    for first in range(HELD, len(numbers) - STAYED + 1):
        before, since = numbers[:first], numbers[first:]
        level_held = 0 < max(before) <= HELD_RATIO * min(before)
        if level_held and min(since) >= SPIKE_RATIO * max(before):
            return first
    return None


def overshot_at(numbers: Sequence[float], ratio: float) -> int | None:
    """Where a short row that had fallen leaves its level and stays so many times above its first
    value, the last five points at the least.  What only grows (a sum) has not fallen before, and a
    term that is phased in climbs in small steps."""
    limit = ratio * numbers[0]
    first = len(numbers)
    while first and numbers[first - 1] >= limit:
        first -= 1
    had_fallen = any(0 < value < numbers[0] for value in numbers[1:first])
    if not had_fallen or len(numbers) - first < FALLING_POINTS:
        return None
    if min(numbers[first:]) <= max(numbers[:first]):
        return None  # batches that scatter, the first of them low
    low = numbers.index(min(numbers[:first]))
    steps = [after - before for before, after in pairwise(numbers[low:])]
    return first if max(steps) >= OVERSHOT_SHARE * (max(numbers) - numbers[low]) else None


def turned_back_at(numbers: Sequence[float]) -> int | None:
    """Where a short row that fell point by point turned and gave half of what it had gained up
    again: it rose as steadily, to half as high again as its lowest point, and has stayed there for
    its last five.  Batches that scatter do not come down and go up in single file, and a term that
    is phased in climbs in small steps."""
    low = numbers.index(min(numbers))
    down, up = numbers[: low + 1], numbers[low:]
    if not FALLING_POINTS <= len(down) < SHAPE_POINTS or numbers[low] <= 0:
        return None
    limit = max(SPIKE_RATIO * numbers[low], (numbers[0] + numbers[low]) / 2)
    first = next((n for n, one in enumerate(up) if one >= limit), len(up))
    stays = len(up) - first >= FALLING_POINTS and min(up[first:], default=0.0) >= limit
    steady = all(b <= a for a, b in pairwise(down)) and only_rises(up[: first + 1])
    leaps = max(after - before for before, after in pairwise(up)) if stays else 0.0
    abrupt = leaps >= LOST_SHARE * (max(up) - numbers[low])
    return low + 1 if stays and steady and abrupt else None
