"""
What a server had not yet put into a block: chunks it had mapped, the log, late samples.

The log holds every sample since its last checkpoint, the mapped chunks most of them again.  The
log has no index: it is read once, from one end to the other, and kept ordered by series, in memory
or in the temporary folder (`runs`).  Layouts: `tsdb/docs/format/head_chunks.md`, `wal.md`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from struct import Struct
from typing import NamedTuple

import numpy as np

from flatline.errors import FormatError
from flatline.series.matching import Matcher, accepts
from flatline.series.storage import NAME, Ints, Labels
from flatline.series.tsdb import wal
from flatline.series.tsdb.cover import Cover, uncovered
from flatline.series.tsdb.files import ReadOnly, crc32c, listed
from flatline.series.tsdb.index import uvarint
from flatline.series.tsdb.pieces import XOR, Damage, Selection, Span
from flatline.series.tsdb.runs import Loose, Runs

MAGIC = 0x0130BC91
OUT_OF_ORDER = 0x80
_CHUNK = Struct(">QqqB")
KEPT = 24_000_000
"""Samples of the log that are kept in memory, at 24 bytes each until they are in order; those of a
longer log lie in the temporary folder."""
PIECE_BYTES = 1 << 20
BATCH_BYTES = 8 << 20
"""Arrays of so many samples come from memory that was used before (up to 32 MB of glibc's)."""
BATCH_RECORDS = 1 << 14


class Mapped(NamedTuple):
    """A chunk in `chunks_head`: file, position and size of its data, and its check; `late` where
    it holds only samples that came out of order, `sound` where it could be read when the folder
    was opened."""

    file: str
    first: int
    last: int
    encoding: int
    begin: int
    at: int
    size: int
    late: bool
    sound: bool


class Head:
    """Raises OSError where the folder cannot be listed."""

    def __init__(self, folder: Path, damage: Damage) -> None:
        self._folder = folder
        self._damage = damage
        self._labels: dict[int, Labels] = {}
        self._by_name: dict[str, list[int]] = {}
        self._deleted: dict[int, list[Span]] = {}
        self._mapped: dict[int, list[Mapped]] = {}
        self._files: dict[str, ReadOnly] = {}
        self._kept: Runs | None = None
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
        refs.sort(key=self._labels.__getitem__)
        rows = {ref: into.row(self._labels[ref]) for ref in refs}
        covered = self._select_chunks(rows, into)
        wanted = np.array(refs, dtype=np.int64)
        row_of = np.array([rows[ref] for ref in refs], dtype=np.int64)
        deleted = {rows[ref]: spans for ref, spans in self._deleted.items() if ref in rows}
        for found, times, values in self._of(wanted, row_of):
            kept = _undeleted(found, times, deleted) & uncovered(found, times, covered)
            into.samples(found[kept], times[kept], values[kept])

    def _of(self, wanted: Ints, rows: Ints) -> Iterator[Loose]:
        """The samples of the log of these series, under these rows."""
        if self._kept is not None:
            yield from self._kept.of(wanted, rows)
            return
        order = np.argsort(wanted)  # the temporary folder is full: the log is read again
        wanted, rows = wanted[order], rows[order]
        for found in map(wal.samples_of, self._batches(first_time=False)):
            at = np.searchsorted(wanted, found[0]).clip(max=wanted.size - 1)
            of = np.flatnonzero(wanted[at] == found[0])
            yield rows[at[of]], found[1][of], found[2][of]

    def _matching(self, matchers: Sequence[Matcher]) -> list[int]:
        exact = [m.value for m in matchers if m.name == NAME and m.op == "="]
        refs = self._by_name.get(exact[0], []) if exact else list(self._labels)
        tests = [(m.name, accepts(m)) for m in matchers if not (m.name == NAME and m.op == "=")]
        for name, test in tests:
            refs = [ref for ref in refs if test(_value(self._labels[ref], name))]
        return refs

    # --- mapped chunks ---

    def _read_chunks(self) -> None:
        folder = self._folder / "chunks_head"
        for name in (n for n in listed(folder) if n.isdecimal()):
            try:
                file = self._files[name] = ReadOnly(folder / name)
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
            start = at + 27
            if start < len(data) and data[at + 25] > 127 > data[at + 26]:  # as nearly all are
                size = data[at + 25] & 127 | data[at + 26] << 7
            else:
                try:
                    size, start = uvarint(data, at + 25)
                except (IndexError, FormatError):
                    return False
            end = start + size + 4
            if end > len(data):
                return False
            if last >= first:
                self._widen(first, last)
                check = int.from_bytes(data[end - 4 : end], "big")
                sound = encoding == XOR and crc32c(data[at : end - 4]) == check
                late = encoding & OUT_OF_ORDER != 0
                chunk = Mapped(name, first, last, encoding & ~OUT_OF_ORDER, at, start, size,
                               late, sound)  # fmt: skip
                self._mapped.setdefault(ref, []).append(chunk)
            at = end
        return at == len(data) or not any(data[at:])

    def _select_chunks(self, rows: dict[int, int], into: Selection) -> dict[int, list[Span]]:
        """
        The mapped chunks of these series; the spans they hold of each row.

        What the log has within them it has again: a server that starts leaves that out too.
        """
        covered: dict[int, list[Span]] = {}
        first, last = into.span
        wanted = [
            (chunk, ref)
            for ref in rows
            for chunk in self._mapped.get(ref, ())
            if chunk.first <= last and chunk.last >= first
        ]
        wanted.sort(key=lambda item: (item[0].file, item[0].begin))
        found = [(rows[ref], chunk, data, ref) for chunk, ref, data in self._pieces(wanted)]
        found.sort(key=lambda item: (item[0], item[1].first))
        for row, chunk, data, ref in found:
            if len(data) < 4 or crc32c(data[:-4]) != int.from_bytes(data[-4:], "big"):
                self._damage.add("a mapped chunk does not match its checksum",
                                 f"chunks_head/{chunk.file}")  # fmt: skip
                continue
            deleted = tuple(self._deleted.get(ref, ()))
            sound = into.chunk(row, chunk.encoding, data[chunk.at - chunk.begin : -4],
                               f"chunks_head/{chunk.file}", deleted)  # fmt: skip
            if sound and not chunk.late:
                covered.setdefault(row, []).append((chunk.first, chunk.last))
        return covered

    def _pieces(self, wanted: Sequence[tuple[Mapped, int]]) -> Iterator[tuple[Mapped, int, bytes]]:
        """The bytes of each chunk, its head among them; neighbours are read in one piece."""
        name, piece, begin = "", b"", 0
        for number, (chunk, ref) in enumerate(wanted):
            end = chunk.at + chunk.size + 4
            if chunk.file != name or end > begin + len(piece):
                name, begin = chunk.file, chunk.begin
                size = max(_reach(wanted, number), end) - begin
                try:
                    piece = self._files[name].read(begin, size)
                except OSError as fault:
                    piece = b""
                    self._damage.add(f"mapped chunks cannot be read: {fault.strerror or fault}",
                                     f"chunks_head/{name}")  # fmt: skip
            yield chunk, ref, piece[chunk.begin - begin : end - begin]

    # --- the log ---

    def _read_log(self) -> None:
        """Everything but the samples is noted; they are kept, ordered by series."""
        runs: Runs | None = Runs(KEPT)
        cover: Cover | None = None
        for batch in self._batches(first_time=True):
            if cover is None:
                cover = self._cover()
            found = wal.samples_of(batch, cover.outside if cover.works else None)
            if found[1].size:
                self._widen(int(found[1].min()), int(found[1].max()))
                runs = self._put(runs, found)
        try:
            if runs is not None:
                runs.close()
        except OSError:
            runs = None
        self._kept = runs
        if runs is not None:
            strange = np.setdiff1d(runs.refs(), np.array(sorted(self._labels), dtype=np.int64))
            self._damage.add("samples of a series the log does not name", "wal",
                             runs.count(strange))  # fmt: skip

    def _cover(self) -> Cover:
        """The mapped chunks of the series that were named so far."""
        return Cover({
            ref: [(chunk.first, chunk.last) for chunk in self._mapped.get(ref, ())
                  if chunk.sound and not chunk.late]
            for ref in self._labels
        })  # fmt: skip

    def _put(self, runs: Runs | None, found: Loose) -> Runs | None:
        """None once the temporary folder is full."""
        try:
            if runs is not None:
                runs.add(found)
        except OSError:
            return None
        return runs

    def _batches(self, *, first_time: bool) -> Iterator[list[bytes]]:
        """The records of samples; of the others is taken note the first time."""
        damage = self._damage if first_time else Damage()
        batch: list[bytes] = []
        size = 0
        for record in self._records(damage):
            if record[0] == wal.SAMPLES:
                batch.append(record)
                size += len(record)
                if size >= BATCH_BYTES or len(batch) >= BATCH_RECORDS:
                    yield batch
                    batch, size = [], 0
            elif first_time:
                self._other(record)
        if batch:
            yield batch

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


def _reach(wanted: Sequence[tuple[Mapped, int]], number: int) -> int:
    """Where the chunks end that follow this one close behind."""
    chunk = wanted[number][0]
    end = chunk.at + chunk.size + 4
    for following, _ in wanted[number + 1 : number + 4096]:
        if following.file != chunk.file or following.begin - end > 4096:
            break
        if following.at + following.size + 4 - chunk.begin > PIECE_BYTES:
            break
        end = following.at + following.size + 4
    return end


def _undeleted(
    rows: Ints, times: Ints, deleted: Mapping[int, Sequence[Span]]
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    kept = np.ones(rows.size, dtype=np.bool_)
    for row, spans in deleted.items():
        for first, last in spans:
            kept &= (rows != row) | (times < first) | (times > last)
    return kept


def _value(labels: Labels, name: str) -> str:
    for key, value in labels:
        if key == name:
            return value
    return ""
