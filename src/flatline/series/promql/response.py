"""
Answers as Prometheus's HTTP API writes them (`/api/v1/query`, `/api/v1/query_range`).

Values are decimal text, times are seconds; a scalar's matrix has one series without labels.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flatline.series.promql.evaluate import Matrix
from flatline.series.promql.vector import spelled
from flatline.series.storage import Series, each

Document = dict[str, Any]


def success(data: Document, warnings: Iterable[str] = ()) -> Document:
    """The whole response for an answer."""
    said = list(warnings)
    return {"status": "success", "data": data} | ({"warnings": said} if said else {})


def failure(kind: str, message: str) -> Document:
    """The whole response where there is none; `kind` is an `errorType`, as `bad_data`."""
    return {"status": "error", "errorType": kind, "error": message}


def over_range(found: Matrix) -> Document:
    """The `data` of a range query."""
    result = []
    times = [_time(at) for at in found.times.tolist()]
    for row, labels in enumerate(found.labels):
        pairs = zip(times, found.values[row].tolist(), found.present[row].tolist(), strict=True)
        values = [[at, spelled(value)] for at, value, there in pairs if there]
        result.append({"metric": dict(labels), "values": values})
    return {"resultType": "matrix", "result": result}


def at_once(found: Matrix) -> Document:
    """The `data` of an instant query that gives a vector or a scalar."""
    at = _time(float(found.times[0]))
    if found.scalar:
        return {"resultType": "scalar", "result": [at, spelled(float(found.values[0, 0]))]}
    result = [
        {"metric": dict(labels), "value": [at, spelled(float(found.values[row, 0]))]}
        for row, labels in enumerate(found.labels)
    ]
    return {"resultType": "vector", "result": result}


def of_samples(found: Series) -> Document:
    """The `data` of an instant query that gives a range vector."""
    result = [
        {
            "metric": dict(labels),
            "values": [
                [_time(at), spelled(value)]
                for at, value in zip(times.tolist(), values.tolist(), strict=True)
            ],
        }
        for labels, times, values in each(found)
    ]
    return {"resultType": "matrix", "result": result}


def of_text(text: str, at: float) -> Document:
    """The `data` of an instant query that gives a string."""
    return {"resultType": "string", "result": [_time(at), text]}


def _time(at: float) -> float | int:
    return int(at) if at.is_integer() else round(at, 3)
