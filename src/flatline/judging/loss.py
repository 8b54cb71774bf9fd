"""The shape of a loss that is meant to fall, from its points alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import isfinite, log, nan, sqrt
from typing import Literal, cast

from flatline.facts import LOG, Facts, Point, Track
from flatline.judging.shapes import (
    FALLING_POINTS,
    FEW_STEPS,
    HEAD,
    LATE_STEP,
    RISE_Z,
    SHAPE_POINTS,
    SPIKE_RATIO,
    TREND_Z,
    WINDOWS,
    Level,
    about_chance,
    all_zero,
    at_chance,
    climbs,
    dead_since,
    exploded_at,
    falls_from_its_peak,
    fell,
    jumped_at,
    kicked_at,
    levels,
    only_climbed,
    only_rises,
    overshot_at,
    rises_at_end,
    stayed_high,
    stuck_since,
    trend,
    turned_back_at,
    undecided,
)
from flatline.judging.standstill import flat_from_start, frozen, leapt_at, nought_since
from flatline.model import RISING
from flatline.series.spread import SIGMA, mad

Shape = Literal[
    "non-finite",
    "spiked",
    "stepped-up",
    "stuck",
    "rising-at-end",
    "never-fell",
    "risen",
    "unbounded",
    "dead-plateau",
    "undecided",
    "frozen",
    "flat-from-start",
    "zero-throughout",
    "flat-no-gradient",
    "flat-no-rate",
    "falling",
    "unclear",
]

RISEN_RATIO = 2.0
"""An end at twice the very first value: an untrained model's loss is a ceiling for a sound run."""
SCATTERS = 8.0
"""Standard deviations of later losses, as their logarithms go.  A judgement: what is drawn far
below the others is no rarer than one of a few hundred, whatever its distribution."""
ZERO_GRADIENT = 1e-8
SWEPT, EVEN = 100.0, 0.1
"""Tests of rates go over three decades or more. Of a rate that is multiplied evenly half of the
way, as its logarithm goes, is made in half of the steps; of one that is added to, most of it."""
SHUFFLED = 0.25
"""A judgement: a run that began anew goes back once each time."""
NON_FINITE_TAIL = 2
"""One non-finite point can be a step the loss scaler skips; two in a row to the end are not."""
SKIPPED_TAIL = 5
SKIPPED_LINES = (
    20  # of a scaler that prints every step, beside a loss that is printed now and then
)
SKIPPED_SHARE = 0.05
"""A scaler that finds its scale skips a step or two, at the start and again now and then."""


_ROUNDED = re.compile(r"(?i)(?:\blr|rate)\w{0,12}\W{0,5}0\.0{2,6}(?![\de])")
"""A rate in so many decimals: fine-tuning goes by one of a millionth."""
_SCALER = re.compile(
    r"(?i)loss[ _-]?scal|grad_?scaler|\bamp\b|\bfp16\b(?!\W{1,4}(?:false|0)\b)|mixed[ _-]precision"
    r"|\b16bit\b"
)
CUT_LINES, SETTINGS_LINES = 2, 400
ADVERSARY_TAIL = 3
_ADVERSARY = re.compile(r"(?i)(?:^|[_/. ])(?:[dg]|disc\w*|gen(?:erator)?)(?:$|[_/. ])")
OF_VALUES = "value loss"
"""What it compares are numbers always: a batch without a reward has values, too."""
BEYOND = 1e12
"""Times what a value's or a policy's loss was, and 1 at least: a reward that was never found
before takes it up a millionfold where it is large.  A judgement, far beyond."""
UNFALLING_TAIL = 5
"""Points of a loss that need not fall, not finite up to the end: one batch without a reward gives
a policy's loss no value, five in a row give it none any more."""


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
    last: tuple[float, ...] = ()
    """The last losses, at the most as many as show a shape."""
    throughout: bool = False
    """Non-finite from the first point that was read: when it began is not known."""
    skipped: bool = False
    """The steps were skipped for it: the losses between may be finite."""


def curve(facts: Facts) -> Curve | None:
    """The curve of the last attempt's main stream; None without a loss. Of a number that is not
    meant to fall (an adversary's, a policy's) only whether it stayed finite."""
    track = facts.main_track(facts.last.n)
    if track is None:
        return None
    points = [i for i in track.of_attempt(facts.last.n) if track.has_loss[i] or track.has_grad[i]]
    losses = [i for i in points if track.has_loss[i] and not track.skipped[i]]
    if not track.falling:
        lost = _non_finite(facts, track, losses, losses)
        least = ADVERSARY_TAIL if _ADVERSARY.search(track.loss_name) else UNFALLING_TAIL
        few = lost is not None and lost.count < least
        ever = lost is not None and lost.throughout and track.loss_name == OF_VALUES
        known = ever or (lost is not None and _poisoned(track, losses[-1]))
        return _beyond_all(facts, track, losses) if lost is None else (
            None if few and not known else lost
        )  # fmt: skip
    if (not losses and not points) or _sweeps(track, losses):
        return None
    bad = _skipping(facts, track, losses) or _non_finite(facts, track, losses, points)
    if bad is not None:
        return bad
    if _shuffled(track, losses):
        return None
    found = _finite(facts, track, losses)
    if found is not None and found.shape in ("falling", "unclear", "stepped-up"):
        return _worse_than_new(facts, found, losses) or found
    return found


def _beyond_all(facts: Facts, track: Track, losses: list[int]) -> Curve | None:
    """Of a number that is not meant to fall: that it has left every size that one can have, beside
    what it was, and stays there.  What a reward or a return is measured in says no size."""
    values = [abs(track.loss[i]) for i in losses]
    third = len(values) // 3
    if len(values) < SHAPE_POINTS or track.loss_name == RISING:
        return None
    most = BEYOND * max(1.0, *values[:third])
    if not most < min(values[-third:]):
        return None
    onset = next(i for i, value in zip(losses, values, strict=True) if value > most)
    shown = dict.fromkeys((losses[0], onset, losses[-1]))
    start, best, end = levels(values, max(HEAD, third))
    return Curve(
        "spiked", track, tuple(facts.point(track, i) for i in shown), facts.point(track, onset),
        start.middle, best.middle, end.middle, len(values),
    )  # fmt: skip


def _sweeps(track: Track, losses: list[int]) -> bool:
    """Whether the learning rate is multiplied from loss to loss over two decades or more: a test
    of which rate is the highest that works ends where none does.  A warm-up adds to it."""
    rates = [track.lr[i] for i in losses]
    if len(rates) < SHAPE_POINTS or not 0 < SWEPT * rates[0] <= rates[-1]:
        return False
    if any(b < a for a, b in pairwise(rates)):
        return False
    half = log(rates[len(rates) // 2] / rates[0]) / log(rates[-1] / rates[0])
    return abs(half - 0.5) <= EVEN


def _shuffled(track: Track, losses: list[int]) -> bool:
    """Whether so many losses stand before those of earlier steps that they are in another order
    than the training's: a table sorted by loss, or newest first."""
    dated = all(isfinite(track.epoch[i]) for i in losses)
    said = [(track.epoch[i] if dated else 0.0, track.steps[i]) for i in losses]
    said = [where for where in said if dated or where[1] >= 0]
    back = sum(b < a for a, b in pairwise(said))
    return len(said) >= SHAPE_POINTS and back > SHUFFLED * len(said)


def _worse_than_new(facts: Facts, found: Curve, losses: list[int]) -> Curve | None:
    """Of a run that went on from a checkpoint: every loss since stands far above the very first of
    the run it continues, which was that of a model that knew nothing."""
    track = found.track
    begun = next((a.n for a in facts.attempts if facts.main_track(a.n) is not None), facts.last.n)
    parent = facts.main_track(begun)
    if parent is None or begun == facts.last.n or len(losses) < FALLING_POINTS:
        return None
    before = [i for i in parent.of_attempt(begun) if parent.has_loss[i]]
    if not before or track.steps[losses[0]] < parent.steps[before[-1]]:
        return None
    if _another_stage(facts, begun, parent, track):
        return None
    new = parent.loss[before[0]]
    if not 0 < RISEN_RATIO * new <= min(track.loss[i] for i in losses):
        return None
    onset = facts.point(track, losses[0])
    shown = (facts.point(parent, before[0]), facts.point(parent, before[-1]), onset)
    shape: Shape = "stepped-up" if found.shape == "falling" else "spiked"
    return replace(
        found, shape=shape, onset=onset, points=(*shown, facts.point(track, losses[-1])),
        head=new, best=min(parent.loss[i] for i in before), count=len(before) + len(losses),
    )  # fmt: skip


def _another_stage(facts: Facts, begun: int, parent: Track, track: Track) -> bool:
    """Whether a run that goes on from another's last step trains for something else: that one had
    come to its end, or its loss has another name."""
    last = parent.steps[parent.of_attempt(begun)[-1]]
    done = parent is not track and parent.planned is not None and last + 1 >= parent.planned
    ended = any(m.attempt == begun for m in facts.markers_of("finished"))
    return done or ended or parent.loss_name != track.loss_name


def _poisoned(track: Track, index: int) -> bool:
    """Whether a point's gradient is no number either: the weights are none after it."""
    return bool(track.has_grad[index]) and not isfinite(track.grad_norm[index])


def _skipping(facts: Facts, track: Track, losses: list[int]) -> Curve | None:
    """A run whose every step to the end was skipped for a gradient that was not finite: no
    weight moved since, and the losses stop where that began."""
    if not losses:
        return None  # a scaler that still seeks its scale skips every step
    last = track.lines[losses[-1]]
    span = track.of_attempt(facts.last.n)
    for other in facts.tracks:  # a scaler may print in a format of its own
        if other.source != track.source:
            continue
        own = other.of_attempt(facts.last.n)
        after = [i for i in own if other.lines[i] > last]
        few = SKIPPED_TAIL if other is track else SKIPPED_LINES
        if len(after) >= max(few, SKIPPED_SHARE * len(span)) and all(
            other.skipped[i] for i in after
        ):
            return _skipped(facts, track, losses, (other, after))
        lost = [i for i in own if other.skipped[i] and other.steps[i] >= 0]
        now = other is not track and lost and other.steps[lost[-1]] == max(other.steps)
        since = [track.loss[i] for i in losses if lost and track.lines[i] > other.lines[lost[0]]]
        if now and (len(lost) > 1 or not any(map(isfinite, filter(None, since)))):
            return _skipped(facts, track, losses, (other, lost))
    return None


def _skipped(
    facts: Facts, track: Track, losses: list[int], skips: tuple[Track, list[int]]
) -> Curve:
    other, after = skips
    good = [track.loss[i] for i in losses if isfinite(track.loss[i])]
    ends = [facts.point(other, after[0]), facts.point(other, after[-1])]
    before = [facts.point(track, i) for i in losses[-1:]]
    return Curve(
        "non-finite", track, (*ends, *before), ends[0], good[0] if good else None,
        min(good, default=None), None, len(after), skipped=True,
    )  # fmt: skip


def _non_finite(facts: Facts, track: Track, losses: list[int], points: list[int]) -> Curve | None:
    for column, indexes in ((track.loss, losses), (track.grad_norm, points)):
        said = [i for i in indexes if column is track.loss or track.has_grad[i]]
        tail = 0
        for i in reversed(said):
            if isfinite(column[i]):
                break
            tail += 1
        if not tail:
            continue
        lone = tail < NON_FINITE_TAIL and len(said) > 1
        if lone and not (_cut(facts, track, said) or _nought(track, said[-1])):
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
            throughout=not before,
        )
    return None


def _nought(track: Track, index: int) -> bool:
    """Whether a loss of nought stands beside a gradient that is no number: transformers prints
    that for a loss that is none (logging_nan_inf_filter)."""
    return bool(track.has_loss[index]) and track.loss[index] == 0.0 and _poisoned(track, index)


def _cut(facts: Facts, track: Track, said: list[int]) -> bool:
    """Whether a log of a run without a loss scaler ends with its first loss that is no number: it
    was cut there, for one that goes on would say so."""
    end = next((read.lines for read in facts.log_files(LOG) if read.source == track.source), 0)
    last = track.lines[said[-1]]
    if len(said) < HEAD or not last <= end <= last + CUT_LINES:
        return False
    if any(track.skipped) or not track.has_loss[said[-1]]:
        return False
    near = [*facts.lines(track.source, 1, SETTINGS_LINES), facts.text(track.source, last)]
    return not any(_SCALER.search(text) for text in near)


def _finite(facts: Facts, track: Track, losses: list[int]) -> Curve | None:
    values = [(i, track.loss[i]) for i in losses if isfinite(track.loss[i])]
    if not values:
        return None
    numbers = [value for _, value in values]
    start, best, end = levels(numbers, max(HEAD, len(numbers) // WINDOWS))
    shape, onset = _shape(facts, track, losses, values)
    held = [value for index, value in values if onset is not None and index < onset]
    if shape == "stuck" and len(held) >= SHAPE_POINTS:  # a long level behind it lies evenest
        best = levels(held, SHAPE_POINTS)[1]
    few = len(values) < FALLING_POINTS and track.steps[values[-1][0]] < FEW_STEPS
    if few and shape == "falling":
        shape = "unclear"
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
        last=tuple(numbers[-SHAPE_POINTS:]),
    )


def _shape(
    facts: Facts, track: Track, losses: list[int], values: list[tuple[int, float]]
) -> tuple[Shape, int | None]:
    """The shape of finite losses, and the index it begins at."""
    numbers = [value for _, value in values]
    start, best, end = levels(numbers, max(HEAD, len(numbers) // WINDOWS))
    if _no_gradient(track, losses) and abs(end.middle - start.middle) <= 0.01 * abs(start.middle):
        return "flat-no-gradient", values[0][0]
    still = _still(track, losses, values)
    if still is not None:
        return still
    burst = _burst(values)
    if burst is not None:
        return burst
    alone = not _goes_on(facts, track, values[0][0]) and _beyond_scatter(numbers, end.middle)
    ceiling = numbers[0] if alone else max(numbers[:HEAD])
    risen = 0 < RISEN_RATIO * ceiling <= end.low
    # One low value begins no curve where as low a one comes again: so do noisy batches.
    risen = risen and min(numbers[HEAD:]) > numbers[0]
    if len(numbers) >= SHAPE_POINTS and risen and not falls_from_its_peak(numbers):
        rose: Shape = "never-fell" if only_rises(numbers) else "spiked"
        return rose, _crossing(values, numbers[0])
    if len(numbers) >= SHAPE_POINTS and stayed_high(start, best, end):
        onset = _crossing(values, best.middle)
        since = [value for index, value in values if index >= onset]
        falls_again = len(since) >= SHAPE_POINTS and trend(since) < -RISE_Z
        return ("stepped-up" if falls_again else "spiked"), onset
    stuck = stuck_since(numbers, start, best, end)
    if stuck is None:
        norms = [track.grad_norm[i] if track.has_grad[i] else nan for i, _ in values]
        stuck = kicked_at(numbers, norms)
    if stuck is not None:
        return "stuck", values[stuck][0]
    sloped = _slope(values, start, best, end)
    if sloped[0] == "unclear" and len(numbers) >= SHAPE_POINTS and _no_rate(facts, track, losses):
        return "flat-no-rate", values[0][0]
    if sloped[0] == "unclear" and facts.last.n == 0 and flat_from_start(track, values):
        return "flat-from-start", values[0][0]
    return sloped


def _goes_on(facts: Facts, track: Track, first: int) -> bool:
    """Whether the model is no new one, so that its first loss alone is no ceiling."""
    loaded = facts.markers_of("resume", "checkpoint_loaded")
    return track.steps[first] > LATE_STEP or any(m.attempt == facts.last.n for m in loaded)


def _beyond_scatter(numbers: Sequence[float], level: float) -> bool:
    """Whether the level lies so far above the first number that no scatter of what came later
    reaches down to it: a diffusion model's loss is one draw of noise, however few were as low."""
    logs = [log(value) for value in numbers[1:] if value > 0]
    if len(logs) < SHAPE_POINTS or not 0 < numbers[0] < level:
        return True
    scatter = SIGMA * mad([b - a for a, b in pairwise(logs)]) / sqrt(2)
    return log(level / numbers[0]) >= SCATTERS * scatter


def _still(
    track: Track, losses: list[int], values: list[tuple[int, float]]
) -> tuple[Shape, int] | None:
    """That a loss stands still, and the index it does so from."""
    numbers = [value for _, value in values]
    dead = None
    if not _moves(track, losses):  # a loss of nought with a gradient only looks like nothing
        if all_zero(numbers, track.steps[values[-1][0]]):
            return "zero-throughout", values[0][0]
        if at_chance(numbers) or about_chance(numbers, track.steps[values[-1][0]]):
            return "undecided", values[0][0]
        dead = dead_since(numbers)
    if dead is None and _over_epochs(track, values):
        if undecided(numbers):
            return "undecided", values[0][0]
        if frozen(numbers):
            return "frozen", values[0][0]
    dead = leapt_at(numbers) if dead is None else dead
    dead = nought_since(track, values) if dead is None else dead
    return ("dead-plateau", values[dead][0]) if dead is not None else None


def _over_epochs(track: Track, values: list[tuple[int, float]]) -> bool:
    """Whether each value is of another epoch: means over all data, none of a first few batches."""
    epochs = {track.epoch[index] for index, _ in values}
    return len(epochs) == len(values) and all(isfinite(epoch) for epoch in epochs)


def _burst(values: list[tuple[int, float]]) -> tuple[Shape, int] | None:
    """A loss that left every bound, upwards or downwards, and where."""
    tail = [value for _, value in values[-SHAPE_POINTS:]]
    for row, shape in ((tail, "spiked"), ([-value for value in tail], "unbounded")):
        at = exploded_at(row)
        if at is not None:
            return cast(Shape, shape), values[len(values) - len(tail) + at][0]
    return None


def _slope(
    values: list[tuple[int, float]], start: Level, best: Level, end: Level
) -> tuple[Shape, int | None]:
    """What is no burst and no step: a climb at the end or throughout, a descent, or unclear."""
    numbers = [value for _, value in values]
    rise = rises_at_end(numbers, start, best)
    if rise is not None and rise > RISE_Z:
        return "rising-at-end", _crossing(values, best.middle)
    if rise is not None and rise > TREND_Z:
        return "unclear", None
    short = len(numbers) < SHAPE_POINTS
    jump = jumped_at(numbers) if short else None
    jump = overshot_at(numbers, RISEN_RATIO) if short and jump is None else jump
    jump = turned_back_at(numbers) if short and jump is None else jump
    if jump is not None:
        return "spiked", values[jump][0]
    if climbs(numbers) or only_climbed(numbers, start, best, end):
        return "risen", values[0][0]
    return ("falling" if fell(numbers, start, best, end) else "unclear"), None


def _crossing(values: list[tuple[int, float]], best: float) -> int:
    """Where the curve last left its best level for good."""
    limit = SPIKE_RATIO * best
    first = values[-1][0]
    for index, value in reversed(values):
        if value < limit:
            break
        first = index
    return first


def _no_rate(facts: Facts, track: Track, losses: list[int]) -> bool:
    """Whether the learning rate is printed as nought with every loss: not one of a few decimals,
    which show no small rate either."""
    return all(track.lr[i] == 0 for i in losses) and not _ROUNDED.search(
        facts.text(track.source, track.lines[losses[0]])
    )


def _no_gradient(track: Track, losses: list[int]) -> bool:
    half = losses[len(losses) // 2 :]
    grads = [track.grad_norm[i] for i in half if track.has_grad[i]]
    return len(grads) >= FALLING_POINTS and all(abs(g) <= ZERO_GRADIENT for g in grads)


def _moves(track: Track, losses: list[int]) -> bool:
    """Whether the second half of the run still had gradients."""
    half = losses[len(losses) // 2 :]
    return any(track.has_grad[i] and abs(track.grad_norm[i]) > ZERO_GRADIENT for i in half)
