"""
What the log has again: samples within the spans of mapped chunks of their series.

A server that starts leaves them out too.  Most of a log is such samples: those of series that are
known by then are left out as they are decoded (`Cover`), before anything is put in order; what
remains is looked at once more when it is asked for (`uncovered`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from flatline.series.storage import Ints
from flatline.series.tsdb.pieces import Span

Bools = NDArray[np.bool_]
MAX_REFERENCES = 1 << 22
"""Between the least and the greatest reference of a series: they count up from 1."""


class Cover:
    """Spans by the reference of a series; both milliseconds belong to a span."""

    def __init__(self, spans: Mapping[int, Sequence[Span]]) -> None:
        merged = [(ref, *span) for ref in sorted(spans) for span in _merged(spans[ref])]
        table = np.array(merged, dtype=np.int64).reshape(-1, 3)
        self._ref, self._first, self._last = table.T
        self.works = bool(merged) and self._place()

    def _place(self) -> bool:
        """The first and last millisecond of each reference in tables; whether they fit."""
        refs, begins = np.unique(self._ref, return_index=True)
        self._least = int(refs[0])
        width = int(refs[-1]) - self._least + 1
        self._begin = int(self._first.min())
        self._bits = (int(self._last.max()) - self._begin + 1).bit_length()
        if width > MAX_REFERENCES or width.bit_length() + self._bits > 62:
            return False
        at = refs - self._least + 1
        ends = np.append(begins[1:], self._ref.size) - 1
        self._from = np.full(width + 2, 1 << 62, dtype=np.int64)  # one free place on either side
        self._until = np.full(width + 2, -(1 << 62), dtype=np.int64)
        self._from[at], self._until[at] = self._first[begins], self._last[ends]
        self._starts, self._ends = (self._key(self._ref - self._least + 1, column)
                                    for column in (self._first, self._last))  # fmt: skip
        same = self._ref[1:] == self._ref[:-1]
        gaps = zip((self._last[:-1][same] + 1).tolist(), self._first[1:][same].tolist(),
                   strict=True)  # fmt: skip
        between = _merged([(first, last - 1) for first, last in gaps if first < last])
        self._edges = np.array([edge for first, last in between for edge in (first, last + 1)],
                               dtype=np.int64)  # fmt: skip
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


def _merged(spans: Sequence[Span]) -> list[Span]:
    """Spans in order, those that touch as one."""
    found: list[Span] = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(last, found[-1][1])
        else:
            found.append((first, last))
    return found


def uncovered(rows: Ints, times: Ints, spans: Mapping[int, Sequence[Span]]) -> Bools:
    """Which samples, in order of row and time, lie outside the spans of their row."""
    named = [(row, *span) for row, found in spans.items() for span in found]
    if not named or not rows.size:
        return np.ones(rows.size, dtype=np.bool_)
    row_of, first, last = (np.array(column, dtype=np.int64) for column in zip(*named, strict=True))
    begin, end = int(min(times.min(), first.min())), int(max(times.max(), last.max()))
    bits = (end - begin).bit_length()
    if int(rows.max()).bit_length() + bits > 62:
        return np.ones(rows.size, dtype=np.bool_)
    key = (rows << bits) | (times - begin)
    if not np.all(key[1:] > key[:-1]):
        return np.ones(rows.size, dtype=np.bool_)
    starts = np.searchsorted(key, (row_of << bits) | (first - begin), "left")
    stops = np.searchsorted(key, (row_of << bits) | (last - begin), "right")
    depth = np.zeros(rows.size + 1, dtype=np.int32)
    np.add.at(depth, starts, 1)
    np.add.at(depth, stops, -1)
    outside: Bools = np.cumsum(depth[: rows.size], dtype=np.int32) == 0
    return outside
