"""
What a selection is put together from: raw chunks, loose samples, and what is damaged of them.

Chunks are decoded together, however many series they are of; samples of several origins (a block
and the one it is merged into, mapped chunks and the log) may say the same, and the first wins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from flatline.errors import SourceError
from flatline.model import Gap
from flatline.series.storage import Floats, Ints, Labels, Series
from flatline.series.tsdb.xor import decode

XOR = 1
ENCODINGS = {
    0: "no encoding",
    2: "native histograms",
    3: "native float histograms",
    255: "downsampled aggregates",
}
DECODED_AT_ONCE = 1 << 14
"""Chunks held encoded before they are decoded: about 4 MB of them."""
MAX_SAMPLES = 100_000_000
"""Most samples of a selection: 1.6 GB of them."""

GLANCE = 4096
SORTED_RUNS = 64
"""Ordered stretches that are merged rather than sorted anew."""

RUN = 8
"""Samples from which on a run of a series is copied on its own."""

Bools = NDArray[np.bool_]
Span = tuple[int, int]
"""First and last millisecond, both of it."""


@dataclass(slots=True)
class Damage:
    """What was left out, by reason: how often, and where first."""

    counts: Counter[str] = field(default_factory=Counter)
    where: dict[str, str] = field(default_factory=dict)

    def add(self, reason: str, where: str, count: int = 1) -> None:
        if count:
            self.counts[reason] += count
            self.where.setdefault(reason, where)

    def gaps(self, source: str) -> tuple[Gap, ...]:
        return tuple(
            Gap("metrics", reason if count == 1 else f"{reason} ({count} times)",
                f"{source}/{self.where[reason]}" if self.where[reason] else source)
            for reason, count in self.counts.items()
        )  # fmt: skip


class Selection:
    """Collects chunks and samples of series, within a span; `series` puts them together."""

    def __init__(self, span: Span, damage: Damage) -> None:
        self.span = span
        self._damage = damage
        self._rows: dict[Labels, int] = {}
        self._chunks: list[bytes] = []
        self._of: list[tuple[int, tuple[Span, ...], str]] = []
        self._parts: list[tuple[Ints, Ints, Floats]] = []
        self._size = 0

    def row(self, labels: Labels) -> int:
        return self._rows.setdefault(labels, len(self._rows))

    def chunk(
        self, row: int, encoding: int, data: bytes, where: str, deleted: tuple[Span, ...] = ()
    ) -> bool:
        """A chunk of a series, without its encoding byte, and the spans deleted of it; whether
        it is read."""
        if encoding != XOR:
            name = ENCODINGS.get(encoding, f"chunks of encoding {encoding}")
            self._damage.add(f"{name}: not read", where)
            return False
        self._chunks.append(data)
        self._of.append((row, deleted, where))
        if len(self._chunks) >= DECODED_AT_ONCE:
            self._decode()
        return True

    def samples(self, rows: Ints, times: Ints, values: Floats) -> None:
        """Loose samples: the row, the millisecond and the value of each; behind the chunks that
        came before them."""
        if self._chunks:
            self._decode()
        inside = (times >= self.span[0]) & (times <= self.span[1])
        if not inside.all():
            rows, times, values = rows[inside], times[inside], values[inside]
        self._size += times.size
        if self._size > MAX_SAMPLES:
            raise SourceError(
                f"a selection has more than {MAX_SAMPLES:,} samples; name --start and --end"
            )
        self._parts.append((rows, times, values))

    def _decode(self) -> None:
        found = decode(self._chunks)
        for number in np.flatnonzero(found.bad).tolist():
            self._damage.add("a chunk whose samples cannot be read", self._of[number][2])
        sizes = np.diff(found.offsets)
        rows = np.repeat(np.array([row for row, _, _ in self._of], dtype=np.int64), sizes)
        kept = np.ones(rows.size, dtype=np.bool_)
        for number in (n for n, (_, deleted, _) in enumerate(self._of) if deleted):
            deleted = self._of[number][1]
            part = slice(found.offsets[number], found.offsets[number + 1])
            for first, last in deleted:
                times = found.times[part]
                kept[part] &= (times < first) | (times > last)
        self._chunks, self._of = [], []
        if kept.all():
            self.samples(rows, found.times, found.values)
        else:
            self.samples(rows[kept], found.times[kept], found.values[kept])

    def series(self) -> Series:
        """Series in order of their labels; those without a sample in the span are left out."""
        self._decode()
        labels = sorted(self._rows)
        rank = np.empty(len(labels), dtype=np.int64)
        rank[[self._rows[each] for each in labels]] = np.arange(len(labels))
        laid = _laid_out(self._parts, rank)
        if laid is not None:
            alive = laid[0]
            return Series(tuple(labels[n] for n in alive.tolist()), *laid[1:])
        rows = np.concatenate([part[0] for part in self._parts]) if labels else _NONE
        if not np.array_equal(rank, np.arange(rank.size)):
            rows = rank[rows]
        times = np.concatenate([part[1] for part in self._parts])
        values = np.concatenate([part[2] for part in self._parts])
        rows, times, values = in_order(rows, times, values)
        sizes = np.bincount(rows, minlength=len(labels))
        alive = np.flatnonzero(sizes)
        return Series(
            labels=tuple(labels[n] for n in alive.tolist()),
            times=times / 1000.0,
            values=values,
            offsets=np.concatenate(([0], np.cumsum(sizes[alive]))).astype(np.int64),
        )


_NONE = np.empty(0, dtype=np.int64)


def _laid_out(
    parts: Sequence[tuple[Ints, Ints, Floats]], rank: Ints
) -> tuple[Ints, Floats, Floats, Ints] | None:
    """
    Ranks, seconds, values and offsets of series whose samples stand in order in every part, and
    in a later part later, as in mapped chunks and the rest of the log; None where they do not.

    They are copied run by run: memory that is new costs more than what is done in it.
    """
    numbers, begins, sizes, rows, firsts, lasts = ([] for _ in range(6))
    for number, (row, time, _) in enumerate(parts):
        if not (_rising(row[:GLANCE], time[:GLANCE]) and _rising(row, time)):
            return None
        begin = np.flatnonzero(np.diff(row, prepend=-1))
        end = np.append(begin[1:], row.size)[: begin.size]
        numbers.append(np.full(begin.size, number))
        begins.append(begin)
        sizes.append(end - begin)
        rows.append(rank[row[begin]])
        firsts.append(time[begin])
        lasts.append(time[end - 1])
    if not numbers:
        return None
    row, size = np.concatenate(rows), np.concatenate(sizes)
    if not row.size or row.size * RUN > int(size.sum()):
        return None
    order = np.lexsort((np.concatenate(numbers), row))
    row, size = row[order], size[order]
    same = row[1:] == row[:-1]
    first, last = np.concatenate(firsts)[order], np.concatenate(lasts)[order]
    if np.any(first[1:][same] <= last[:-1][same]):
        return None
    times, values = np.empty(int(size.sum())), np.empty(int(size.sum()))
    at = 0
    runs = zip(np.concatenate(numbers)[order].tolist(), np.concatenate(begins)[order].tolist(),
               size.tolist(), strict=True)  # fmt: skip
    for number, begin, length in runs:
        _, from_times, from_values = parts[number]
        np.divide(from_times[begin : begin + length], 1000.0, out=times[at : at + length])
        values[at : at + length] = from_values[begin : begin + length]
        at += length
    heads = np.flatnonzero(np.concatenate(([True], ~same)))
    ends = np.cumsum(size)
    offsets = np.append(ends[heads] - size[heads], ends[-1])
    return row[heads], times, values, offsets


def in_order(rows: Ints, times: Ints, values: Floats) -> tuple[Ints, Ints, Floats]:
    """
    By row, then by time; of several samples at one time the first that came.

    A log has all series at one time, then all at the next: there, ordering by row alone leaves
    each in the order of time, and numbers of 16 bits are ordered by counting them.
    """
    if _rising(rows[:GLANCE], times[:GLANCE]) and _rising(rows, times):
        return rows, times, values
    order = _by_row(rows)
    if order is not None:
        rows, times, values = rows[order], times[order], values[order]
        if _rising(rows, times):
            return rows, times, values
    order = ordered(rows, times)  # of equals the first stands first still
    return rows[order], times[order], values[order]


def _key(rows: Ints, times: Ints) -> Ints | None:
    """Row and time as one number, where they fit in it."""
    begin, bits = int(times.min()), (int(times.max()) - int(times.min())).bit_length()
    if int(rows.max()).bit_length() + bits > 62 or int(rows.min()) < 0:
        return None
    return (rows << bits) | (times - begin)


def ordered(rows: Ints, times: Ints) -> Ints:
    """
    Where the samples stand, by row and then by time; of several at one time the first that came.

    Both become one number where they fit in it: that is sorted five times as fast as a pair.
    """
    if not rows.size:
        return rows
    key = _key(rows, times)
    if key is None:
        order = np.lexsort((times, rows))
        anew = (np.diff(rows[order]) != 0) | (np.diff(times[order]) != 0)
        return order[np.concatenate(([True], anew))]
    falls = np.count_nonzero(key[1:] < key[:-1])
    if falls < SORTED_RUNS:  # a few ordered stretches are merged, the first that came first
        order = np.argsort(key, kind="stable")
        key = key[order]
        return order[np.concatenate(([True], key[1:] != key[:-1]))]
    order = np.argsort(key)
    key = key[order]
    anew = np.concatenate(([True], key[1:] != key[:-1]))
    return order if anew.all() else np.minimum.reduceat(order, np.flatnonzero(anew))


def _by_row(rows: Ints) -> Ints | None:
    """The order by row, where that is cheap: not for negative or very large numbers."""
    least, most = int(rows.min()), int(rows.max())
    if least < 0 or most >= 1 << 32:
        return None
    order = np.argsort(rows.astype(np.uint16), kind="stable")
    if most >> 16:
        order = order[np.argsort((rows >> 16).astype(np.uint16)[order], kind="stable")]
    return order


def _rising(rows: Ints, times: Ints) -> bool:
    same = rows[1:] == rows[:-1]
    later = times[1:] > times[:-1]
    return bool(np.all((rows[1:] > rows[:-1]) | (same & later)))
