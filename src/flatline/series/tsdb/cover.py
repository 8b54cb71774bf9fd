"""
What the log has again: samples within the spans of mapped chunks of their series.

A server that starts leaves them out too.  Most of a log is such samples: those of series that are
known by then are left out as they are decoded (`Cover`), before anything is put in order; what
remains is looked at once more when it is asked for (`uncovered`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from flatline.series.storage import Ints

Bools = NDArray[np.bool_]
Spans = tuple[Ints, Ints, Ints]
"""The series, and the first and last millisecond, of spans; both belong to a span."""
MAX_REFERENCES = 1 << 22
"""Between the least and the greatest reference of a series: they count up from 1."""


class Cover:
    """Of spans that series, by their reference, hold."""

    def __init__(self, spans: Spans) -> None:
        self.works = spans[0].size > 0 and self._place(*spans)

    def _place(self, refs: Ints, first: Ints, last: Ints) -> bool:
        """The first and last millisecond of each reference in tables; whether they fit."""
        self._least = int(refs.min())
        width = int(refs.max()) - self._least + 1
        self._begin = int(first.min())
        self._bits = (int(last.max()) - self._begin + 1).bit_length()
        if width > MAX_REFERENCES or width.bit_length() + self._bits > 62:
            return False
        at = refs - self._least + 1
        self._starts, self._ends = _merged(self._key(at, first), self._key(at, last))
        at, till = self._starts >> self._bits, (1 << self._bits) - 1
        first = (self._starts & till) + self._begin
        last = (self._ends & till) + self._begin
        same = at[1:] == at[:-1]
        self._from = np.full(width + 2, 1 << 62, dtype=np.int64)  # one free place on either side
        self._until = np.full(width + 2, -(1 << 62), dtype=np.int64)
        self._from[at[::-1]], self._until[at] = first[::-1], last
        begins, ends = _merged(last[:-1][same] + 1, first[1:][same] - 1)
        self._edges = np.stack((begins, ends + 1), axis=1).ravel()
        return True

    def _key(self, at: Ints, times: Ints) -> Ints:
        return (at << self._bits) | (times - self._begin)

    def outside(self, refs: Ints, times: Ints) -> Bools:
        """Which samples lie in no span of their series; the arrays may be a table of references,
        a row for each time."""
        at = refs - (self._least - 1)
        inside: Bools = times >= self._from.take(at, mode="clip")
        inside &= times <= self._until.take(at, mode="clip")
        if self._edges.size:  # at a time at which some series is between two of its spans
            doubtful = np.nonzero(inside & (self._edges.searchsorted(times, "right") & 1 == 1))
            key = self._key(at[doubtful], np.broadcast_to(times, at.shape)[doubtful])
            span = self._starts.searchsorted(key, "right") - 1
            inside[doubtful] = key <= self._ends[span]
        return ~inside


def _merged(first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """Spans in order, those that touch as one."""
    order = np.argsort(first, kind="stable")
    first, reach = first[order], np.maximum.accumulate(last[order])
    apart = first[1:] > reach[:-1] + 1
    anew, ends = np.ones(first.size, dtype=np.bool_), np.ones(first.size, dtype=np.bool_)
    anew[1:], ends[:-1] = apart, apart
    return first[anew], reach[ends]


def uncovered(rows: Ints, times: Ints, spans: Spans) -> Bools:
    """Which samples, in order of row and time, lie outside the spans of their row."""
    row_of, first, last = spans
    if not row_of.size or not rows.size:
        return np.ones(rows.size, dtype=np.bool_)
    begin, end = int(min(times.min(), first.min())), int(max(times.max(), last.max()))
    bits = (end - begin).bit_length()
    if int(rows.max()).bit_length() + bits > 62:
        return np.ones(rows.size, dtype=np.bool_)
    key = (rows << bits) | (times - begin)
    if not np.all(key[1:] > key[:-1]):
        return np.ones(rows.size, dtype=np.bool_)
    starts = np.searchsorted(key, (row_of << bits) | (first - begin), "left")
    stops = np.searchsorted(key, (row_of << bits) | (last - begin), "right")
    size = rows.size + 1
    depth = np.bincount(starts, minlength=size) - np.bincount(stops, minlength=size)
    outside: Bools = np.cumsum(depth[: rows.size]) == 0
    return outside
