"""
Time series in memory: ragged arrays, and the one method a store owes the evaluator.

Times are float64 seconds since 1970, rounded to whole milliseconds when they enter (`seconds`),
as Prometheus stores them: window bounds are computed in integer milliseconds and divided the
same way, so that a sample on a bound is on it exactly.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from flatline.series.matching import Matcher, accepts

Labels = tuple[tuple[str, str], ...]
"""Label pairs sorted by name, without empty values; the metric is the label `__name__`."""
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
NAME = "__name__"

SELECTIONS = 128
"""Selections a store remembers: each is a copy of its samples."""
STALE_BITS = 0x7FF0000000000002
"""The NaN by which Prometheus marks that a series ended (`model/value.StaleNaN`)."""
STALE = float(np.array([STALE_BITS], dtype=np.uint64).view(np.float64)[0])


def seconds(milliseconds: float | int) -> float:
    """The time of a whole number of milliseconds."""
    return round(milliseconds) / 1000.0


def labels_of(pairs: Mapping[str, str]) -> Labels:
    """Labels in their one spelling."""
    return tuple(sorted((name, value) for name, value in pairs.items() if value))


@dataclass(frozen=True, slots=True)
class Series:
    """
    Many series: series i holds `times[offsets[i]:offsets[i + 1]]` and the same of `values`.

    Times rise strictly within a series.  A value may be NaN, or the stale marker.
    """

    labels: tuple[Labels, ...]
    times: Floats
    values: Floats
    offsets: Ints

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: Sequence[int]) -> Series:
        """The same samples of some series, in the order given."""
        parts = [slice(self.offsets[i], self.offsets[i + 1]) for i in rows]
        sizes = [part.stop - part.start for part in parts]
        return Series(
            labels=tuple(self.labels[i] for i in rows),
            times=np.concatenate([self.times[p] for p in parts]) if parts else np.empty(0),
            values=np.concatenate([self.values[p] for p in parts]) if parts else np.empty(0),
            offsets=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        )

    def without_stale(self) -> Series:
        """Without stale markers, as range selectors see it."""
        stale = self.values.view(np.uint64) == STALE_BITS
        if not stale.any():
            return self
        kept = np.concatenate(([0], np.cumsum(~stale)))
        return Series(self.labels, self.times[~stale], self.values[~stale], kept[self.offsets])


class Store(Protocol):
    """Where series lie: memory, a TSDB directory, columnar files."""

    def select(self, matchers: Sequence[Matcher], start: float, end: float) -> Series:
        """Series that satisfy every matcher; samples outside start..end may be left out."""
        ...

    def names(self) -> Mapping[str, frozenset[str]]:
        """Every metric with the label names its series carry, `__name__` not among them."""
        ...

    def labels(self, matchers: Sequence[Matcher]) -> Sequence[Labels]:
        """The labels of the series that satisfy every matcher, without reading samples."""
        ...

    @property
    def span(self) -> tuple[float, float] | None:
        """First and last time any sample has; None where there is none."""
        ...


class MemoryStore:
    """Series held in memory, indexed by metric."""

    def __init__(self, series: Series) -> None:
        self.series = series
        self._selected: dict[tuple[Matcher, ...], Series] = {}
        self._by_name: dict[str, list[int]] = {}
        self._names: dict[str, set[str]] = {}
        for row, labels in enumerate(series.labels):
            name = next((value for key, value in labels if key == NAME), "")
            self._by_name.setdefault(name, []).append(row)
            self._names.setdefault(name, set()).update(key for key, _ in labels if key != NAME)

    def select(self, matchers: Sequence[Matcher], start: float, end: float) -> Series:
        """Everything that matches; memory holds the samples anyway, so bounds are ignored."""
        key = tuple(matchers)
        if len(self._selected) > SELECTIONS:
            self._selected.clear()
        if key not in self._selected:
            self._selected[key] = self.series.take(self._rows(key))
        return self._selected[key]

    def labels(self, matchers: Sequence[Matcher]) -> Sequence[Labels]:
        return [self.series.labels[row] for row in self._rows(tuple(matchers))]

    def _rows(self, matchers: tuple[Matcher, ...]) -> list[int]:
        exact = [m.value for m in matchers if m.name == NAME and m.op == "="]
        rows = self._by_name.get(exact[0], []) if exact else range(len(self.series))
        for matcher in matchers:
            test = accepts(matcher)
            verdicts: dict[str, bool] = {}
            kept = []
            for row in rows:
                value = _value(self.series.labels[row], matcher.name)
                if value not in verdicts:
                    verdicts[value] = test(value)
                if verdicts[value]:
                    kept.append(row)
            rows = kept
        return list(rows)

    def names(self) -> Mapping[str, frozenset[str]]:
        return {name: frozenset(labels) for name, labels in self._names.items()}

    @property
    def span(self) -> tuple[float, float] | None:
        """First and last time any sample has; None where there is none."""
        if not self.series.times.size:
            return None
        return float(self.series.times.min()), float(self.series.times.max())

    def times_s(self) -> Floats:
        """Every time that some sample has, in order."""
        return np.unique(self.series.times)


def _value(labels: Labels, name: str) -> str:
    for key, value in labels:
        if key == name:
            return value
    return ""


class SeriesBuilder:
    """Collects samples in any order; `build` sorts them and drops repeated times."""

    def __init__(self) -> None:
        self._rows: dict[Labels, int] = {}
        self._times: list[array[float]] = []
        self._values: list[array[float]] = []
        self.conflicts = 0
        """Samples dropped because their series already had another value at that time."""

    def __len__(self) -> int:
        return len(self._rows)

    def row(self, labels: Labels) -> int:
        """The number of a series, new or known."""
        row = self._rows.get(labels)
        if row is None:
            row = self._rows[labels] = len(self._times)
            self._times.append(array("d"))
            self._values.append(array("d"))
        return row

    def add(self, row: int, time: float, value: float) -> None:
        """One sample; `time` in seconds, made by `seconds`."""
        self._times[row].append(time)
        self._values[row].append(value)

    def extend(self, row: int, times: Floats, values: Floats) -> None:
        """Many samples of one series at once."""
        self._times[row].frombytes(np.ascontiguousarray(times, dtype=np.float64).tobytes())
        self._values[row].frombytes(np.ascontiguousarray(values, dtype=np.float64).tobytes())

    def build(self) -> Series:
        times, values, sizes = [], [], []
        for row in range(len(self._times)):
            column, kept = self._sorted(row)
            times.append(column)
            values.append(kept)
            sizes.append(len(column))
        return Series(
            labels=tuple(self._rows),
            times=np.concatenate(times) if times else np.empty(0),
            values=np.concatenate(values) if values else np.empty(0),
            offsets=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        )

    def _sorted(self, row: int) -> tuple[Floats, Floats]:
        """One series in order of time; of two samples at one time the first that came stays."""
        times = np.frombuffer(self._times[row], dtype=np.float64)
        values = np.frombuffer(self._values[row], dtype=np.float64)
        if np.all(np.diff(times) > 0):
            return times, values
        order = np.argsort(times, kind="stable")
        times, values = times[order], values[order]
        again = np.concatenate(([False], np.diff(times) == 0))
        kept = values[~again]
        stays = kept[np.cumsum(~again) - 1]
        self.conflicts += int(np.count_nonzero(stays.view(np.uint64) != values.view(np.uint64)))
        return times[~again], kept


def series_of(rows: Iterable[tuple[Mapping[str, str], Sequence[tuple[float, float]]]]) -> Series:
    """Series from (labels, [(seconds, value), ...]) pairs."""
    builder = SeriesBuilder()
    for pairs, samples in rows:
        row = builder.row(labels_of(pairs))
        for time, value in samples:
            builder.add(row, seconds(time * 1000), value)
    return builder.build()


def each(series: Series) -> Iterator[tuple[Labels, Floats, Floats]]:
    """Labels, times and values of every series."""
    for row, labels in enumerate(series.labels):
        part = slice(series.offsets[row], series.offsets[row + 1])
        yield labels, series.times[part], series.values[part]
