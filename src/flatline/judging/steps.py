"""
Loss, throughput, step time and gradient norm of two runs at the same steps.

Steps are compared one by one: what a step asks for then is the same in both.  Left out are the
first steps of each, and those that saved or paid for a checkpoint.  Medians carry the comparison;
the noise is what the two runs wander by themselves, and never less than what repeats differ by.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import isfinite, log
from statistics import median
from typing import Literal

from flatline.facts import Facts, Track
from flatline.judging.throughput import (
    AFTER_CHECKPOINT,
    Pace,
    Slow,
    checkpoint_steps,
    level_cites,
    pace,
)
from flatline.model import Cite, DerivedCite, Measure
from flatline.series.phases import phases
from flatline.series.spread import SIGMA, mad

METHOD = "equal-steps@1"
PINNED, ELSEWHERE = 0.0065, 0.02
"""Repeats on the same nodes differ by 0.3 to 1 %, of which the middle is taken, on other nodes by
2 % (maxtext-slurm, its notes on sweeps). A fault needs a second witness beside either."""
WARM_UP = 3
"""Printed points of each run that are left out: they compile, fill caches and open files."""
WARM_SHARE = 0.1
"""Of a series without steps that is left out likewise."""
LEAST = 12
"""Fewer equal steps show nothing."""
BLOCKS = 8
"""Parts of a run whose medians tell how much it wanders."""
WANDER = 2.0
"""Standard deviations of those medians within which a difference is the runs' own."""
MOST_NOISE = 0.5
"""A loss half as high again is another loss, however the young runs swung."""
EARLY = 3.0
"""Standard deviations of what the losses lie apart by while both runs are young."""
LOSS_NOISE = 0.02
"""Losses of one configuration at one step lie nearer than this part of them once smoothed, the
order of the data aside."""

Name = Literal["throughput", "step time", "loss", "gradient norm"]
NAMES: tuple[Name, ...] = ("throughput", "step time", "loss", "gradient norm")
Axis = Literal["steps", "epochs"]
Column = Mapping[int, tuple[float, int]]
"""Value and index of the point, by step."""


@dataclass(frozen=True, slots=True)
class Columns:
    """One run's track with what it prints by step."""

    track: Track
    columns: Mapping[Name, Column]
    axes: Mapping[Name, Axis]
    """What equal points of each are equal in; of epochs, thousandths are counted."""


def measures(ours: Facts, theirs: Facts, same_hosts: bool) -> tuple[Measure, ...]:
    """What both runs print, compared: by the logs at equal steps, else by metrics."""
    floor = PINNED if same_hosts else ELSEWHERE
    made: list[Measure] = []
    mine, other = columns(ours), columns(theirs)
    if mine is not None and other is not None:
        for name in (name for name in NAMES if mine.axes[name] == other.axes[name]):
            found = _compared(ours, theirs, mine, other, name, floor)
            if found is not None and mine.axes[name] == "epochs":
                found = replace(found, since_step=None, axis="epochs")
            made += [] if found is None else [found]
    if not any(one.name in ("throughput", "step time") for one in made):
        told = _by_metrics(ours, theirs, floor)
        made += [] if told is None else [told]
    return tuple(made)


# --- what a log prints by step ------------------------------------------------------------------


def columns(facts: Facts) -> Columns | None:
    """What the last attempt prints by step; None where its steps are not printed in order."""
    return facts.memo("steps.columns", _read)


def _read(facts: Facts) -> Columns | None:
    track = facts.main_track(facts.last.n)
    if track is None:
        return None
    span = track.of_attempt(facts.last.n)
    steps = [track.steps[at] for at in span if track.steps[at] >= 0]
    if not len(span) or any(a > b for a, b in pairwise(steps)):
        return None
    calm = _calm(facts, track, span)
    taken = {
        "loss": _taken(track, span, track.loss, lambda value: True),
        "gradient norm": _taken(track, span, track.grad_norm, lambda value: True),
        "throughput": _taken(track, calm, track.throughput, lambda value: value > 0),
        "step time": _taken(track, calm, track.step_s, lambda value: value > 0),
    }
    if not taken["step time"][1] and not taken["throughput"][1]:
        taken["step time"] = "steps", _by_clock(track, calm)
    columns: dict[Name, Column] = {name: taken[name][1] for name in NAMES}
    return Columns(track, columns, {name: taken[name][0] for name in NAMES})


def _calm(facts: Facts, track: Track, span: range) -> list[int]:
    """The points that neither warm up nor pay for a save."""
    saved = checkpoint_steps(facts)
    out = []
    for before, at in pairwise(span):
        since = bisect_right(saved, track.steps[before] - 1 - AFTER_CHECKPOINT)
        paid = since < len(saved) and saved[since] <= track.steps[at]
        if at - span.start >= WARM_UP and not paid:
            out.append(at)
    return out


def _taken(
    track: Track, span: Sequence[int], values: Sequence[float], fit: Callable[[float], bool]
) -> tuple[Axis, Column]:
    """A quantity by its points' steps, or by the thousandths of epochs where they carry no step
    (Hugging Face's Trainer); empty where they carry neither."""
    said = [at for at in span if isfinite(values[at]) and fit(values[at])]
    if all(track.steps[at] >= 0 for at in said):
        return "steps", {track.steps[at]: (values[at], at) for at in said}
    if all(isfinite(track.epoch[at]) for at in said):
        return "epochs", {round(1000 * track.epoch[at]): (values[at], at) for at in said}
    return "steps", {}


def _by_clock(track: Track, calm: Sequence[int]) -> Column:
    """Seconds a step between two dated lines that follow each other."""
    out: dict[int, tuple[float, int]] = {}
    for at in calm:
        steps = track.steps[at] - track.steps[at - 1]
        took = track.at[at] - track.at[at - 1]
        if steps > 0 and took > 0:
            out[track.steps[at]] = took / steps, at
    return out


# --- comparing ----------------------------------------------------------------------------------


def _compared(
    ours: Facts, theirs: Facts, mine: Columns, other: Columns, name: Name, floor: float
) -> Measure | None:
    a, b = mine.columns[name], other.columns[name]
    common = sorted(a.keys() & b.keys())
    if len(common) < LEAST:
        return _levels(ours, theirs, mine, other, name, floor)
    if name == "loss":
        return _losses(ours, theirs, mine, other, common)
    mean_a, mean_b = [a[step][0] for step in common], [b[step][0] for step in common]
    ratios = [_change(x, y) for x, y in zip(mean_a, mean_b, strict=True)]
    change = median(ratios)
    wander = _wander(ratios)
    noise = max(floor if name != "gradient norm" else 0.1, wander)
    cites = _cites(ours, theirs, mine, other, name, common, change)
    first, last = common[0], common[-1]
    return Measure(
        name=name, unit=_unit(name), ours=median(mean_a), theirs=median(mean_b),
        change_ratio=change, noise_ratio=noise, points=len(common), steps=(first, last),
        differs=abs(change) > noise, cites=cites, since_step=_since(common, ratios, noise),
        wander_ratio=wander,
    )  # fmt: skip


def _levels(
    ours: Facts, theirs: Facts, mine: Columns, other: Columns, name: Name, floor: float
) -> Measure | None:
    """Where the runs share too few steps: speeds by their level; a loss at another step says
    nothing."""
    a = [mine.columns[name][step] for step in sorted(mine.columns[name])]
    b = [other.columns[name][step] for step in sorted(other.columns[name])]
    if name in ("loss", "gradient norm") or min(len(a), len(b)) < LEAST:
        return None
    xs, ys = [value for value, _ in a], [value for value, _ in b]
    change = _change(median(xs), median(ys))
    wander = max(_wander([_change(x, median(xs)) for x in xs]),
                 _wander([_change(y, median(ys)) for y in ys]))  # fmt: skip
    noise = max(floor, wander)
    lines = (ours.point(mine.track, _middle(a)).cite, theirs.point(other.track, _middle(b)).cite)
    cites = (*lines, _derived(name, lines, change))
    return Measure(name, _unit(name), median(xs), median(ys), change, noise, min(len(a), len(b)),
                   None, abs(change) > noise, cites, None, wander)  # fmt: skip


def _losses(
    ours: Facts, theirs: Facts, mine: Columns, other: Columns, common: list[int]
) -> Measure:
    """The smoothed difference in the last third beside what single steps scatter by."""
    a, b = mine.columns["loss"], other.columns["loss"]
    apart = [a[step][0] - b[step][0] for step in common]
    late = range(2 * len(common) // 3, len(common))
    scale = max(median(abs(b[common[n]][0]) for n in late), 1e-9)
    change = median(apart[n] for n in late) / scale
    noise = min(MOST_NOISE, max(LOSS_NOISE, _early(apart, scale)))
    since = _since(common, [value / scale for value in apart], noise)
    late_steps = [common[n] for n in late]
    return Measure(
        name="loss", unit="", ours=median(a[step][0] for step in late_steps),
        theirs=median(b[step][0] for step in late_steps), change_ratio=change, noise_ratio=noise,
        points=len(common), steps=(common[0], common[-1]), differs=abs(change) > noise,
        cites=_cites(ours, theirs, mine, other, "loss", late_steps, change), since_step=since,
    )  # fmt: skip


def _early(apart: Sequence[float], scale: float) -> float:
    """What the losses stood apart by while both were sound: other seeds lie apart from the
    start."""
    first = apart[: max(4, len(apart) // 4)]
    return EARLY * float(SIGMA * mad(first)) / scale


def _since(steps: Sequence[int], ratios: Sequence[float], noise: float) -> int | None:
    """The first step of the phase from which on the runs stand apart; None from the first on."""
    parts = phases(ratios, effect=0.0)
    away = [part for part in parts if abs(part.level) > noise]
    if not away or away[0].first == 0 or away[-1] is not parts[-1]:
        return None
    return steps[away[0].first]


def _wander(ratios: Sequence[float]) -> float:
    """How far the medians of parts of the run stray: a repeat is no nearer to a run than its own
    parts are."""
    count = BLOCKS if len(ratios) >= 2 * BLOCKS else 4
    cuts = [n * len(ratios) // count for n in range(count + 1)]
    return WANDER * float(SIGMA * mad([median(ratios[a:b]) for a, b in pairwise(cuts)]))


def _change(ours: float, theirs: float) -> float:
    return ours / theirs - 1.0 if theirs else 0.0 if ours == theirs else 1.0


def _unit(name: Name) -> str:
    return {"throughput": "as logged", "step time": "s"}.get(name, "")


# --- what says so -------------------------------------------------------------------------------


def _middle(column: Sequence[tuple[float, int]]) -> int:
    """The point whose value is the median."""
    return sorted(column)[len(column) // 2][1]


def _cites(
    ours: Facts, theirs: Facts, mine: Columns, other: Columns, name: Name,
    steps: Sequence[int], change: float,
) -> tuple[Cite, ...]:  # fmt: skip
    """The step that changed as most did, in both logs, and the whole comparison as a value."""
    a, b = mine.columns[name], other.columns[name]
    levels = median(a[step][0] for step in steps), median(b[step][0] for step in steps)

    def far(step: int) -> float:
        return max(
            abs(_change(column[step][0], level))
            for column, level in zip((a, b), levels, strict=True)
        )

    typical = min(steps, key=far)
    lines = (
        ours.point(mine.track, a[typical][1]).cite,
        theirs.point(other.track, b[typical][1]).cite,
    )
    return (*lines, _derived(name, lines, change))


def _derived(name: Name, inputs: tuple[Cite, ...], change: float) -> DerivedCite:
    return DerivedCite(
        method=METHOD, inputs=inputs, params=(("quantity", name),), value=round(change, 6),
        text=f"{name}: {change:+.2%} against the baseline", unit="ratio", tolerance=1e-5,
    )  # fmt: skip


# --- metrics ------------------------------------------------------------------------------------


def _by_metrics(ours: Facts, theirs: Facts, floor: float) -> Measure | None:
    """Pace that the program exports, or the log's clock where steps are not printed."""
    a, b = pace(ours), pace(theirs)
    if a is None or b is None or a.unit != b.unit:
        return None
    first, last = _settled(a), _settled(b)
    if min(len(first.values), len(last.values)) < LEAST:
        return None
    x, y = median(first.values), median(last.values)
    wander = max(_wander([log(v / x) for v in first.values]),
                 _wander([log(v / y) for v in last.values]))  # fmt: skip
    noise = max(floor, wander)
    change = _change(x, y)
    cites = (*_level(ours, first, x), *_level(theirs, last, y))
    if not cites:
        return None
    derived = _derived("throughput", cites, change)
    return Measure("throughput", a.unit, x, y, change, noise,
                   min(len(first.values), len(last.values)), None, abs(change) > noise,
                   (*cites, derived), None, wander)  # fmt: skip


def _settled(known: Pace) -> Pace:
    cut = int(len(known.values) * WARM_SHARE)
    return Pace(known.times[cut:], known.values[cut:], known.unit, known.signal, known.track,
                known.indexes[cut:])  # fmt: skip


def _level(facts: Facts, known: Pace, level: float) -> tuple[Cite, ...]:
    whole = Slow(*known.span, level, 1.0, (0, len(known.values) - 1))
    return level_cites(facts, known, whole)
