"""Stores written down in Prometheus's test notation."""

from __future__ import annotations

from promqltest import Data

from flatline.series.promql.evaluate import Matrix, Settings, instant, over
from flatline.series.storage import MemoryStore


def store(*lines: str, every: float = 15.0) -> MemoryStore:
    """Series of `metric{label="x"} 1 2+1x3 _ stale`, a sample every so many seconds from 0."""
    data = Data()
    data.load(every, list(lines))
    return MemoryStore(data.builder.build())


def at(query: str, time: float, *lines: str, every: float = 15.0) -> dict[str, float]:
    """The answer at one time, by labels."""
    return named(instant(query, store(*lines, every=every), time))


def named(matrix: Matrix) -> dict[str, float]:
    """Last values by labels, written `name{a=b}`."""
    out = {}
    for row, labels in enumerate(matrix.labels):
        pairs = dict(labels)
        name = pairs.pop("__name__", "")
        inside = ",".join(f"{key}={value}" for key, value in pairs.items())
        out[f"{name}{{{inside}}}"] = float(matrix.values[row, -1])
    return out


__all__ = ["Settings", "at", "instant", "named", "over", "store"]
