"""
A block's index: label values to series, series to chunks.

Only what a question needs is read: the tables of symbols and of label values once, then the
postings and the series that match.  Layout: `tsdb/docs/format/index.md`, versions 1 and 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from flatline.errors import FormatError
from flatline.series.matching import Matcher, accepts
from flatline.series.storage import Ints, Labels
from flatline.series.tsdb.files import ReadOnly, crc32c

MAGIC = 0xBAAAD700
TOC_BYTES = 52
MAX_SECTION = 1 << 31
PAGE = 1 << 16
"""Series are read in pieces of this size: those asked for mostly lie side by side."""
ALL = ("", "")
"""The label under which the postings of every series stand."""


@dataclass(frozen=True, slots=True)
class ChunkRef:
    """A chunk of a series: first and last time in milliseconds, and where it lies."""

    first: int
    last: int
    ref: int


def uvarint(data: bytes, at: int) -> tuple[int, int]:
    """A base-128 number and where the next thing begins. Raises IndexError at the end."""
    value = data[at]
    at += 1
    if value < 128:
        return value, at
    value &= 127
    shift = 7
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift > 63:
            raise FormatError("a number of more than 64 bits")


def varint(data: bytes, at: int) -> tuple[int, int]:
    """The same for a signed number (zigzag)."""
    value, at = uvarint(data, at)
    return (value >> 1) ^ -(value & 1), at


class Index:
    """Raises FormatError and OSError for an index that cannot be read, or no further."""

    def __init__(self, file: ReadOnly) -> None:
        self._file = file
        head = file.read(0, 5)
        if len(head) < 5 or int.from_bytes(head[:4], "big") != MAGIC:
            raise FormatError("the index does not begin as one")
        self.version = head[4]
        if self.version not in (1, 2):
            raise FormatError(f"an index of version {self.version} is not read")
        toc = file.read(file.size - TOC_BYTES, TOC_BYTES) if file.size > TOC_BYTES else b""
        if len(toc) < TOC_BYTES or crc32c(toc[:-4]) != int.from_bytes(toc[-4:], "big"):
            raise FormatError("the index is cut off: its table of contents is not there")
        self._symbols_at = int.from_bytes(toc[:8], "big")
        self._postings_at = int.from_bytes(toc[40:48], "big")
        self._page = (0, b"")
        self.bad = 0
        """Series whose entries did not match their checksums."""

    def _section(self, at: int) -> bytes:
        head = self._file.read(at, 4)
        size = int.from_bytes(head, "big")
        if len(head) < 4 or size > min(MAX_SECTION, self._file.size - at):
            raise FormatError("a section of the index reaches past its end")
        data = self._file.read(at + 4, size + 4)
        if len(data) < size + 4 or crc32c(data[:-4]) != int.from_bytes(data[-4:], "big"):
            raise FormatError("a section of the index does not match its checksum")
        return data[:-4]

    @cached_property
    def symbols(self) -> dict[int, str]:
        """Every string: by number in version 2, by position in version 1."""
        data = self._section(self._symbols_at)
        found: dict[int, str] = {}
        at = 4
        try:
            for number in range(int.from_bytes(data[:4], "big")):
                key = number if self.version == 2 else self._symbols_at + 4 + at
                size, at = uvarint(data, at)
                found[key] = data[at : at + size].decode("utf-8", "replace")
                at += size
        except IndexError:
            raise FormatError("the symbols of the index are cut off") from None
        return found

    @cached_property
    def table(self) -> dict[str, dict[str, int]]:
        """Label name to value to where the postings lie."""
        data = self._section(self._postings_at)
        found: dict[str, dict[str, int]] = {}
        at = 4
        try:
            for _ in range(int.from_bytes(data[:4], "big")):
                size, at = uvarint(data, at + 1)
                name = data[at : at + size].decode("utf-8", "replace")
                size, at = uvarint(data, at + size)
                value = data[at : at + size].decode("utf-8", "replace")
                where, at = uvarint(data, at + size)
                found.setdefault(name, {})[value] = where
        except IndexError:
            raise FormatError("the label values of the index are cut off") from None
        return found

    def _postings(self, where: Sequence[int]) -> Ints:
        lists = []
        for at in where:
            data = self._section(at)
            lists.append(np.frombuffer(data, dtype=">u4", offset=4).astype(np.int64))
        if not lists:
            return np.empty(0, dtype=np.int64)
        return lists[0] if len(lists) == 1 else np.unique(np.concatenate(lists))

    def matching(self, matchers: Sequence[Matcher]) -> Ints:
        """References of the series that satisfy every matcher, ascending."""
        wanted: Ints | None = None
        without: list[Ints] = []
        for matcher in matchers:
            test, values = accepts(matcher), self.table.get(matcher.name, {})
            if test(""):  # a series without the label satisfies it
                without.append(self._postings([at for v, at in values.items() if not test(v)]))
                continue
            if matcher.op == "=":
                there = [values[matcher.value]] if matcher.value in values else []
            else:
                there = [at for value, at in values.items() if test(value)]
            found = self._postings(there)
            wanted = found if wanted is None else np.intersect1d(wanted, found, True)
        if wanted is None:
            wanted = self._postings([self.table[ALL[0]][ALL[1]]] if ALL[0] in self.table else [])
        for found in without:
            wanted = np.setdiff1d(wanted, found, True)
        return wanted

    def series(self, refs: Ints) -> Iterator[tuple[int, Labels, list[ChunkRef]]]:
        """Reference, labels and chunks of series; one that is damaged is counted, not given."""
        scale = 16 if self.version == 2 else 1
        for ref in refs.tolist():
            try:
                data = self._entry(ref * scale)
                yield ref, *self._parsed(data)
            except (IndexError, KeyError, FormatError):
                self.bad += 1

    def _entry(self, at: int) -> bytes:
        begin, page = self._page
        if not begin <= at < begin + len(page) - 16:
            begin, page = at, self._file.read(at, PAGE)
            self._page = begin, page
        size, start = uvarint(page, at - begin)
        if start + size + 4 > len(page):
            if size > self._file.size:
                raise FormatError("a series reaches past the end")
            page = self._file.read(at, max(PAGE, size + 16))
            self._page = at, page
            size, start = uvarint(page, 0)
        data = page[start : start + size]
        check = page[start + size : start + size + 4]
        if len(check) < 4 or crc32c(data) != int.from_bytes(check, "big"):
            raise FormatError("a series does not match its checksum")
        return data

    def _parsed(self, data: bytes) -> tuple[Labels, list[ChunkRef]]:
        symbols = self.symbols
        count, at = uvarint(data, 0)
        pairs = []
        for _ in range(count):
            name, at = uvarint(data, at)
            value, at = uvarint(data, at)
            pairs.append((symbols[name], symbols[value]))
        count, at = uvarint(data, at)
        chunks: list[ChunkRef] = []
        first = last = ref = 0
        for number in range(count):
            if number == 0:
                first, at = varint(data, at)
                length, at = uvarint(data, at)
                ref, at = uvarint(data, at)
            else:
                gap, at = uvarint(data, at)
                length, at = uvarint(data, at)
                step, at = varint(data, at)
                first, ref = last + gap, ref + step
            last = first + length
            chunks.append(ChunkRef(first, last, ref))
        return tuple(sorted(pair for pair in pairs if pair[1])), chunks
