"""PromQL as an investigator asks it: canonical signals give evidence, native names a look."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from flatline.agent.pages import Row
from flatline.collect.stores import Question
from flatline.collect.stores import ask as ask_files
from flatline.errors import QueryRejected, SourceError, UsageError
from flatline.facts import METRICS, Facts
from flatline.signals import SIGNALS
from flatline.triage.select import instant_or_span
from flatline.wording.rows import instant, value_text

if TYPE_CHECKING:
    from flatline.collect.stores import Reply
    from flatline.series.answer import Answer
    from flatline.series.promql.evaluate import Matrix

_NAME = re.compile(r"[a-zA-Z_:][\w:]*")
ROWS = 5_000


def asked(
    facts: Facts,
    paths: tuple[str, ...],
    promql: str,
    at: str | None,
    start: str | None,
    end: str | None,
) -> tuple[list[Row], str | None]:
    """
    Rows, one a series, and a note where something was not done.

    A query of canonical signals is cited as it runs where the data lives; one in the exporters'
    own names answers without evidence.  Raises `UsageError` and `QueryRejected`.
    """
    if at is not None and (start or end):
        raise UsageError("`at` asks at one time, `start` and `end` over a range; give one of them")
    first, last, once = (_time(said, name) for said, name in
                         ((start, "start"), (end, "end"), (at, "at")))  # fmt: skip
    named = {word for word in _NAME.findall(promql) if word in SIGNALS}
    if named:
        answer = facts.series(promql, start=once or first, end=once or last)
        return _canonical(answer)
    if not any(read.kind == METRICS for read in facts.files):
        return [], "no metrics were read of this run"
    reply = ask_files(Question(promql, paths, first, last, None, once))
    note = "native names give no evidence id; ask in canonical signals for what you will claim"
    return _native(reply), note


def _time(said: str | None, name: str) -> datetime | None:
    return None if said is None else instant_or_span(said, None, name)


def _canonical(answer: Answer | None) -> tuple[list[Row], str | None]:
    if answer is None:
        return [], "no metrics were read of this run"
    if answer.missing:
        return [], "; ".join(f"{gap.need}: {gap.reason}" for gap in answer.missing)
    rows: list[Row] = []
    for row in answer.rows[:ROWS]:
        if not row.values:
            continue
        low = min(range(len(row)), key=row.values.__getitem__)
        high = max(range(len(row)), key=row.values.__getitem__)
        unit = f" {answer.unit}" if answer.unit else ""
        said = f"{row.place}: {value_text(row.last)}{unit} at {_said(row.times[-1])}"
        if len(row) > 1:
            said += (
                f"; first {value_text(row.values[0])} at {_said(row.times[0])},"
                f" lowest {value_text(row.values[low])} at {_said(row.times[low])},"
                f" highest {value_text(row.values[high])} at {_said(row.times[high])},"
                f" {len(row)} points"
            )
        try:
            rows.append(Row(said, answer.cite(row, f"{answer.canonical} on {row.place}")))
        except (SourceError, QueryRejected, ValueError):
            rows.append(Row(f"{said} (not citable: nothing tells it from the others)"))
    return rows, None


def _native(reply: Reply) -> list[Row]:
    from flatline.series.promql.evaluate import Matrix
    from flatline.series.storage import each

    found = reply.found
    if isinstance(found, str):
        return [Row(found)]
    if not isinstance(found, Matrix):
        return [
            _ends(dict(labels), list(zip(times.tolist(), values.tolist(), strict=True)))
            for labels, times, values in each(found)
            if len(values)
        ][:ROWS]
    return list(_of_matrix(found))


def _of_matrix(found: Matrix) -> Iterator[Row]:
    for at, labels in enumerate(found.labels[:ROWS]):
        there = found.present[at]
        if there.any():
            points = zip(
                found.times[there].tolist(), found.values[at][there].tolist(), strict=True
            )
            yield _ends(dict(labels), list(points))


def _ends(labels: dict[str, str], points: list[tuple[float, float]]) -> Row:
    named = ", ".join(f"{name}={value}" for name, value in labels.items())
    low, high = min(points, key=lambda p: p[1]), max(points, key=lambda p: p[1])
    said = f"{{{named}}}: {value_text(points[-1][1])} at {_said(points[-1][0])}"
    if len(points) > 1:
        said += (
            f"; first {value_text(points[0][1])}, lowest {value_text(low[1])} at {_said(low[0])},"
            f" highest {value_text(high[1])} at {_said(high[0])}, {len(points)} points"
        )
    return Row(said)


def _said(seconds: float) -> str:
    try:
        return instant(datetime.fromtimestamp(round(seconds, 3), UTC))
    except (OverflowError, ValueError, OSError):
        return f"{seconds:g}"
