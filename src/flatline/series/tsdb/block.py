"""
A block: a stretch of time with an index, files of chunks, and a list of what was deleted.

Layouts: `tsdb/docs/format/chunks.md` and `tombstones.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import orjson

from flatline.errors import FormatError
from flatline.series.matching import Matcher
from flatline.series.storage import NAME, Labels
from flatline.series.tsdb.files import ReadOnly, crc32c, listed
from flatline.series.tsdb.index import ChunkRef, Index, uvarint, varint
from flatline.series.tsdb.pieces import Damage, Selection, Span

CHUNKS_MAGIC = 0x85BD40DD
TOMBSTONES_MAGIC = 0x0130BA30
NEAR = 1 << 18
"""Chunks that lie closer together than this are read in one piece."""
SCANNED = 200_000
"""Series of which the last sample is looked for one by one."""


def is_block(folder: Path) -> bool:
    return (folder / "index").is_file() and (folder / "chunks").is_dir()


class Block:
    """Raises FormatError and OSError for a block that cannot be read at all."""

    def __init__(self, folder: Path, damage: Damage) -> None:
        self.name = folder.name
        self._folder = folder
        self._damage = damage
        self._index = Index(ReadOnly(folder / "index"))
        self._segments: dict[int, ReadOnly | None] = {}
        self._numbered = {
            number: name
            for number, name in enumerate(n for n in listed(folder / "chunks") if n.isdecimal())
        }
        self.meta = self._meta()
        self._deleted = self._tombstones()

    @property
    def span(self) -> Span:
        """First and last millisecond it may hold, as its own description says."""
        return int(self.meta.get("minTime", -(1 << 62))), int(
            self.meta.get("maxTime", 1 << 62)
        ) - 1

    def names(self) -> Iterable[str]:
        return self._index.table.get(NAME, {})

    def values(self) -> Iterable[tuple[str, Iterable[str]]]:
        """Each label's name with its values."""
        return ((name, table) for name, table in self._index.table.items() if name)

    def labels(self, matchers: Sequence[Matcher]) -> Iterable[Labels]:
        """Labels of the series that satisfy every matcher."""
        for _, labels, _ in self._index.series(self._index.matching(matchers)):
            yield labels
        self._count_bad()

    def select(self, matchers: Sequence[Matcher], into: Selection) -> None:
        """The chunks of these series that touch the selection's span."""
        first, last = into.span
        wanted: list[tuple[ChunkRef, int, tuple[Span, ...]]] = []
        for ref, labels, chunks in self._index.series(self._index.matching(matchers)):
            touching = [c for c in chunks if c.first <= last and c.last >= first]
            if touching:
                row = into.row(labels)
                deleted = self._deleted.get(ref, ())
                wanted += [(chunk, row, deleted) for chunk in touching]
        self._count_bad()
        wanted.sort(key=lambda item: item[0].ref)
        piece, begin, segment = b"", 0, -1
        for number, (chunk, row, deleted) in enumerate(wanted):
            at = chunk.ref & 0xFFFFFFFF
            if chunk.ref >> 32 != segment or at + 5 > begin + len(piece):
                segment, begin = chunk.ref >> 32, at
                piece = self._read(segment, at, _reach(wanted, number))
            found = _chunk(piece, at - begin)
            if found is None:  # it is longer than the piece, or the file ends
                piece, begin = self._read(segment, at, NEAR), at
                found = _chunk(piece, 0)
            where = f"{self.name}/chunks/{self._numbered.get(segment, segment + 1)}"
            if found is None:
                self._damage.add("a chunk that is cut off or does not match its checksum", where)
            else:
                into.chunk(row, found[0], found[1], where, deleted)

    @property
    def last_ms(self) -> int:
        """The last sample, if there are few enough series to look; else the end of the block."""
        refs = self._index.matching(())
        if refs.size > SCANNED:
            return self.span[1]
        every = self._index.series(refs)
        return max((chunks[-1].last for _, _, chunks in every if chunks), default=self.span[0])

    def _read(self, segment: int, at: int, size: int) -> bytes:
        if segment not in self._segments:
            self._segments[segment] = self._open(segment)
        file = self._segments[segment]
        return b"" if file is None else file.read(at, size)

    def _open(self, segment: int) -> ReadOnly | None:
        name = self._numbered.get(segment)
        where = f"{self.name}/chunks/{name or segment + 1}"
        try:
            file = ReadOnly(self._folder / "chunks" / (name or "missing"))
        except OSError as fault:
            self._damage.add(f"chunks that cannot be read: {fault.strerror or fault}", where)
            return None
        if int.from_bytes(file.read(0, 4), "big") != CHUNKS_MAGIC:
            self._damage.add("a file of chunks that does not begin as one", where)
        return file

    def _count_bad(self) -> None:
        self._damage.add("a series whose entry does not match its checksum",
                         f"{self.name}/index", self._index.bad)  # fmt: skip
        self._index.bad = 0

    def _meta(self) -> dict[str, Any]:
        try:
            with ReadOnly(self._folder / "meta.json") as file:
                meta = orjson.loads(file.read(0, 1 << 24))
            if isinstance(meta, dict) and all(
                isinstance(meta.get(key), int) for key in ("minTime", "maxTime")
            ):
                return meta
            reason = "it says no time"
        except (OSError, orjson.JSONDecodeError) as fault:
            reason = getattr(fault, "strerror", None) or "it is no JSON"
        self._damage.add(
            f"the description of a block is not read: {reason}", f"{self.name}/meta.json"
        )
        return {}

    def _tombstones(self) -> dict[int, tuple[Span, ...]]:
        """The spans deleted of each series."""
        try:
            with ReadOnly(self._folder / "tombstones") as file:
                data = file.read(0, file.size)
        except FileNotFoundError:
            return {}
        found: dict[int, list[Span]] = {}
        body, at = data[5:-4], 0
        sound = int.from_bytes(data[:4], "big") == TOMBSTONES_MAGIC and (
            crc32c(body) == int.from_bytes(data[-4:], "big")
        )
        try:
            while sound and at < len(body):
                ref, at = uvarint(body, at)
                first, at = varint(body, at)
                last, at = varint(body, at)
                found.setdefault(ref, []).append((first, last))
        except (IndexError, FormatError):
            sound = False
        if not sound:
            self._damage.add("a list of deletions that is damaged: what was deleted may show",
                             f"{self.name}/tombstones")  # fmt: skip
        return {ref: tuple(spans) for ref, spans in found.items()}


def _reach(wanted: Sequence[tuple[ChunkRef, int, tuple[Span, ...]]], number: int) -> int:
    """How much to read for this chunk and those that follow close behind."""
    begin = end = wanted[number][0].ref
    while number + 1 < len(wanted):
        number += 1
        following = wanted[number][0].ref
        if following - end > 4096 or following - begin > NEAR:
            break
        end = following
    return end - begin + 2048


def _chunk(piece: bytes, at: int) -> tuple[int, bytes] | None:
    """Encoding and data of the chunk there, if it is all there and matches its checksum."""
    try:
        size, start = uvarint(piece, at)
    except (IndexError, FormatError):
        return None
    end = start + 1 + size
    check = piece[end : end + 4]
    if len(check) < 4 or crc32c(piece[start:end]) != int.from_bytes(check, "big"):
        return None
    return piece[start], piece[start + 1 : end]
