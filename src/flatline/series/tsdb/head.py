"""
What a server had not yet put into a block: chunks it had mapped, the log, late samples.

The log holds every sample since its last checkpoint, the mapped chunks most of them again.  The
log has no index: it is read once, from one end to the other, and kept ordered by series, in memory
or in the temporary folder (`runs`).  Layouts: `tsdb/docs/format/head_chunks.md`, `wal.md`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from flatline.errors import FormatError
from flatline.series.matching import Matcher, accepts
from flatline.series.storage import NAME, Ints, Labels
from flatline.series.tsdb import wal
from flatline.series.tsdb.cover import Cover, uncovered
from flatline.series.tsdb.files import listed
from flatline.series.tsdb.mapped import Mapped
from flatline.series.tsdb.pieces import Damage, Selection, Span
from flatline.series.tsdb.runs import Loose, Runs

KEPT = 24_000_000
"""Samples of the log that are kept in memory, at 24 bytes each until they are in order; those of a
longer log lie in the temporary folder."""
BATCH_BYTES = 8 << 20
"""Arrays of so many samples come from memory that was used before (up to 32 MB of glibc's)."""
BATCH_RECORDS = 1 << 14


class Head:
    """Raises OSError where the folder cannot be listed."""

    def __init__(self, folder: Path, damage: Damage) -> None:
        self._folder = folder
        self._damage = damage
        self._labels: dict[int, Labels] = {}
        self._by_name: dict[str, list[int]] = {}
        self._deleted: dict[int, list[Span]] = {}
        self._mapped = Mapped(folder / "chunks_head", damage)
        self._kept: Runs | None = None
        self._span = self._mapped.span
        self._read_log()
        orphans = len(set(self._mapped.refs.tolist()) - self._labels.keys())
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
        wanted = np.array(refs, dtype=np.int64)
        row_of = np.array([rows[ref] for ref in refs], dtype=np.int64)
        deleted = {rows[ref]: spans for ref, spans in self._deleted.items() if ref in rows}
        covered = self._mapped.select(wanted, row_of, deleted, into)
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

    # --- the log ---

    def _read_log(self) -> None:
        """Everything but the samples is noted; they are kept, ordered by series."""
        runs: Runs | None = Runs(KEPT)
        cover: Cover | None = None
        for batch in self._batches(first_time=True):
            if cover is None:
                cover = Cover(self._mapped.cover(np.array(list(self._labels), dtype=np.int64)))
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


def _undeleted(
    rows: Ints, times: Ints, deleted: Mapping[int, Sequence[Span]]
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    kept = np.ones(rows.size, dtype=np.bool_)
    some = np.flatnonzero(np.isin(rows, list(deleted)))
    some = some[np.argsort(rows[some], kind="stable")]
    for row, spans in deleted.items():
        part = some[slice(*np.searchsorted(rows[some], (row, row + 1)))]
        for first, last in spans:
            kept[part] &= (times[part] < first) | (times[part] > last)
    return kept


def _value(labels: Labels, name: str) -> str:
    for key, value in labels:
        if key == name:
            return value
    return ""
