"""Progress as curves over one axis, attempts end to end."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from flatline.exhibit.model import Band, Curve, Curves, Mark
from flatline.facts import Facts, Marker, Track
from flatline.model import Verdict

STRETCHES = 300
"""Parts of a curve that keep their extremes: two a pixel on a telephone, one on a desk."""
ATTEMPTS = 8
MARKS = 400
GAP_RATIO = 0.03
"""Room between attempts, as a part of the whole axis."""

Reading = Callable[[int], float | None]
"""The value of the point at an index; None where none was printed."""


@dataclass(frozen=True, slots=True)
class _Stretch:
    """The points of one attempt and where they lie on the axis."""

    track: Track
    span: range
    band: Band
    by_step: bool

    def position(self, index: int) -> float:
        if self.by_step:
            return self.band.start + self.track.steps[index] - self.band.first
        return self.band.start + index - self.span.start


def curves_of(facts: Facts, verdict: Verdict, attempt: int) -> Curves | None:
    """None where fewer than two points were printed."""
    drawn = []
    for tried in facts.attempts:
        track = facts.main_track(tried.n)
        if track is not None:
            drawn.append((tried, track, track.of_attempt(tried.n)))
    left_out, drawn = max(len(drawn) - ATTEMPTS, 0), drawn[-ATTEMPTS:]
    if sum(len(span) for _, _, span in drawn) < 2:
        return None
    by_step = all(_climbs(track, span) for _, track, span in drawn)
    lengths = [
        max(track.steps[span[-1]] - track.steps[span[0]] if by_step else len(span) - 1, 1)
        for _, track, span in drawn
    ]
    gap = GAP_RATIO * sum(lengths)
    stretches, start = [], 0.0
    for (tried, track, span), length in zip(drawn, lengths, strict=True):
        first = track.steps[span[0]] if by_step else 1
        last = track.steps[span[-1]] if by_step else len(span)
        band = Band(tried.n, tried.disposition, start, start + length, first, last)
        stretches.append(_Stretch(track, span, band, by_step))
        start += length + gap
    curves = tuple(filter(None, (_curve(*kind, stretches) for kind in _KINDS)))
    if not any(curve.name == _PACE for curve in curves):
        curves += tuple(filter(None, [_curve(_PACE, "s", _from_times, stretches)]))
    return Curves(
        tuple(dict.fromkeys(source for s in stretches for source in s.track.sources)),
        by_step,
        tuple(s.band for s in stretches),
        curves,
        _marks(facts, verdict, attempt, stretches),
        left_out,
    )


def _climbs(track: Track, span: range) -> bool:
    steps = track.steps[span.start : span.stop]
    return steps[0] >= 0 and all(a <= b for a, b in pairwise(steps))


# --- what is drawn ----------------------------------------------------------------------------


def _loss(track: Track, span: range) -> Reading:
    return lambda i: track.loss[i] if track.has_loss[i] else None


def _grad_norm(track: Track, span: range) -> Reading:
    return lambda i: track.grad_norm[i] if track.has_grad[i] else None


def _throughput(track: Track, span: range) -> Reading:
    return lambda i: _said(track.throughput[i])


def _step_s(track: Track, span: range) -> Reading:
    return lambda i: _said(track.step_s[i])


def _lr(track: Track, span: range) -> Reading:
    return lambda i: _said(track.lr[i])


def _from_times(track: Track, span: range) -> Reading:
    """Seconds a step between two lines, from their times."""

    def reading(i: int) -> float | None:
        if i == span.start:
            return None
        passed, made = track.at[i] - track.at[i - 1], track.steps[i] - track.steps[i - 1]
        if not passed >= 0 or made <= 0 or track.steps[i - 1] < 0:  # NaN where either is undated
            return None
        return round(passed / made, 4)  # clocks in logs say milliseconds

    return reading


def _said(value: float) -> float | None:
    return None if math.isnan(value) else value


_PACE = "time per step"
_KINDS: tuple[tuple[str, str, Callable[[Track, range], Reading]], ...] = (
    ("loss", "", _loss),
    ("gradient norm", "", _grad_norm),
    ("throughput", "as printed", _throughput),
    (_PACE, "s", _step_s),
    ("learning rate", "", _lr),
)


def _curve(
    name: str,
    unit: str,
    read: Callable[[Track, range], Reading],
    stretches: Sequence[_Stretch],
) -> Curve | None:
    """None where fewer than two values were printed, or where a setting never changes."""
    runs, printed = [], 0
    values: set[str] = set()
    for stretch in stretches:
        reading = read(stretch.track, stretch.span)
        points = [
            (stretch.position(i), value) for i in stretch.span if (value := reading(i)) is not None
        ]
        printed += len(points)
        runs.append(thinned(points, STRETCHES))
        values.update(repr(value) for _, value in runs[-1])
    if name == "loss" and any(not s.track.falling for s in stretches):
        name = stretches[0].track.loss_name
    if printed < 2 or (read is _lr and len(values) < 2):
        return None
    return Curve(name, unit, tuple(runs), printed)


def thinned(
    points: Sequence[tuple[float, float]], stretches: int
) -> tuple[tuple[float, float], ...]:
    """The points, or of each stretch the ends of the whole, the extremes and what is no number."""
    if len(points) <= 3 * stretches:
        return tuple(points)
    kept = {0, len(points) - 1}
    for n in range(stretches):
        part = range(n * len(points) // stretches, (n + 1) * len(points) // stretches)
        finite = [i for i in part if math.isfinite(points[i][1])]
        if finite:
            kept |= {
                min(finite, key=lambda i: points[i][1]),
                max(finite, key=lambda i: points[i][1]),
            }
        if len(finite) < len(part):
            kept.add(next(i for i in part if not math.isfinite(points[i][1])))
    return tuple(points[i] for i in sorted(kept))


# --- what is marked ---------------------------------------------------------------------------


def _marks(
    facts: Facts, verdict: Verdict, attempt: int, stretches: Sequence[_Stretch]
) -> tuple[Mark, ...]:
    made: dict[tuple[str, float], Mark] = {}
    onset = _onset(verdict, attempt, stretches)
    if onset is not None:
        made["onset", onset.at] = onset
    for marker in facts.markers_of("checkpoint_saved", "resume", "checkpoint_loaded"):
        stretch = next((s for s in stretches if s.band.attempt == marker.attempt), None)
        at = None if stretch is None else _of_marker(marker, stretch)
        if at is not None:
            saved = marker.kind == "checkpoint_saved"
            mark = Mark("checkpoint" if saved else "resume", at, marker.progress.step)
            made.setdefault((mark.kind, at), mark)
    every = sorted(made.values(), key=lambda m: (m.kind != "onset", m.at))
    return tuple(every[:: len(every) // MARKS + 1])  # the onset is first, and stays


def _of_marker(marker: Marker, stretch: _Stretch) -> float | None:
    step = marker.progress.step
    if step is not None and stretch.by_step:
        at = stretch.band.start + step - stretch.band.first
        return at if stretch.band.start <= at <= stretch.band.end else None
    if stretch.track.source != marker.cite.source:
        return None
    span = stretch.span
    index = bisect_right(stretch.track.lines, marker.cite.line, span.start, span.stop) - 1
    return stretch.position(max(index, span.start))


def _onset(verdict: Verdict, attempt: int, stretches: Sequence[_Stretch]) -> Mark | None:
    stretch = next((s for s in stretches if s.band.attempt == attempt), None)
    if stretch is None or (verdict.onset is None and verdict.onset_step is None):
        return None
    track, span, step = stretch.track, stretch.span, verdict.onset_step
    if step is not None:
        if stretch.by_step:
            at = stretch.band.start + step - stretch.band.first
            return Mark("onset", min(max(at, stretch.band.start), stretch.band.end), step)
        index = next((i for i in span if track.steps[i] >= step), span[-1])
        return Mark("onset", stretch.position(index), step)
    times = [track.at[i] for i in span]
    if verdict.onset is None or any(math.isnan(at) for at in times):
        return None
    index = bisect_left(times, verdict.onset.timestamp())
    return Mark("onset", stretch.position(span[min(index, len(span) - 1)]), None)
