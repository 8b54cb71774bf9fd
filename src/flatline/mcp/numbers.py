"""Answers of PromQL as a model reads them: a few series, each by its ends and extremes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np

from flatline.collect.asking import Own
from flatline.collect.stores import STEPS, Question, Reply
from flatline.errors import UsageError
from flatline.mcp.pack import LONG, WHERE, gap_said, safe
from flatline.mcp.shapes import Numbers, NumberSeries, RestSeries
from flatline.series.promql.evaluate import Matrix
from flatline.series.storage import Floats, Labels, each
from flatline.triage.select import instant_or_span
from flatline.wording.plots import farthest, ordered, rest, scale, shared_labels, telling
from flatline.wording.rows import instant

SERIES, LABELS, METRICS, GAPS = 12, 8, 12, 3


def question(
    promql: str,
    targets: tuple[str, ...],
    at: str | None,
    start: str | None,
    end: str | None,
    own: Own | None,
) -> Question:
    """At one time, or over a range in 240 steps at most. Raises `UsageError`."""
    if at is not None and (start or end):
        raise UsageError("time asks at one time, start and end over a range; give one of the two")
    first, last = _instant(start, "start"), _instant(end, "end")
    step_s = None
    if first is not None and last is not None:
        step_s = max(1.0, float(-(-(last - first).total_seconds() // STEPS)))
    return Question(promql, targets, first, last, step_s, _instant(at, "time"), own=own)


def _instant(said: str | None, name: str) -> datetime | None:
    return None if said is None else instant_or_span(said, None, name)


def answer(handle: str, reply: Reply) -> Numbers:
    """A few series, the extremes among them, the rest counted; the metrics there are where none
    answers."""
    found = reply.found
    every: Sequence[Labels] = () if isinstance(found, str) else found.labels
    names = telling(every)
    series: list[NumberSeries] = []
    left = None
    if isinstance(found, Matrix):
        kept = farthest(found, SERIES)
        series = [
            _one(_told(found.labels[row], names), found.times[there], found.values[row][there])
            for row in kept
            if (there := found.present[row]).any()
        ]
        left = _rest(found, rest(found, kept), names)
    elif not isinstance(found, str):
        series = [
            _one(_told(labels, names), times, values)
            for at, (labels, times, values) in enumerate(each(found))
            if at < SERIES and len(values)
        ]
    return Numbers(
        handle=handle,
        start=_said(reply.start),
        end=_said(reply.end),
        step_s=reply.step_s,
        engine=reply.engine,
        shared=_told(shared_labels(every)),
        series=series,
        series_in_all=len(every),
        rest=left,
        text=safe(found) if isinstance(found, str) else None,
        metrics=[] if every else [safe(name, WHERE) for name in sorted(reply.metrics)[:METRICS]],
        metrics_in_all=len(reply.metrics),
        gaps=[gap_said(gap) for gap in reply.gaps[:GAPS]],
        asked=safe(reply.meant.text, LONG) if reply.meant.rewritten else None,
        left_out=reply.meant.left_out,
    )


def _told(labels: Labels, names: Sequence[str] | None = None) -> dict[str, str]:
    """The first few labels, those of these names where they are given, places first."""
    kept = [label for label in ordered(labels) if names is None or label[0] in names]
    return {safe(name, WHERE): safe(value, WHERE) for name, value in kept[:LABELS]}


def _rest(found: Matrix, rows: Sequence[int], names: Sequence[str]) -> RestSeries | None:
    if not rows:
        return None
    low, high = scale(found, rows)
    return RestSeries(
        series=len(rows),
        lowest=_value(low),
        highest=_value(high),
        labels=[_told(found.labels[row], names) for row in rows[:SERIES]],
    )


def _one(labels: dict[str, str], times: Floats, values: Floats) -> NumberSeries:
    if len(values) == 1:
        at = _said(float(times[0]))
        return NumberSeries(labels=labels, points=1, value=_value(values[0]), at=at)
    low, high = (int(pick(values)) if not np.isnan(values).all() else 0
                 for pick in (_lowest, _highest))  # fmt: skip
    return NumberSeries(
        labels=labels,
        points=len(values),
        first=_value(values[0]),
        last=_value(values[-1]),
        lowest=_value(values[low]),
        lowest_at=_said(float(times[low])),
        highest=_value(values[high]),
        highest_at=_said(float(times[high])),
        means=[_value(mean) for mean in _means(times, values)],
    )


EIGHTHS = 8


def _means(times: Floats, values: Floats) -> list[float]:
    """The mean of each eighth of the time that has a value; none for a few points."""
    if len(values) < 2 * EIGHTHS:
        return []
    edges = np.linspace(times[0], times[-1], EIGHTHS + 1)[1:-1]
    parts = (part[np.isfinite(part)] for part in np.split(values, times.searchsorted(edges)))
    return [float(part.mean()) if part.size else float("nan") for part in parts]


def _lowest(values: Floats) -> np.intp:
    return np.nanargmin(values)


def _highest(values: Floats) -> np.intp:
    return np.nanargmax(values)


def _value(value: float) -> float | str:
    """JSON has no NaN and no infinity: they are words, as PromQL spells them."""
    if np.isfinite(value):
        return float(f"{value:.6g}")
    return "NaN" if np.isnan(value) else "+Inf" if value > 0 else "-Inf"


def _said(seconds: float) -> str | None:
    try:
        return instant(datetime.fromtimestamp(round(seconds, 3), UTC))
    except (OverflowError, ValueError, OSError):
        return None
