"""Losses that do not move: since the first value read, or since one leap upwards."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import isfinite
from statistics import fmean, median, stdev

from flatline.judging.shapes import FALLING_POINTS, SHAPE_POINTS, SPIKE_RATIO, TREND_Z, trend
from flatline.tracks import Track

DIGITS = 5
"""Significant digits in which means over an epoch agree by no chance: those of sound runs differ
in the third or fourth, and a loss that has come down to 0.0123 shows only three."""
SAME = 1e-5
NOUGHTS, LEFT = 5, 0.1
"""Losses of nought in a row, and what the one before is at least: less may fall to what prints as
nought."""
LEAP_POINTS = 8
LEAP_DIGITS = 4
EPOCHS, STEPS = 2.0, 1_000
"""What a model that learns has moved in.  The loss of an untrained one falls within the first
hundreds of steps (bundled runs), or with the end of a warm-up, which trainers take to be 500 to
2,000 steps; so a short row proves nothing."""
SCATTER = 0.03
"""Of its mean.  A loss that draws its own noise level (diffusion) scatters by tens of percent and
looks flat while it learns."""
HELD = 0.99
"""Of the first losses' median, the last ones': a judgement."""


def digits(numbers: Sequence[float]) -> int:
    """The most significant digits that one of the numbers was printed with, zeros behind left
    out."""
    return max(len(repr(abs(n)).partition("e")[0].replace(".", "").lstrip("0")) for n in numbers)


def frozen(numbers: Sequence[float]) -> bool:
    """Whether all values but at most the first two are one number to five digits, of five epochs
    at the least.  The caller knows that each is of another epoch."""
    tail = numbers[min(2, max(0, len(numbers) - FALLING_POINTS)) :]
    if len(tail) < FALLING_POINTS or digits(tail) < DIGITS:
        return False
    height = max(map(abs, tail))
    return height > 0 and max(tail) - min(tail) <= SAME * height


def leapt_at(numbers: Sequence[float]) -> int | None:
    """Where a row leaps up to one number and prints only that: a bar that repeats the last number
    would have done so before."""
    runs = [len(list(group)) for _, group in groupby(numbers)]
    head = len(numbers) - runs[-1]
    if runs[-1] < LEAP_POINTS or not head or max(runs[:-1]) > 1:
        return None
    dead, before = numbers[-1], max(numbers[:head])
    return head if dead >= SPIKE_RATIO * before > 0 and digits([dead]) >= LEAP_DIGITS else None


def nought_since(track: Track, values: Sequence[tuple[int, float]]) -> int | None:
    """Where a loss that was none of nought's neighbours became exactly nought at once and stayed,
    with one and the same gradient norm to the last digit: of a policy's that swings about nought
    the gradient moves."""
    last = next((at for at in range(len(values) - 1, -1, -1) if values[at][1] != 0), None)
    since = [index for index, _ in values[last + 1 :]] if last is not None else []
    if last is None or len(since) < NOUGHTS or abs(values[last][1]) < LEFT:
        return None
    norms = {track.grad_norm[i] for i in since if track.has_grad[i]}
    same = len(norms) == 1 and all(track.has_grad[i] for i in since)
    return last + 1 if same and digits([*norms]) >= DIGITS else None


def flat_from_start(track: Track, values: Sequence[tuple[int, float]]) -> bool:
    """Whether a run that was read from its beginning shows one level without a trend over two
    epochs or a thousand steps."""
    indexes, numbers = zip(*values, strict=True)
    if len(numbers) < SHAPE_POINTS or not _begins(track, indexes):
        return False
    epochs = [track.epoch[i] for i in indexes if isfinite(track.epoch[i])]
    steps = [track.steps[i] for i in indexes if track.steps[i] >= 0]
    passed = epochs[-1] - epochs[0] >= EPOCHS if epochs else False
    if not passed and (not steps or steps[-1] - steps[0] < STEPS):
        return False
    mean = fmean(numbers)
    if mean <= 0 or stdev(numbers) > SCATTER * mean or trend(numbers) < -TREND_Z:
        return False
    width = max(FALLING_POINTS, len(numbers) // 6)
    return bool(median(numbers[-width:]) >= HELD * median(numbers[:width]))


def _begins(track: Track, indexes: Sequence[int]) -> bool:
    """Whether the first values are those of a run that has just begun."""
    first, second = indexes[:2]
    if isfinite(track.epoch[first]) and track.epoch[first] > 1:
        return False
    if track.steps[first] < 0:
        return isfinite(track.epoch[first])
    return track.steps[first] <= max(1, 2 * (track.steps[second] - track.steps[first]))
