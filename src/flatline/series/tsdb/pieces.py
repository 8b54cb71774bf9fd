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
from flatline.series.tsdb.xor import counted, decode_into

XOR = 1
ENCODINGS = {
    0: "no encoding",
    2: "native histograms",
    3: "native float histograms",
    255: "downsampled aggregates",
}
WEIGHED_AT_ONCE = 1 << 14
MAX_SAMPLES = 100_000_000
"""Most samples of a selection: 1.6 GB of them."""

GLANCE = 4096
SORTED_RUNS = 64
"""Ordered stretches that are merged rather than sorted anew."""

STRETCHES = 4096
"""Stretches of loose samples that are laid at once."""
BLOCK = 1 << 16
"""Times that are made seconds at once: they stay in the processor's cache."""

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
        self._of: list[int] = []
        self._where: list[str] = []
        self._deleted: list[tuple[int, Sequence[Span]]] = []
        self._counts: list[tuple[Ints, Bools]] = []
        self._weighed = self._size = 0
        self._loose: list[tuple[Ints, Ints, Floats]] = []

    def row(self, labels: Labels) -> int:
        return self._rows.setdefault(labels, len(self._rows))

    def chunk(
        self, row: int, encoding: int, data: bytes, where: str, deleted: Sequence[Span] = ()
    ) -> bool:
        """A chunk of a series, without its encoding byte, and the spans deleted of it; whether
        it is read."""
        if encoding != XOR:
            name = ENCODINGS.get(encoding, f"chunks of encoding {encoding}")
            self._damage.add(f"{name}: not read", where)
            return False
        if deleted:
            self._deleted.append((len(self._chunks), deleted))
        self._chunks.append(data)
        self._of.append(row)
        self._where.append(where)
        if len(self._chunks) - self._weighed >= WEIGHED_AT_ONCE:
            self._weigh()
        return True

    def _weigh(self) -> None:
        """Counts the samples of the chunks that came last. Raises SourceError for too many."""
        new = counted(self._chunks[self._weighed :])
        self._counts.append(new)
        self._weighed = len(self._chunks)
        self._size += int(new[0].sum())
        if self._size > MAX_SAMPLES:
            raise SourceError(
                f"a selection has more than {MAX_SAMPLES:,} samples; name --start and --end"
            )

    def samples(self, rows: Ints, times: Ints, values: Floats) -> None:
        """Loose samples: the row, the millisecond and the value of each; they count after every
        chunk."""
        inside = (times >= self.span[0]) & (times <= self.span[1])
        if not inside.all():
            rows, times, values = rows[inside], times[inside], values[inside]
        self._loose.append((rows, times, values))
        self._size += rows.size
        self._weigh()

    def series(self) -> Series:
        """
        Series in order of their labels; those without a sample in the span are left out.

        Samples are decoded to where they will stand: memory that is new costs more than what is
        done in it.
        """
        labels = sorted(self._rows)
        rank = np.empty(len(labels), dtype=np.int64)
        rank[[self._rows[each] for each in labels]] = np.arange(len(labels))
        self._weigh()
        counts, bad = (np.concatenate(part) for part in zip(*self._counts, strict=True))
        heads = [np.flatnonzero(np.diff(rows, prepend=-1)) for rows, _, _ in self._loose]
        of, sizes = [np.array(self._of, dtype=np.int64)], [counts]
        for (rows, _, _), begins in zip(self._loose, heads, strict=True):
            of.append(rows[begins])
            sizes.append(np.diff(begins, append=rows.size))
        size = np.concatenate(sizes)
        row = rank[np.concatenate(of)]
        order = np.argsort(row, kind="stable")
        places = np.empty_like(size)
        places[order] = np.cumsum(size[order]) - size[order]
        drawn = _Drawn.of(row, size, len(labels))
        bad |= decode_into(self._chunks, counts, places[: counts.size], drawn.times, drawn.values)
        at = counts.size
        for part, begins in zip(self._loose, heads, strict=True):
            drawn.lay(part, begins, places[at : at + begins.size])
            at += begins.size
        drawn = self._without(drawn, places, counts, bad)
        sizes_of, times, values = drawn.in_order()
        alive = np.flatnonzero(sizes_of)
        offsets = np.concatenate(([0], np.cumsum(sizes_of[alive]))).astype(np.int64)
        return Series(tuple(labels[n] for n in alive.tolist()), times, values, offsets)

    def _without(self, drawn: _Drawn, places: Ints, counts: Ints, bad: Bools) -> _Drawn:
        """Without what cannot be read, what was deleted and what lies outside the span."""
        for number in np.flatnonzero(bad).tolist():
            self._damage.add("a chunk whose samples cannot be read", self._where[number])
        if bad.any() or self._deleted:
            kept = np.ones(drawn.times.size, dtype=np.bool_)
            for number, deleted in self._deleted:
                part = slice(places[number], places[number] + counts[number])
                for first, last in deleted:
                    kept[part] &= (drawn.times[part] < first) | (drawn.times[part] > last)
            for number in np.flatnonzero(bad).tolist():
                kept[places[number] : places[number] + counts[number]] = False
            drawn = drawn.only(kept)
        first, last = self.span
        if drawn.times.size and (drawn.times.min() < first or drawn.times.max() > last):
            drawn = drawn.only((drawn.times >= first) & (drawn.times <= last))
        return drawn


@dataclass(frozen=True, slots=True)
class _Drawn:
    """Samples by series: how many each has, and their milliseconds and values."""

    sizes: Ints
    times: Ints
    values: Floats

    @classmethod
    def of(cls, rows: Ints, sizes: Ints, count: int) -> _Drawn:
        """Room for pieces of such sizes of so many series."""
        every = np.bincount(rows, sizes, count).astype(np.int64)  # exact below 2**53
        total = int(sizes.sum())
        return cls(every, np.empty(total, dtype=np.int64), np.empty(total))

    def lay(self, part: tuple[Ints, Ints, Floats], begins: Ints, places: Ints) -> None:
        """Puts each stretch of loose samples in its place."""
        ends = np.append(begins[1:], part[0].size)[: begins.size]
        for first in range(0, begins.size, STRETCHES):
            some = slice(first, first + STRETCHES)
            to = stretches(places[some], ends[some] - begins[some])
            self.times[to] = part[1][begins[first] : ends[some][-1]]
            self.values[to] = part[2][begins[first] : ends[some][-1]]

    def only(self, kept: Bools) -> _Drawn:
        there = np.flatnonzero(kept)
        sizes = np.diff(there.searchsorted(np.cumsum(self.sizes)), prepend=0)
        return _Drawn(sizes, self.times[there], self.values[there])

    def in_order(self) -> tuple[Ints, Floats, Floats]:
        """Sizes, seconds and values, each series in the order of time; of several samples at one
        time the first."""
        sizes, times, values = _by_time(self.sizes, self.times, self.values)
        seconds = times.view(np.float64)
        for begin in range(0, times.size, BLOCK):
            seconds[begin : begin + BLOCK] = times[begin : begin + BLOCK] / 1000.0
        return sizes, seconds, values


def stretches(begins: Ints, sizes: Ints) -> Ints:
    """Every number of the stretches, one stretch after the other."""
    shift = begins - np.concatenate(([0], np.cumsum(sizes)[:-1]))
    return np.repeat(shift, sizes) + np.arange(int(sizes.sum()))


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
        begins = np.flatnonzero(np.diff(rows, prepend=-1))
        sizes, times, values = _by_time(np.diff(begins, append=rows.size), times, values)
        return np.repeat(rows[begins], sizes), times, values
    order = ordered(rows, times)  # of equals the first stands first still
    return rows[order], times[order], values[order]


def _by_time(sizes: Ints, times: Ints, values: Floats) -> tuple[Ints, Ints, Floats]:
    """Series by series: those that are not in the order of time are put in it, in the arrays
    given; of several samples at one time the first that came stays."""
    later = times[1:] > times[:-1]
    ends = np.cumsum(sizes)
    later[ends[(ends > 0) & (ends < times.size)] - 1] = True
    wrong = np.unique(ends.searchsorted(np.flatnonzero(~later), "right"))
    if not wrong.size:
        return sizes, times, values
    if 2 * int(sizes[wrong].sum()) > times.size:
        rows = np.repeat(np.arange(sizes.size), sizes)
        order = ordered(rows, times)
        return np.bincount(rows[order]), times[order], values[order]
    begins, rows = ends[wrong] - sizes[wrong], np.repeat(np.arange(wrong.size), sizes[wrong])
    there = stretches(begins, sizes[wrong])
    order = ordered(rows, times[there])
    fewer = np.bincount(rows[order], minlength=wrong.size)
    to = stretches(begins, fewer)
    times[to], values[to] = times[there[order]], values[there[order]]
    if to.size == there.size:
        return sizes, times, values
    kept = np.ones(times.size, dtype=np.bool_)
    kept[there], kept[to] = False, True
    sizes = sizes.copy()
    sizes[wrong] = fewer
    return sizes, times[kept], values[kept]


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
