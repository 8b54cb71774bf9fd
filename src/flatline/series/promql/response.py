"""
Answers as Prometheus's HTTP API writes them (`/api/v1/query`, `/api/v1/query_range`).

Values are decimal text, times are seconds; a scalar's matrix has one series without labels.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import orjson

from flatline.series.promql.evaluate import Matrix
from flatline.series.promql.vector import spelled
from flatline.series.storage import Floats, Series, each

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
    times = np.array([_time(at) for at in found.times.tolist()], dtype=object)
    for row, labels in enumerate(found.labels):
        there = found.present[row]
        texts = _spelled(found.values[row][there])
        values = list(zip(times[there].tolist(), texts, strict=True))
        result.append({"metric": dict(labels), "values": values})
    return {"resultType": "matrix", "result": result}


def at_once(found: Matrix) -> Document:
    """The `data` of an instant query that gives a vector or a scalar."""
    at = _time(float(found.times[0]))
    if found.scalar:
        return {"resultType": "scalar", "result": [at, _text(float(found.values[0, 0]))]}
    result = [
        {"metric": dict(labels), "value": [at, _text(float(found.values[row, 0]))]}
        for row, labels in enumerate(found.labels)
    ]
    return {"resultType": "vector", "result": result}


def of_samples(found: Series) -> Document:
    """The `data` of an instant query that gives a range vector."""
    result = [
        {
            "metric": dict(labels),
            "values": list(zip(map(_time, times.tolist()), _spelled(values), strict=True)),
        }
        for labels, times, values in each(found)
    ]
    return {"resultType": "matrix", "result": result}


def of_text(text: str, at: float) -> Document:
    """The `data` of an instant query that gives a string."""
    return {"resultType": "string", "result": [_time(at), text]}


def _time(at: float) -> float | int:
    return int(at) if at.is_integer() else round(at, 3)


def _spelled(values: Floats) -> list[str]:
    """Each value as the API spells it, most of them by one call of the JSON writer, whose digits
    are the same."""
    if not values.size:
        return []
    text = orjson.dumps(np.ascontiguousarray(values), option=orjson.OPT_SERIALIZE_NUMPY).decode()
    texts = (text[1:-1] + ",").replace(".0,", ",").split(",")[:-1]
    if "e" not in text and "n" not in text:
        return texts
    pairs = zip(texts, values.tolist(), strict=True)
    return [_text(value) if "e" in said or "n" in said else said for said, value in pairs]


def _text(value: float) -> str:
    """With an exponent only below 1e-6 and from 1e21 on (`jsonutil.MarshalFloat`)."""
    if 0 < abs(value) < 1e-6 or 1e21 <= abs(value) < np.inf:
        return repr(value)
    return spelled(value)
