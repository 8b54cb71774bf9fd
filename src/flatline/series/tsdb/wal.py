"""
The write-ahead log: segments of pages, records across them, samples within records.

A page that does not match its checksum is skipped and the next is read: a server that starts
again would throw the rest of the log away.  Records of samples are decoded in lockstep, as chunks
are.  Layouts: `tsdb/docs/format/wal.md` and `tsdb/record/record.go`.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from flatline.series.storage import Floats, Ints, Labels
from flatline.series.tsdb.files import ReadOnly, crc32c, listed
from flatline.series.tsdb.index import uvarint, varint
from flatline.series.tsdb.pieces import Bools, Damage, Span

PAGE = 32 * 1024
PIECE = 64 * PAGE
MAX_RECORD = 256 << 20
SERIES, SAMPLES, TOMBSTONES, EXEMPLARS, MARKERS, METADATA = 1, 2, 3, 4, 5, 6
SKIPPED = {EXEMPLARS, MARKERS, METADATA}
UNREAD = {
    7: "native histograms",
    8: "native float histograms",
    9: "native histograms with custom buckets",
    10: "native float histograms with custom buckets",
}
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_SNAPPY, _ZSTD = 8, 16
_U = np.uint64
Places = tuple[Ints, Ints, Ints]
"""References and milliseconds of samples, and where in the batch their values stand."""
Wanted = Callable[[Ints, Ints], Bools]
"""Which samples are, by their references and milliseconds."""


def segments(folder: Path) -> list[str]:
    """Segments in order; other names are none."""
    return sorted((name for name in listed(folder) if name.isdecimal()), key=int)


def records(folder: Path, names: Sequence[str], damage: Damage, where: str) -> Iterator[bytes]:
    """Records of segments in order, unpacked."""
    parts = _Parts(damage)
    for name in names:
        place = f"{where}/{name}"
        for kind, data in _fragments(folder / name, damage, place):
            if kind is None:
                parts.drop()
                parts.told = True
            elif parts.whole(kind, data, place):
                record = _unpacked(parts.joined(), parts.flags, damage, place)
                parts.drop()
                if record:
                    yield record
    if parts.data:
        damage.add("the last record of the log is cut off", f"{where}/{names[-1]}")


class _Parts:
    """The fragments of a record that is not yet whole."""

    def __init__(self, damage: Damage) -> None:
        self._damage = damage
        self.data: list[bytes] = []
        self.flags = self._size = 0
        self.told = False
        """Whether it was already said that what went before was lost."""

    def drop(self) -> None:
        self.data, self.flags, self._size = [], 0, 0

    def joined(self) -> bytes:
        return self.data[0] if len(self.data) == 1 else b"".join(self.data)

    def whole(self, kind: int, data: bytes, place: str) -> bool:
        """Takes a fragment; whether the record is whole with it."""
        part = kind & 7
        if part in (_FULL, _FIRST):
            if self.data:
                self._damage.add("a record of the log that is cut off", place)
            self.drop()
            self.flags, self.told = kind & (_SNAPPY | _ZSTD), False
        elif not self.data:
            if not self.told:
                self._damage.add("a record of the log whose beginning is lost", place)
            self.told = True
            return False
        self.data.append(data)
        self._size += len(data)
        if self._size > MAX_RECORD:
            self._damage.add("a record of the log that is too long", place)
            self.drop()
            return False
        return part in (_FULL, _LAST)


def _fragments(path: Path, damage: Damage, place: str) -> Iterator[tuple[int | None, bytes]]:
    """(type, data) of each fragment; a type of None where some were lost."""
    try:
        file = ReadOnly(path)
    except OSError as fault:
        damage.add(f"a segment of the log cannot be read: {fault.strerror or fault}", place)
        yield None, b""
        return
    with file:
        for begin in range(0, file.size, PIECE):
            piece = file.read(begin, PIECE)
            for at in range(0, len(piece), PAGE):
                yield from _page(piece[at : at + PAGE], damage, place)


def _page(page: bytes, damage: Damage, place: str) -> Iterator[tuple[int | None, bytes]]:
    at, end = 0, len(page)
    while at < end and page[at]:
        size = int.from_bytes(page[at + 1 : at + 3], "big")
        start = at + 7
        data = page[start : start + size]
        if start + size > end:
            if end < PAGE:
                damage.add("the log is cut off within a record", place)
                yield None, b""
                return
        elif crc32c(data) == int.from_bytes(page[at + 3 : start], "big"):
            yield page[at], data
            at = start + size
            continue
        break
    if at < end and page[at:].strip(b"\0"):
        damage.add("a page of the log does not match its checksum; the rest of it is left", place)
        yield None, b""


def _unpacked(data: bytes, flags: int, damage: Damage, place: str) -> bytes:
    if not flags:
        return data
    import cramjam
    import zstandard

    try:
        if flags == _ZSTD:
            return bytes(zstandard.ZstdDecompressor().decompress(data, max_output_size=MAX_RECORD))
        size, _ = uvarint(data, 0)
        if size <= MAX_RECORD:
            return bytes(cramjam.snappy.decompress_raw(data))
    except (cramjam.DecompressionError, zstandard.ZstdError, IndexError, ValueError):
        pass
    damage.add("a record of the log cannot be unpacked", place)
    return b""


def series_of(record: bytes) -> Iterator[tuple[int, Labels]]:
    """Reference and labels of each series a record declares. Raises IndexError where cut off."""
    at = 1
    while at < len(record):
        ref = int.from_bytes(record[at : at + 8], "big")
        count, at = uvarint(record, at + 8)
        pairs = []
        for _ in range(count):
            size, at = uvarint(record, at)
            name = record[at : at + size].decode("utf-8", "replace")
            size, at = uvarint(record, at + size)
            value = record[at : at + size].decode("utf-8", "replace")
            at += size
            if value:
                pairs.append((name, value))
        yield ref, tuple(sorted(pairs))


def deleted_of(record: bytes) -> Iterator[tuple[int, Span]]:
    """Reference and deleted span of each entry of a record. Raises IndexError where cut off."""
    at = 1
    while at < len(record):
        ref = int.from_bytes(record[at : at + 8], "big")
        first, at = varint(record, at + 8)
        last, at = varint(record, at)
        yield ref, (first, last)


def samples_of(batch: Sequence[bytes], wanted: Wanted | None = None) -> tuple[Ints, Ints, Floats]:
    """
    References, milliseconds and values of records of samples, in no order; of those `wanted`, by
    reference and millisecond, where not all are.

    A record that ends within a sample gives those before it.
    """
    lengths = np.array([len(record) for record in batch], dtype=np.int64)
    ends = np.cumsum(lengths)
    stream = _Bytes(batch)
    left = np.flatnonzero(lengths >= 17 + 10)
    found: list[Places] = []
    for length in np.flatnonzero(np.bincount(lengths[left]) >= ALIKE).tolist():
        rows = left[lengths[left] == length]
        alike, samples = _alike(stream, ends[rows] - length, length, wanted)
        found += samples
        left = np.setdiff1d(left, rows[alike], True)
    order = left[np.argsort(-lengths[left], kind="stable")]
    found += _lockstep(stream, (ends - lengths)[order], ends[order], wanted)
    if not found:
        none = np.empty(0, dtype=np.int64)
        return none, none, np.empty(0)
    refs, times, at = (np.concatenate(column) for column in zip(*found, strict=True))
    return refs, times, stream.word(at).view(np.float64)


def _alike(
    stream: _Bytes, begins: Ints, length: int, wanted: Wanted | None
) -> tuple[Bools, list[Places]]:
    """
    Which records of one length are laid out as the one in the middle of them, and their samples;
    none where these are few.

    A target is scraped again and again: all but values and the base is the same in each record.
    """
    first = int(begins[begins.size // 2])
    ref, at, value = stream.walked(first + 17, first + length)
    if not ref.size or int(value[-1]) + 8 != first + length:
        return np.zeros(begins.size, dtype=np.bool_), []
    value -= first
    free = np.zeros(length, dtype=np.bool_)
    free[:17] = True
    free[value[:, None] + np.arange(8)] = True
    alike = stream.same(begins, first, free)
    if np.count_nonzero(alike) < ALIKE:
        return np.zeros(begins.size, dtype=np.bool_), []
    begins, found = begins[alike], []
    base, base_at = (stream.word(begins + n).view(np.int64)[:, None] for n in (1, 9))
    once = at if at.any() else at[:1]  # as nearly all: a scrape has one time
    for number in range(0, begins.size, TOGETHER // ref.size + 1):
        part = slice(number, number + TOGETHER // ref.size + 1)
        refs, times = base[part] + ref, base_at[part] + once
        kept = np.ones(refs.size, dtype=np.bool_) if wanted is None else wanted(refs, times)
        row, column = np.divmod(np.flatnonzero(kept), ref.size)
        found.append((refs[row, column], times[row, column % once.size],
                      begins[part][row] + value[column]))  # fmt: skip
    return alike, found


def _lockstep(stream: _Bytes, begins: Ints, ends: Ints, wanted: Wanted | None) -> list[Places]:
    """References, milliseconds and places of values of records, the longest first."""
    found = []
    base, base_at = (stream.word(begins + at).astype(np.int64) for at in (1, 9))
    pos = begins + 17
    while pos.size:
        if pos.size < FEW:  # the longest records: what is left of each is walked on its own
            for row in range(pos.size):
                ref, at, value = stream.walked(int(pos[row]), int(ends[row]))
                found.append((base[row] + ref, base_at[row] + at, value))
            break
        ref, pos = stream.varint(pos)
        at, value = stream.varint(pos)
        pos = value + 8
        left = pos < ends
        if left.all():
            found.append((base + ref, base_at + at, value))
            continue
        whole = pos <= ends
        found.append(((base + ref)[whole], (base_at + at)[whole], value[whole]))
        ends, pos, base, base_at = ends[left], pos[left], base[left], base_at[left]
    if wanted is None or not found:
        return found
    refs, times, places = (np.concatenate(column) for column in zip(*found, strict=True))
    kept = wanted(refs, times)
    return [(refs[kept], times[kept], places[kept])]


ALIKE = 8
"""Records of one length that are looked at for whether they are alike."""
FEW = 96
"""Records below which a round in lockstep costs more than walking through what is left of them:
a round takes some 40 us however few there are, a step of the walk 0.2 us."""
TOGETHER = 1 << 14
"""Samples, or words of eight bytes, of records that are alike: what is made of them stays in the
processor's cache."""
BEYOND = 64
"""Bytes behind the last record that its last sample may reach into, where it is cut off: two
numbers of up to 10 and a value, and what is read with them."""


class _Bytes:
    """Numbers at many byte positions at once; those within BEYOND behind the end are zeros."""

    def __init__(self, batch: Sequence[bytes]) -> None:
        self._data = b"".join([*batch, bytes(BEYOND + 8)])
        self._words = np.ndarray(len(self._data) - 8, ">u8", self._data, strides=(1,))

    def word(self, pos: Ints) -> NDArray[np.uint64]:
        return self._words[pos].astype(np.uint64)

    def same(self, begins: Ints, first: int, free: Bools) -> Bools:
        """At which positions stands what stands at the first, but for what is free."""
        size = -(-free.size // 8)
        fixed = np.zeros(8 * size, dtype=np.uint8)
        fixed[: free.size][~free] = 255
        mask = fixed.view(np.uint64)
        begun = self._words.size - 8 * size
        records = np.ndarray(begun, f"V{8 * size}", self._data, strides=(1,))
        model = records[[first]].view(np.uint64) & mask
        found = []
        for number in range(0, begins.size, TOGETHER // size + 1):
            block = records[begins[number : number + TOGETHER // size + 1]]
            words = block.view(np.uint64).reshape(-1, size)
            words &= mask
            words ^= model
            found.append(np.bitwise_or.reduce(words, axis=1) == 0)
        return np.concatenate(found)

    def walked(self, at: int, end: int) -> tuple[Ints, Ints, Ints]:
        """The samples from one position on, found one after the other and read together: what
        they add to the base, and where their values stand."""
        data = self._data
        begins = array("q")
        while at < end:
            begin = at
            while at < end and data[at] > 127:
                at += 1
            at += 1
            while at < end and data[at] > 127:
                at += 1
            at += 9
            if at > end:
                break
            begins.append(begin)
        refs, there = self.varint(np.frombuffer(begins, dtype=np.int64))
        times, there = self.varint(there)
        return refs, times, there

    def varint(self, pos: Ints) -> tuple[Ints, Ints]:
        """Signed numbers (zigzag, base 128), and where the next thing begins."""
        bits = self.word(pos)
        byte = bits >> _U(56)
        value = byte & _U(127)
        more = byte > _U(127)
        used = np.ones(pos.size, dtype=np.int64)
        for number in range(1, 10):
            if not more.any():
                break
            if number == 8:
                bits = self.word(pos + 8)
            byte = (bits << _U(8 * (number % 8))) >> _U(56)
            value |= np.where(more, (byte & _U(127)) << _U(7 * number), _U(0))
            used += more
            more &= byte > _U(127)
        return (value >> _U(1)).astype(np.int64) ^ -(value & _U(1)).astype(np.int64), pos + used
