"""
What a server had not yet put into a block: chunks it had mapped, the log, late samples.

The log holds every sample since its last checkpoint, the mapped chunks most of them again.  The
log has no index: it is read once, from one end to the other, and kept if it is small enough; else
it is read again for each question.  Layouts: `tsdb/docs/format/head_chunks.md`, `wal.md`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from struct import Struct

import numpy as np

from flatline.errors import FormatError
from flatline.series.matching import Matcher, accepts
from flatline.series.storage import NAME, Floats, Ints, Labels
from flatline.series.tsdb import wal
from flatline.series.tsdb.files import ReadOnly, crc32c, listed
from flatline.series.tsdb.index import uvarint
from flatline.series.tsdb.pieces import Damage, Selection, Span, ordered

MAGIC = 0x0130BC91
OUT_OF_ORDER = 0x80
_CHUNK = Struct(">QqqB")
KEPT = 24_000_000
"""Samples of the log that are kept in memory, at 24 bytes each; a longer log is read again for
each question."""
BATCH_BYTES = 32 << 20
BATCH_RECORDS = 1 << 14
Loose = tuple[Ints, Ints, Floats]


@dataclass(frozen=True, slots=True)
class Mapped:
    """A chunk in `chunks_head`: file, position and size of its data, and its check."""

    file: str
    first: int
    last: int
    encoding: int
    begin: int
    at: int
    size: int


class Head:
    """Raises OSError where the folder cannot be listed."""

    def __init__(self, folder: Path, damage: Damage) -> None:
        self._folder = folder
        self._damage = damage
        self._labels: dict[int, Labels] = {}
        self._by_name: dict[str, list[int]] = {}
        self._deleted: dict[int, list[Span]] = {}
        self._mapped: dict[int, list[Mapped]] = {}
        self._kept: Loose | None = None
        self._span: Span | None = None
        self._read_chunks()
        self._read_log()
        orphans = len(self._mapped.keys() - self._labels.keys())
        damage.add("mapped chunks of a series the log does not name", "chunks_head", orphans)

    @property
    def span(self) -> Span | None:
        """First and last millisecond a sample has; None where there is none."""
        return self._span

    def names(self) -> Iterator[str]:
        return iter(self._by_name)

    def labels(self, matchers: Sequence[Matcher]) -> list[Labels]:
        return [self._labels[ref] for ref in self._matching(matchers)]

    def select(self, matchers: Sequence[Matcher], into: Selection) -> None:
        """The samples of these series within the selection's span."""
        refs = self._matching(matchers)
        if not refs:
            return
        rows = {ref: into.row(self._labels[ref]) for ref in refs}
        self._select_chunks(rows, into)
        wanted = np.array(sorted(refs), dtype=np.int64)
        row_of = np.array([rows[ref] for ref in wanted.tolist()], dtype=np.int64)
        for found, times, values in self._of(wanted):
            kept = self._undeleted(found, times)
            at = np.searchsorted(wanted, found[kept])
            into.samples(row_of[at], times[kept], values[kept])

    def _of(self, wanted: Ints) -> Iterator[Loose]:
        """The samples of the log of these series; they are ascending."""
        if self._kept is None:
            for found in self._log(first_time=False):
                at = np.searchsorted(wanted, found[0]).clip(max=wanted.size - 1)
                of = np.flatnonzero(wanted[at] == found[0])
                yield found[0][of], found[1][of], found[2][of]
            return
        refs, times, values = self._kept
        begins = np.searchsorted(refs, wanted, "left")
        sizes = np.searchsorted(refs, wanted, "right") - begins
        shift = begins - np.concatenate(([0], np.cumsum(sizes)[:-1]))
        at = np.repeat(shift, sizes) + np.arange(int(sizes.sum()))
        yield refs[at], times[at], values[at]

    def _matching(self, matchers: Sequence[Matcher]) -> list[int]:
        exact = [m.value for m in matchers if m.name == NAME and m.op == "="]
        refs = self._by_name.get(exact[0], []) if exact else list(self._labels)
        tests = [(m.name, accepts(m)) for m in matchers if not (m.name == NAME and m.op == "=")]
        for name, test in tests:
            refs = [ref for ref in refs if test(_value(self._labels[ref], name))]
        return refs

    def _undeleted(self, refs: Ints, times: Ints) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        kept = np.ones(refs.size, dtype=np.bool_)
        for ref in self._deleted.keys() & set(refs.tolist()) if self._deleted else ():
            for first, last in self._deleted[ref]:
                kept &= (refs != ref) | (times < first) | (times > last)
        return kept

    # --- mapped chunks ---

    def _read_chunks(self) -> None:
        folder = self._folder / "chunks_head"
        for name in (n for n in listed(folder) if n.isdecimal()):
            try:
                with ReadOnly(folder / name) as file:
                    data = file.read(0, file.size)
            except OSError as fault:
                self._damage.add(f"mapped chunks cannot be read: {fault.strerror or fault}",
                                 f"chunks_head/{name}")  # fmt: skip
                continue
            if data and not self._scan(name, data):
                self._damage.add("mapped chunks that are cut off", f"chunks_head/{name}")

    def _scan(self, name: str, data: bytes) -> bool:
        """Notes where the chunks of a file lie; whether it is whole."""
        if int.from_bytes(data[:4], "big") != MAGIC:
            return not any(data[:8])  # laid out for later, and nothing written yet
        at = 8
        while at + 25 <= len(data):
            ref, first, last, encoding = _CHUNK.unpack_from(data, at)
            if not ref:  # the rest was laid out for later
                return True
            try:
                size, start = uvarint(data, at + 25)
            except (IndexError, FormatError):
                return False
            end = start + size + 4
            if end > len(data):
                return False
            if last >= first:
                self._widen(first, last)
                self._mapped.setdefault(ref, []).append(
                    Mapped(name, first, last, encoding & ~OUT_OF_ORDER, at, start, size)
                )
            at = end
        return at == len(data) or not any(data[at:])

    def _select_chunks(self, rows: dict[int, int], into: Selection) -> None:
        first, last = into.span
        wanted = [
            (chunk, ref)
            for ref in rows
            for chunk in self._mapped.get(ref, ())
            if chunk.first <= last and chunk.last >= first
        ]
        wanted.sort(key=lambda item: (item[0].file, item[0].begin))
        files: dict[str, ReadOnly] = {}
        for chunk, ref in wanted:
            where = f"chunks_head/{chunk.file}"
            try:
                if chunk.file not in files:
                    files = {chunk.file: ReadOnly(self._folder / where)}
                data = files[chunk.file].read(chunk.begin, chunk.at + chunk.size + 4 - chunk.begin)
            except OSError as fault:
                self._damage.add(f"mapped chunks are gone: {fault.strerror or fault}", where)
                continue
            if len(data) < 4 or crc32c(data[:-4]) != int.from_bytes(data[-4:], "big"):
                self._damage.add("a mapped chunk does not match its checksum", where)
                continue
            deleted = tuple(self._deleted.get(ref, ()))
            into.chunk(
                rows[ref], chunk.encoding, data[chunk.at - chunk.begin : -4], where, deleted
            )

    # --- the log ---

    def _read_log(self) -> None:
        """Everything but the samples is noted; they are kept, ordered, if they are few enough."""
        total = 0
        parts: list[Loose] = []
        for found in self._log(first_time=True):
            total += found[0].size
            if found[1].size:
                self._widen(int(found[1].min()), int(found[1].max()))
            if total <= KEPT:
                parts.append(found)
        if total <= KEPT:
            refs, times, values = _joined(parts)
            order = ordered(refs, times)
            self._kept = refs[order], times[order], values[order]
            known = np.array(sorted(self._labels), dtype=np.int64)
            strange = int(np.count_nonzero(~np.isin(refs, known)))
            self._damage.add("samples of a series the log does not name", "wal", strange)

    def _log(self, *, first_time: bool) -> Iterator[Loose]:
        damage = self._damage if first_time else Damage()
        batch: list[bytes] = []
        size = 0
        for record in self._records(damage):
            if record[0] == wal.SAMPLES:
                batch.append(record)
                size += len(record)
                if size >= BATCH_BYTES or len(batch) >= BATCH_RECORDS:
                    yield wal.samples_of(batch)
                    batch, size = [], 0
            elif first_time:
                self._other(record)
        if batch:
            yield wal.samples_of(batch)

    def _records(self, damage: Damage) -> Iterator[bytes]:
        """The checkpoint, the segments after it, and the log of late samples."""
        folder = self._folder / "wal"
        names = listed(folder)
        checkpoints = [n for n in names if n[:11] == "checkpoint." and n[11:].isdecimal()]
        newest = max(checkpoints, key=lambda name: int(name[11:]), default=None)
        after = -1
        if newest is not None:
            after = int(newest[11:])
            inside = wal.segments(folder / newest)
            yield from wal.records(folder / newest, inside, damage, f"wal/{newest}")
        log = [name for name in wal.segments(folder) if int(name) > after]
        numbers = list(map(int, log))
        if numbers and numbers[-1] - numbers[0] + 1 != len(numbers):
            damage.add("segments of the log are missing", "wal")
        yield from wal.records(folder, log, damage, "wal")
        late = self._folder / "wbl"
        yield from wal.records(late, wal.segments(late), damage, "wbl")

    def _other(self, record: bytes) -> None:
        """Series, deletions, and what is not read."""
        kind = record[0]
        try:
            if kind == wal.SERIES:
                for ref, labels in wal.series_of(record):
                    if ref not in self._labels:
                        self._labels[ref] = labels
                        name = _value(labels, NAME)
                        self._by_name.setdefault(name, []).append(ref)
            elif kind == wal.TOMBSTONES:
                for ref, span in wal.deleted_of(record):
                    self._deleted.setdefault(ref, []).append(span)
            elif kind not in wal.SKIPPED:
                name = wal.UNREAD.get(kind, f"records of type {kind}")
                self._damage.add(f"{name}: not read", "wal")
        except (IndexError, FormatError):
            self._damage.add("a record of the log that is damaged", "wal")

    def _widen(self, first: int, last: int) -> None:
        known = self._span
        self._span = (
            (first, last) if known is None else (min(known[0], first), max(known[1], last))
        )


def _joined(parts: Sequence[Loose]) -> Loose:
    none = np.empty(0, dtype=np.int64)
    refs, times, values = zip(*parts, strict=True) if parts else ((none,), (none,), (none,))
    return np.concatenate(refs), np.concatenate(times), np.concatenate(values).astype(np.float64)


def _value(labels: Labels, name: str) -> str:
    for key, value in labels:
        if key == name:
            return value
    return ""
