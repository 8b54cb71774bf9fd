"""
From ends of matches to the segments they stand in.

An engine reports where matches end, some of them a million times a second.  Where they are few,
line and segment are looked for around each; where they are dense, those of a whole block are
found at once with NumPy.  Both give the same hits.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from flatline.logs.newlines import KIB_BITS
from flatline.logs.reading import Span

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ID_BITS = 12
"""With an offset within a block 30 bits, which Python keeps in one digit."""
ID_MASK = (1 << ID_BITS) - 1
TEXT_BYTES = 64 << 10
"""Of a longer segment a hit holds what stands around the match."""
HEAD_BYTES = 256
DENSE = 512
"""Matches in a block from which looking for all at once is faster."""
_NEVER = 1 << 62
_MOST_COMBINATIONS = 1 << 16


class Hit(NamedTuple):
    """
    A segment that patterns may match: a named tuple, for it is made a million times.

    `line` and `segment` count from 1 and 0; `text` is the segment without escapes; `ids` are the
    patterns' numbers, sorted and distinct.  Where `segment` is not 0, `head` is the beginning of
    the physical line, which carries its label.  A segment beyond 64 KiB may give several hits.
    """

    line: int
    segment: int
    text: bytes
    ids: tuple[int, ...]
    head: bytes = b""


class Unfinished:
    """What of a line stood in earlier blocks: its carriage returns and, up to the first of them,
    its beginning; None between lines."""

    def __init__(self, segments: int = 0, head: bytes | None = None) -> None:
        self.segments = segments
        self.head = head

    def after(self, data: bytes, end: int) -> Unfinished:
        """The state behind the first `end` bytes of a block."""
        if data.endswith(b"\n", 0, end):
            return self if self.head is None else Unfinished()
        start = data.rfind(b"\n", 0, end) + 1
        segments = data.count(b"\r", start, end)
        if not start and self.head is not None:
            return Unfinished(self.segments + segments, self.head)
        return Unfinished(segments, _label(data, start))


class Resolver:
    """Turns sorted `end << ID_BITS | pattern` values of a block into hits."""

    def __init__(self, groups: Sequence[tuple[int, ...]]) -> None:
        """`groups` are the ids each pattern of the engine stands for."""
        self._single = tuple(groups)
        self._several: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._packed: dict[int, tuple[int, ...]] = {}

    def hits(self, span: Span, flat: bytes, ends: list[int], before: Unfinished) -> list[Hit]:
        """`flat` is the span's data with every carriage return as a newline; it is the very
        same object where there is none."""
        if len(ends) >= DENSE and "numpy" in sys.modules:
            found = self._dense(span, flat, ends, before)
            if found is not None:
                return found
        return self._sparse(span, flat, ends, before)

    def _ids(self, numbers: tuple[int, ...]) -> tuple[int, ...]:
        ids = self._several.get(numbers)
        if ids is None:
            if len(self._several) >= _MOST_COMBINATIONS:
                self._several.clear()
            known = {one for number in numbers for one in self._single[number]}
            ids = self._several[numbers] = tuple(sorted(known))
        return ids

    def _unpacked(self, packed: int) -> tuple[int, ...]:
        """`_ids` of numbers in one integer, `ID_BITS` each behind a 1, which is gathered and
        looked up faster than a tuple."""
        numbers, rest = [], packed
        while rest > 1:
            numbers.append(rest & ID_MASK)
            rest >>= ID_BITS
        if len(self._packed) >= _MOST_COMBINATIONS:
            self._packed.clear()
        ids = self._packed[packed] = self._ids(tuple(reversed(numbers)))
        return ids

    def _sparse(self, span: Span, flat: bytes, ends: list[int], before: Unfinished) -> list[Hit]:
        data, line, passed, last = span.data, span.first_line, span.newlines.passed, span.end
        drawn = _Drawn(data, before) if flat is not data or before.segments else None
        known, find, rfind, count = self._packed, flat.find, flat.rfind, data.count
        new = tuple.__new__
        hits: list[Hit] = []
        add = hits.append
        ends.append(_NEVER)
        start = a = b = 0
        limit = -1
        packed = 0  # the numbers of the segment whose matches are gathered
        for value in ends:
            if value <= limit:
                packed = packed << ID_BITS | value & ID_MASK
                continue
            if packed:
                ids = known.get(packed) or self._unpacked(packed)
                kib = start >> KIB_BITS
                at_line = line + passed[kib] + count(b"\n", kib << KIB_BITS, start)
                if drawn is None:
                    add(new(Hit, (at_line, 0, data[a:b], ids, b"")))
                else:
                    add(Hit(at_line, drawn.segment(start), data[a:b], ids, drawn.head))
            if value == _NEVER:
                break
            end = value >> ID_BITS
            start = a = rfind(b"\n", 0, end - 1) + 1
            b = find(b"\n", end - 1)
            if b < 0 or b > last:
                b = last
            if b - a > TEXT_BYTES:
                a, b = max(a, end - TEXT_BYTES // 2), min(b, end + TEXT_BYTES // 2)
            limit = b << ID_BITS | ID_MASK
            packed = 1 << ID_BITS | value & ID_MASK
        return hits

    def _dense(
        self, span: Span, flat: bytes, ends: list[int], before: Unfinished
    ) -> list[Hit] | None:
        """None where a segment is too long to be given whole."""
        import numpy as np

        values = np.array(ends, dtype=np.int64)
        breaks = np.flatnonzero(np.frombuffer(flat, dtype=np.uint8, count=span.end) == 0x0A)
        number = np.searchsorted(breaks, (values >> ID_BITS) - 1)
        first = np.flatnonzero(np.diff(number, prepend=-1))
        number = number[first]
        bounds = np.concatenate(([-1], breaks, [span.end]))
        starts, stops = bounds[number] + 1, bounds[number + 1]
        if int((stops - starts).max()) > TEXT_BYTES:
            return None
        data = span.data
        texts = [data[a:b] for a, b in zip(starts.tolist(), stops.tolist(), strict=True)]
        ids = self._grouped((values & ID_MASK).tolist(), [*first.tolist(), len(ends)])
        if flat is data and not before.segments:
            lines = (number + span.first_line).tolist()
            new = tuple.__new__
            return [
                new(Hit, (line, 0, text, one, b""))
                for line, text, one in zip(lines, texts, ids, strict=True)
            ]
        lines, segments, heads = _drawn_places(span, breaks, number, before)
        return list(map(Hit, lines, segments, texts, ids, heads))

    def _grouped(self, numbers: list[int], bounds: list[int]) -> list[tuple[int, ...]]:
        single, several = self._single, self._ids
        if len(bounds) > len(numbers):
            return [single[number] for number in numbers]
        return [
            single[numbers[a]] if b - a == 1 else several(tuple(numbers[a:b]))
            for a, b in pairwise(bounds)
        ]


class _Drawn:
    """Counts the segments of lines that draw over themselves, for places in ascending order."""

    def __init__(self, data: bytes, before: Unfinished) -> None:
        self._data = data
        self._at = 0
        self._segments = before.segments
        self._head = _label(data, 0) if before.head is None else before.head

    def segment(self, start: int) -> int:
        """The number of the segment that begins at `start`."""
        line = self._data.rfind(b"\n", self._at, start) + 1
        if line:
            self._segments, self._at, self._head = 0, line, _label(self._data, line)
        self._segments += self._data.count(b"\r", self._at, start)
        self._at = start
        return self._segments

    @property
    def head(self) -> bytes:
        return self._head if self._segments else b""


def _label(data: bytes, line: int) -> bytes:
    return data[line : line + HEAD_BYTES].partition(b"\r")[0]


def _drawn_places(
    span: Span, breaks: NDArray[np.int64], number: NDArray[np.int64], before: Unfinished
) -> tuple[list[int], list[int], Sequence[bytes]]:
    """(line, segment, head) of the segments numbered so, where breaks are of both kinds."""
    import numpy as np

    newline = np.frombuffer(span.data, dtype=np.uint8)[breaks] == 0x0A
    passed = np.concatenate(([0], np.cumsum(newline)))
    behind = np.where(newline, np.arange(1, len(breaks) + 1), 0)
    line_begin = np.concatenate(([0], np.maximum.accumulate(behind)))[number]
    segments = number - line_begin + np.where(line_begin == 0, before.segments, 0)
    places = np.concatenate(([0], breaks + 1))[line_begin].tolist()
    heads: dict[int, bytes] = {} if before.head is None else {0: before.head}
    for place in places:
        if place not in heads:
            heads[place] = _label(span.data, place)
    listed = segments.tolist()
    return (
        (span.first_line + passed[number]).tolist(),
        listed,
        [heads[place] if segment else b"" for place, segment in zip(places, listed, strict=True)],
    )
