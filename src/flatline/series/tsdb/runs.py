"""
Loose samples put in order by series, in runs: in memory, or in a file without a name.

The log has its samples in the order of time, all series mixed.  A run is a stretch of it ordered
by series, so that those of one are read in one piece; where they do not fit in memory they are
written to the temporary folder, sixteen bytes a sample, and read from there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from io import FileIO

import numpy as np

from flatline.series.storage import Floats, Ints
from flatline.series.tsdb.pieces import in_order, stretches

Loose = tuple[Ints, Ints, Floats]
"""References, milliseconds and values of samples."""
LENGTH = 8_000_000
"""Samples that are put in order at once: what that takes beside them is 300 MB."""
NEAR = 4096
"""Samples of two series that lie closer together than this in a run are read in one piece."""


@dataclass(frozen=True, slots=True)
class _Run:
    """Series `refs[i]` has the samples `begins[i]:begins[i + 1]`, of the arrays or of the file
    from the byte `at` on: all times, then all values."""

    refs: Ints
    begins: Ints
    at: int
    kept: tuple[Ints, Floats] | None


class Runs:
    """Takes samples in order; `of` gives those of some series.  Raises OSError where the
    temporary folder is full."""

    def __init__(self, most: int) -> None:
        """`most` samples are in memory at once."""
        self.total = 0
        self._most = most
        self._parts: list[Loose] = []
        self._held = 0
        self._runs: list[_Run] = []
        self._file: FileIO | None = None
        self._end = 0

    def __del__(self) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, found: Loose) -> None:
        self.total += found[0].size
        self._parts.append(found)
        self._held += found[0].size
        if self._held >= LENGTH or self.total > self._most:
            self.close()

    def close(self) -> None:
        """Puts what came last in order; beyond what memory may hold all goes into the file."""
        if self._parts:
            refs, begins, times, values = self._sorted()
            self._runs.append(_Run(refs, begins, 0, (times, values)))
        if self.total > self._most:
            self._runs = [self._written(run) for run in self._runs]

    def refs(self) -> Ints:
        """Every series that has a sample."""
        every = [run.refs for run in self._runs]
        return np.unique(np.concatenate(every)) if every else np.empty(0, dtype=np.int64)

    def count(self, refs: Ints) -> int:
        """How many samples these series have."""
        held = 0
        for run in self._runs:
            at = np.flatnonzero(np.isin(run.refs, refs))
            held += int((run.begins[at + 1] - run.begins[at]).sum())
        return held

    def of(self, wanted: Ints, rows: Ints) -> Iterator[Loose]:
        """The samples of these series under the rows they are given, run by run, in the order
        the series are named in."""
        for run in self._runs:
            at = np.searchsorted(run.refs, wanted).clip(max=max(0, run.refs.size - 1))
            there = np.flatnonzero(run.refs[at] == wanted) if run.refs.size else at[:0]
            if not there.size:
                continue
            begins, ends = run.begins[at[there]], run.begins[at[there] + 1]
            sizes = ends - begins
            times, values = self._samples(run, begins, ends)
            yield np.repeat(rows[there], sizes), times, values

    def _samples(self, run: _Run, begins: Ints, ends: Ints) -> tuple[Ints, Floats]:
        if run.kept is not None:
            where = stretches(begins, ends - begins)
            return run.kept[0][where], run.kept[1][where]
        assert self._file is not None
        whole = int(run.begins[-1])
        times = _read(self._file, run.at, begins, ends).view(np.int64)
        values = _read(self._file, run.at + 8 * whole, begins, ends).view(np.float64)
        return times, values

    def _written(self, run: _Run) -> _Run:
        """The run with its samples in the file."""
        if run.kept is None:
            return run
        if self._file is None:
            self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - it has no name
        begin = self._end
        for column in run.kept:
            rest = memoryview(column.tobytes())
            while rest:
                rest = rest[self._file.write(rest) :]
        self._end += 16 * run.kept[0].size
        return replace(run, at=begin, kept=None)

    def _sorted(self) -> tuple[Ints, Ints, Ints, Floats]:
        """What is held, by series and then by time, once a time."""
        parts, self._parts, self._held = self._parts, [], 0
        refs, times, values = (np.concatenate(column) for column in zip(*parts, strict=True))
        refs, times, values = in_order(refs, times, values)
        anew = np.flatnonzero(np.concatenate(([True], refs[1:] != refs[:-1]))[: refs.size])
        begins = np.concatenate((anew, [refs.size])).astype(np.int64)
        return refs[anew], begins, times, values.astype(np.float64, copy=False)


def _read(file: FileIO, at: int, begins: Ints, ends: Ints) -> Ints:
    """The eight bytes of each sample of the stretches; neighbours in one read."""
    import os

    order = np.argsort(begins, kind="stable")
    found: dict[int, bytes] = {}
    group: list[int] = []

    def fetch() -> None:
        first, last = int(begins[group[0]]), int(ends[group[-1]])
        piece = os.pread(file.fileno(), 8 * (last - first), at + 8 * first)
        for number in group:
            found[number] = piece[
                8 * (int(begins[number]) - first) : 8 * (int(ends[number]) - first)
            ]

    for number in order.tolist():
        if group and int(begins[number]) - int(ends[group[-1]]) > NEAR:
            fetch()
            group = []
        group.append(number)
    fetch()
    return np.frombuffer(b"".join(found[n] for n in range(begins.size)), dtype=np.int64)
