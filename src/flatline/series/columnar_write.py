"""
Series into a columnar folder: what `columnar` reads.

Metric by metric and stretch by stretch, so that what is asked together lies together, and so that
no more than one metric's samples of one stretch are in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from flatline.redact import MASK, mask_value
from flatline.series.columnar import FORMAT, part_name
from flatline.series.columnar_codec import CONSTANT, Coded, encode
from flatline.series.columnar_files import Numbers, write_numbers, write_texts
from flatline.series.matching import Matcher
from flatline.series.storage import NAME, Ints, Labels, Series, Store

PART_SAMPLES = 1 << 19
"""Stored numbers of one file: 2 ms to read, and the least that is read of a metric."""
STRETCH_SAMPLES = 1024
"""Samples of a series in one chunk: 4 h at one in 15 s."""
MOST_STRETCHES = 1024
"""Two samples a millisecond apart in a run of a month would make millions of them."""
_NONE = (("", ""),)
"""Stands for the labels of a series that has none."""
Selection = tuple[Matcher, ...]
OnWritten = Callable[[int, int], None]
"""(selections done, in all)"""


@dataclass(frozen=True, slots=True)
class Written:
    """What a folder came to hold; `span` is from its first sample to its last, in ms."""

    series: int
    samples: int
    span: tuple[int, int] | None


class Writer:
    """One folder, which must not be there yet. Raises OSError."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._strings: dict[str, int] = {}
        self._rows: dict[Labels, int] = {}
        self._labels: list[tuple[int, int, int]] = []
        self._secret: dict[tuple[str, str], str] = {}
        self._alike: dict[Labels, int] = {}
        self._grids: dict[bytes, int] = {}
        self._chunks: dict[str, list[Ints]] = {name: [] for name in FORMAT["chunks"]}
        self._odd: list[Ints] = []
        self._open: dict[int, list[Ints]] = {}
        self._held: dict[int, int] = {}
        self._part: dict[int, int] = {}
        self._parts = 0
        self._count = 0
        self._samples = 0

    def add(self, series: Series) -> None:
        """Samples of one metric in one stretch, later than any of it that were added before."""
        sizes = np.diff(series.offsets)
        kept = np.flatnonzero(sizes)
        if not kept.size:
            return
        rows = np.array([self._row(series.labels[i]) for i in kept.tolist()], dtype=np.int64)
        times_ms = np.rint(series.times * 1000).astype(np.int64)
        grids = np.array(
            [self._grid(times_ms[series.offsets[i] : series.offsets[i + 1]]) for i in kept],
            dtype=np.int64,
        )
        offsets = np.concatenate(([0], np.cumsum(sizes[kept]))).astype(np.int64)
        self._store(rows, grids, encode(series.values, offsets), offsets)
        self._samples += int(offsets[-1])

    def _store(self, rows: Ints, grids: Ints, coded: Coded, offsets: Ints) -> None:
        parts = np.full(rows.size, -1, dtype=np.int64)
        firsts = np.zeros(rows.size, dtype=np.int64)
        for at in np.flatnonzero(coded.kinds != CONSTANT).tolist():
            kind = int(coded.kinds[at])
            size = int(offsets[at + 1] - offsets[at])
            if kind not in self._part:
                self._part[kind], self._parts = self._parts, self._parts + 1
                self._open[kind], self._held[kind] = [], 0
            parts[at], firsts[at] = self._part[kind], self._held[kind]
            self._open[kind].append(coded.numbers[offsets[at] : offsets[at + 1]])
            self._held[kind] += size
            if self._held[kind] >= PART_SAMPLES:
                self._flush(kind)
        columns = (rows, grids, coded.kinds, parts, firsts, coded.scales, coded.units, coded.bases)
        for name, column in zip(FORMAT["chunks"], columns, strict=True):
            self._chunks[name].append(np.asarray(column, dtype=np.int64))
        if coded.odd_bits.size:
            self._odd.append(
                np.stack([coded.odd_chunks + self._count, coded.odd_places, coded.odd_bits])
            )
        self._count += rows.size

    def _flush(self, kind: int) -> None:
        numbers = np.concatenate(self._open.pop(kind))
        part = self._part.pop(kind)
        fits = numbers.size and numbers.min() >= 0 and numbers.max() < 1 << 31
        column: Numbers = numbers.astype(np.int32) if fits else numbers
        write_numbers(self._folder / part_name(part), {"number": column})

    def _row(self, labels: Labels) -> int:
        """The number of a series, its label values masked; two that masking makes alike stay
        apart."""
        row = self._rows.get(labels)
        if row is None:
            row = self._rows[labels] = len(self._rows)
            shown = tuple((name, self._masked(name, value)) for name, value in labels)
            if shown != labels:
                self._alike[shown] = self._alike.get(shown, 0) + 1
                if self._alike[shown] > 1:
                    shown = tuple(
                        (n, v + f"~{self._alike[shown]}" if MASK in v else v) for n, v in shown
                    )
            self._labels += [
                (row, self._string(name), self._string(value)) for name, value in shown or _NONE
            ]
        return row

    def _masked(self, name: str, value: str) -> str:
        known = self._secret.get((name, value))
        if known is None:
            known = self._secret[name, value] = mask_value(name, value)
        return known

    def _string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))

    def _grid(self, times_ms: Ints) -> int:
        return self._grids.setdefault(times_ms.tobytes(), len(self._grids))

    def close(self) -> Written:
        """Writes what is left, and the tables of what there is."""
        for kind in list(self._part):
            self._flush(kind)
        grids = [np.frombuffer(data, dtype=np.int64) for data in self._grids]
        times = np.concatenate(grids) if grids else np.empty(0, dtype=np.int64)
        which = np.repeat(np.arange(len(grids)), [grid.size for grid in grids])
        labels = np.array(self._labels, dtype=np.int64).reshape(-1, 3)
        chunks = {
            name: np.concatenate(found) if found else np.empty(0, dtype=np.int64)
            for name, found in self._chunks.items()
        }
        odd = np.concatenate(self._odd, axis=1) if self._odd else np.empty((3, 0), dtype=np.int64)
        write_texts(self._folder / "strings.parquet", list(self._strings))
        self._table("labels", dict(zip(FORMAT["labels"], labels.T, strict=True)))
        self._table("times", {"grid": which, "time_ms": times})
        self._table("chunks", chunks)
        self._table("odd", dict(zip(FORMAT["odd"], odd, strict=True)))
        span = (int(times.min()), int(times.max())) if times.size else None
        return Written(len(self._rows), self._samples, span)

    def _table(self, name: str, columns: dict[str, Ints]) -> None:
        path = self._folder / f"{name}.parquet"
        slim = {key: _narrow(np.ascontiguousarray(column)) for key, column in columns.items()}
        write_numbers(path, slim, "delta_binary_packed")


def _narrow(column: Ints) -> Numbers:
    fits = not column.size or (column.min() >= -(1 << 31) and column.max() < 1 << 31)
    return column.astype(np.int32) if fits else column.astype(np.int64)


def write_store(
    store: Store,
    folder: Path,
    selections: Sequence[Selection],
    window: tuple[float, float],
    on_written: OnWritten | None = None,
) -> Written:
    """What the selections give within first..last seconds, no series twice. Raises OSError."""
    writer = Writer(folder)
    stretches = _stretches(store, selections, window)
    for number, matchers in enumerate(selections):
        for first, last in stretches:
            writer.add(_within(store.select(matchers, first, last), first, last))
        if on_written is not None:
            on_written(number + 1, len(selections))
    return writer.close()


def _stretches(
    store: Store, selections: Sequence[Selection], window: tuple[float, float]
) -> list[tuple[float, float]]:
    """The window in stretches of STRETCH_SAMPLES of the most frequent series that is found
    early; each begins after the one before it, in whole milliseconds."""
    steps = []
    for matchers in selections[:8]:
        found = store.select(matchers, window[0], min(window[1], window[0] + 3600.0))
        apart = np.diff(found.times)
        if (apart > 0).any():
            steps.append(float(np.median(apart[apart > 0])))
    length_ms = max(1, round((min(steps) if steps else 15.0) * 1000 * STRETCH_SAMPLES))
    first_ms, last_ms = round(window[0] * 1000), round(window[1] * 1000)
    length_ms = max(length_ms, -(-(last_ms - first_ms) // MOST_STRETCHES))
    begins = range(first_ms, last_ms + 1, length_ms)
    return [(begin / 1000.0, min(begin + length_ms - 1, last_ms) / 1000.0) for begin in begins]


def _within(series: Series, first: float, last: float) -> Series:
    """Only the samples of first..last, both included."""
    inside = (series.times >= first) & (series.times <= last)
    if inside.all():
        return series
    kept = np.concatenate(([0], np.cumsum(inside)))[series.offsets]
    return Series(series.labels, series.times[inside], series.values[inside], kept)


def selections_of(store: Store) -> list[Selection]:
    """One for each metric there is."""
    return [(Matcher(NAME, "=", name),) for name in sorted(store.names())]
