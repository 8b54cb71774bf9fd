"""
Chunks of the head that a server had mapped: where they lie, and those that are asked for.

There are tens of thousands: what is known of them stands in columns.  Layout:
`tsdb/docs/format/head_chunks.md`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from flatline.errors import FormatError
from flatline.series.storage import Ints
from flatline.series.tsdb.cover import Spans
from flatline.series.tsdb.files import ReadOnly, crc32c, listed
from flatline.series.tsdb.index import uvarint
from flatline.series.tsdb.pieces import XOR, Damage, Selection, Span

MAGIC = 0x0130BC91
OUT_OF_ORDER = 0x80
HEAD = np.dtype([("ref", ">u8"), ("first", ">i8"), ("last", ">i8"), ("encoding", "u1")])
WINDOW = 4 << 20
PIECE_BYTES = 1 << 20
NEAR = 4096
"""Chunks that lie closer together than this are read in one piece."""
NO_REFERENCE = bytes(8)


class Mapped:
    """Raises OSError where the folder cannot be listed."""

    def __init__(self, folder: Path, damage: Damage) -> None:
        self._damage = damage
        self._names: list[str] = []
        self._files: list[ReadOnly] = []
        columns: list[tuple[Ints, ...]] = [tuple(np.empty(0, dtype=np.int64) for _ in range(9))]
        for name in (n for n in listed(folder) if n.isdecimal()):
            try:
                file = ReadOnly(folder / name)
                columns += self._scan(name, file)
            except OSError as fault:
                self._unread(name, fault)
                continue
            self._names.append(name)
            self._files.append(file)
        (self.refs, self._first, self._last, self._encoding, self._file, self._begin, self._at,
         self._end, sound) = map(np.concatenate, zip(*columns, strict=True))  # fmt: skip
        self._late = self._encoding & OUT_OF_ORDER != 0
        self._sound = (sound != 0) & (self._encoding == XOR)
        self._encoding &= ~OUT_OF_ORDER

    @property
    def span(self) -> Span | None:
        """First and last millisecond they hold; None where there are none."""
        return (int(self._first.min()), int(self._last.max())) if self.refs.size else None

    def cover(self, refs: Ints) -> Spans:
        """What those of these series hold that can be read and hold all of their time."""
        there = self._sound & np.isin(self.refs, refs)
        return self.refs[there], self._first[there], self._last[there]

    def select(
        self, refs: Ints, rows: Ints, deleted: Mapping[int, Sequence[Span]], into: Selection
    ) -> Spans:
        """
        The chunks of these series, without what was deleted of their rows; the spans they hold of
        each row.

        What the log has within them it has again: a server that starts leaves that out too.
        """
        order = np.argsort(refs)
        known, rows = refs[order], rows[order]
        at = np.searchsorted(known, self.refs).clip(max=known.size - 1)
        first, last = into.span
        wanted = np.flatnonzero((known[at] == self.refs) & (self._first <= last)
                                & (self._last >= first))  # fmt: skip
        row_of = rows[at]
        data = dict(zip(wanted.tolist(), self._read(wanted), strict=True))
        wanted = wanted[np.lexsort((self._first[wanted], row_of[wanted]))]
        read = np.ones(wanted.size, dtype=np.bool_)
        where = [f"chunks_head/{name}" for name in self._names]
        columns = zip(wanted.tolist(), row_of[wanted].tolist(), self._encoding[wanted].tolist(),
                      self._file[wanted].tolist(), strict=True)  # fmt: skip
        for number, (chunk, row, encoding, file) in enumerate(columns):
            found = data.pop(chunk)
            if found is None:
                self._damage.add("a mapped chunk does not match its checksum", where[file])
            if found is None or not into.chunk(row, encoding, found, where[file],
                                               deleted.get(row, ())):  # fmt: skip
                read[number] = False
        held = wanted[read & ~self._late[wanted]]
        return row_of[held], self._first[held], self._last[held]

    def _read(self, wanted: Ints) -> Iterator[bytes | None]:
        """The data of chunks in the order they lie in; None where one does not match its check."""
        files, begins = self._file[wanted].tolist(), self._begin[wanted].tolist()
        starts, ends = self._at[wanted].tolist(), self._end[wanted].tolist()
        number = 0
        while number < len(files):
            file, begin, upto = files[number], begins[number], number + 1
            while (upto < len(files) and files[upto] == file
                   and begins[upto] - ends[upto - 1] <= NEAR
                   and ends[upto] - begin <= PIECE_BYTES):  # fmt: skip
                upto += 1
            try:
                piece = self._files[file].read(begin, ends[upto - 1] - begin)
            except OSError as fault:
                piece = b""
                self._unread(self._names[file], fault)
            for one in range(number, upto):
                end = ends[one] - begin
                check = piece[end - 4 : end]
                sound = len(check) == 4 and crc32c(
                    piece[begins[one] - begin : end - 4]
                ) == int.from_bytes(check, "big")
                yield piece[starts[one] - begin : end - 4] if sound else None
            number = upto

    def _scan(self, name: str, file: ReadOnly) -> Iterator[tuple[Ints, ...]]:
        """The columns of the chunks of a file, window by window."""
        begin, size, at = 0, WINDOW, 8
        data = file.read(0, size)
        if int.from_bytes(data[:4], "big") != MAGIC:
            whole = not any(data[:8])  # laid out for later, and nothing written yet
        else:
            while True:
                found, at, whole = _walked(data, at)
                if found.size:
                    yield _columns(data, found, begin, len(self._files))
                if whole or begin + len(data) >= file.size:
                    break
                begin, size, at = begin + at, WINDOW if at else 4 * size, 0
                data = file.read(begin, size)
            whole = whole or not any(data[at:])
        if data and not whole:
            self._damage.add("mapped chunks that are cut off", f"chunks_head/{name}")

    def _unread(self, name: str, fault: OSError) -> None:
        self._damage.add(f"mapped chunks cannot be read: {fault.strerror or fault}",
                         f"chunks_head/{name}")  # fmt: skip


def _walked(data: bytes, at: int) -> tuple[Ints, int, bool]:
    """Where each chunk begins, where its data begin, where it ends and whether it matches its
    check; where the walk ended; whether nothing is written from there on."""
    found = array("q")
    most = len(data)
    while at + 28 <= most:
        if data[at : at + 8] == NO_REFERENCE:  # the rest was laid out for later
            return np.array(found, dtype=np.int64).reshape(-1, 4), at, True
        start = at + 27
        if data[at + 25] > 127 > data[at + 26]:  # as nearly all are
            size = data[at + 25] & 127 | data[at + 26] << 7
        else:
            try:
                size, start = uvarint(data, at + 25)
            except (IndexError, FormatError):
                break
        end = start + size + 4
        if end > most:
            break
        check = crc32c(data[at : end - 4])
        found.extend((at, start, end, check == int.from_bytes(data[end - 4 : end], "big")))
        at = end
    return np.array(found, dtype=np.int64).reshape(-1, 4), at, False


def _columns(data: bytes, found: Ints, begin: int, file: int) -> tuple[Ints, ...]:
    heads = np.ndarray(len(data) - HEAD.itemsize + 1, HEAD, data, strides=(1,))[found[:, 0]]
    fields = [heads[name].astype(np.int64) for name in ("ref", "first", "last", "encoding")]
    at, start, end, sound = found.T
    columns = *fields, np.full(at.size, file), at + begin, start + begin, end + begin, sound
    there = fields[2] >= fields[1]
    return tuple(column[there] for column in columns)
