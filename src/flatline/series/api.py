"""
Answers of Prometheus's HTTP API as matrices.

What a server sends is not trusted: an answer of another form, or with times nobody asked for, is
refused.  Native histograms are left out and said so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flatline.errors import QueryRejected, SourceError
from flatline.series.promql.evaluate import Matrix
from flatline.series.storage import labels_of

KINDS = ("scalar", "vector", "matrix")


def matrix_of(data: Any, times: Sequence[float], note: Callable[[str], None]) -> Matrix:
    """
    The `data` of an answer at these times, evenly spaced, in seconds.

    `note` is told what was left out.  Raises SourceError where the answer has another form.
    """
    try:
        if data["resultType"] not in KINDS:
            raise QueryRejected(
                f"an answer of type {str(data['resultType'])[:40]!r} has no numbers"
            )
        return _matrix(data["resultType"], data["result"], times, note)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as fault:
        raise SourceError(f"the server's answer is none of Prometheus's API: {fault}") from fault


def _matrix(kind: str, result: Any, times: Sequence[float], note: Callable[[str], None]) -> Matrix:
    rows = [{"metric": {}, "value": result}] if kind == "scalar" else list(result)
    if any("histogram" in row or "histograms" in row for row in rows):
        note("native histograms are not read")
        rows = [row for row in rows if row.get("values") or row.get("value")]
    first, step_s = times[0], times[1] - times[0] if len(times) > 1 else 1.0
    values = np.full((len(rows), len(times)), np.nan)
    present = np.zeros(values.shape, dtype=np.bool_)
    for index, row in enumerate(rows):
        samples = row["values"] if kind == "matrix" else [row["value"]]
        at = [round((float(time) - first) / step_s) for time, _ in samples]
        if at and not (min(at) >= 0 and max(at) < len(times)):
            raise ValueError("a time that was not asked for")
        values[index, at] = [float(value) for _, value in samples]
        present[index, at] = True
    labels = [labels_of({str(k): str(v) for k, v in row["metric"].items()}) for row in rows]
    return Matrix(tuple(labels), np.array(times), values, present, kind == "scalar")


def joined(parts: Sequence[Matrix]) -> Matrix:
    """Windows that follow one another, as one answer; series sorted by their labels."""
    labels = sorted({row for part in parts for row in part.labels})
    index = {row: number for number, row in enumerate(labels)}
    times = np.concatenate([part.times for part in parts])
    values = np.full((len(labels), times.size), np.nan)
    present = np.zeros(values.shape, dtype=np.bool_)
    at = 0
    for part in parts:
        rows = [index[row] for row in part.labels]
        values[rows, at : at + part.times.size] = part.values
        present[rows, at : at + part.times.size] = part.present
        at += part.times.size
    return Matrix(tuple(labels), times, values, present, any(part.scalar for part in parts))
