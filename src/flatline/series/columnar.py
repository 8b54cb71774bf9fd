"""
A folder of Parquet files as a store: a selector and a window read what they need of it.

    strings.parquet   text                       every label name and value once
    labels.parquet    series, name, value        a row for each label of each series, by series;
                                                 those of one metric lie together
    times.parquet     grid, time_ms              the times of one scrape's series stand once
    chunks.parquet    series, grid, kind, part,  what a series holds in a stretch of time: its
                      first, scale, unit, base   times, and where its numbers lie
    odd.parquet       chunk, place, bits         what no integer can carry (NaN, infinities, -0)
    part-00000.parquet  number                   what the chunks store (`columnar_codec`)

Everything but the parts is read when it is first needed and held as arrays; labels become texts
for the series that are asked for.  A table that is missing or damaged, and a part that is, is a
gap and what it held is left out.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

import numpy as np

from flatline.errors import FormatError, QueryRejected
from flatline.model import Gap
from flatline.series.columnar_codec import BITS, CONSTANT, FACTORS, decode, spread
from flatline.series.columnar_files import MAX_ROWS, read_numbers, read_texts
from flatline.series.columnar_labels import masked
from flatline.series.matching import Matcher, accepts
from flatline.series.storage import NAME, Floats, Ints, Labels, Series

FORMAT: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "labels": ("series", "name", "value"),
        "times": ("grid", "time_ms"),
        "chunks": ("series", "grid", "kind", "part", "first", "scale", "unit", "base"),
        "odd": ("chunk", "place", "bits"),
    }
)
MAX_PART = 1 << 24
"""Numbers of a part: a writer stops at half a million and the chunk that goes beyond."""
MAX_LABELS = 1 << 24
"""Labels of all series, two million with eight each: 400 MB, and rows that are alike take no
place in the file."""
MAX_SAMPLES = 1 << 27
"""Of one selection, 2 GiB: 23,000 series over 24 h; a chunk that stands still costs nothing, and
a hostile folder may announce any number of them."""
REMEMBERED = 16_000_000
"""Samples of selections that are remembered: a family asks the same series several times."""
COLUMNS = 256
"""Columns of label values held, one for each label and metric: 80 kB for 10,000 series."""
LONG = 64
"""Runs of this length on are copied one by one."""
PARTS = 24
"""Parts held as they were read, 2 to 4 MB each: a citation narrows a query to one series."""


def part_name(number: int) -> str:
    return f"part-{number:05d}.parquet"


def recognise(folder: Path, names: Collection[str]) -> bool:
    """Whether a folder with these files inside is such a store."""
    return all(f"{table}.parquet" in names for table in (*FORMAT, "strings"))


class ColumnarStore:
    """Raises FormatError where the tables that say what there is cannot be read."""

    def __init__(self, folder: Path, source: str, damaged: frozenset[str] = frozenset()) -> None:
        """`damaged` names files that are not to be read."""
        self.folder = folder
        self._damaged = damaged
        self._source = source
        self._gaps: dict[Gap, None] = {}
        self._strings = read_texts(self._sound("strings.parquet"), 1 << 24)
        series, self._label_names, self._label_values = self._table("labels")
        self._offsets = _offsets(series, "labels.parquet")
        grid, self._times_ms = self._table("times")
        self._grids = _offsets(grid, "times.parquet")
        self._chunks = dict(zip(FORMAT["chunks"], self._table("chunks"), strict=True))
        self._odd = self._table("odd")
        self._check()
        self._strings, self._label_values = masked(
            self._strings, self._label_names, self._label_values
        )
        self._parts: OrderedDict[int, Ints] = OrderedDict()
        self._bad_parts: set[int] = set()
        self._selected: OrderedDict[tuple[tuple[Matcher, ...], bytes], Series] = OrderedDict()
        self._remembered = 0
        self._timed: tuple[bytes, Floats] = (b"", np.empty(0))
        self._coded: dict[tuple[str, int, int], Ints] = {}
        self._known: dict[int, Labels] = {}

    def _table(self, name: str) -> list[Ints]:
        most = MAX_LABELS if name == "labels" else MAX_ROWS
        columns = read_numbers(self._sound(f"{name}.parquet"), FORMAT[name], most)
        return [column.astype(np.int64) for column in columns]

    def _sound(self, name: str) -> Path:
        if name in self._damaged:
            raise FormatError(f"{name} does not match its hash")
        return self.folder / name

    def _check(self) -> None:
        """That every number that names a row names one that is there."""
        chunks, size = self._chunks, len(self._chunks["series"])
        bounds = (
            ("a text", self._label_names, len(self._strings)),
            ("a text", self._label_values, len(self._strings)),
            ("a series", chunks["series"], self._offsets.size - 1),
            ("times", chunks["grid"], self._grids.size - 1),
            ("a kind", chunks["kind"], BITS + 1),
            ("a scale", chunks["scale"], FACTORS.size),
            ("a chunk", self._odd[0], size),
        )
        for what, column, limit in bounds:
            if column.size and not (column.min() >= 0 and column.max() < limit):
                raise FormatError(f"it names {what} that is not there")
        if np.any(np.diff(self._times_ms)[np.diff(self._grid_of()) == 0] <= 0):
            raise FormatError("its times do not rise")
        if np.any(np.diff(self._odd[0]) < 0):
            raise FormatError("its odd values are out of order")
        sizes = self._sizes[self._odd[0]] if size else np.empty(0, dtype=np.int64)
        if np.any(self._odd[1] < 0) or np.any(self._odd[1] >= sizes):
            raise FormatError("it names a sample that is not there")

    def _grid_of(self) -> Ints:
        return np.repeat(np.arange(self._grids.size - 1), np.diff(self._grids))

    @cached_property
    def _sizes(self) -> Ints:
        """Samples of each chunk."""
        sizes: Ints = np.diff(self._grids)[self._chunks["grid"]]
        return sizes

    # --- what there is ---

    @property
    def gaps(self) -> tuple[Gap, ...]:
        return tuple(self._gaps)

    @cached_property
    def span(self) -> tuple[float, float] | None:
        if not self._times_ms.size:
            return None
        return float(self._times_ms.min()) / 1000.0, float(self._times_ms.max()) / 1000.0

    def times_s(self) -> Floats:
        """Every time that some sample has, in order."""
        times: Floats = np.unique(self._times_ms) / 1000.0
        return times

    @cached_property
    def _codes(self) -> dict[str, int]:
        return {text: code for code, text in enumerate(self._strings)}

    @cached_property
    def _by_metric(self) -> dict[str, tuple[int, int]]:
        """The series of each metric, first and one past the last."""
        named = self._column(NAME)
        edges = np.flatnonzero(np.diff(named, prepend=-2, append=-2))
        found: dict[str, tuple[int, int]] = {}
        for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            code = int(named[first])
            metric = self._strings[code] if code >= 0 else ""
            if metric in found:
                raise FormatError(f"the series of {metric} do not lie together")
            found[metric] = (first, last)
        return found

    def _column(self, label: str, first: int = 0, last: int | None = None) -> Ints:
        """The code of a label's value for series first..last, -1 where one has none."""
        last = self._offsets.size - 1 if last is None else last
        key = label, first, last
        if key in self._coded:
            return self._coded[key]
        if len(self._coded) >= COLUMNS:
            self._coded.clear()
        out = self._coded[key] = np.full(last - first, -1, dtype=np.int64)
        code = self._codes.get(label)
        if code is not None:
            begin, end = self._offsets[first], self._offsets[last]
            at = np.flatnonzero(self._label_names[begin:end] == code) + begin
            rows = np.searchsorted(self._offsets, at, side="right") - 1
            out[rows - first] = self._label_values[at]
        return out

    def names(self) -> Mapping[str, frozenset[str]]:
        return _Names(self)

    def labels(self, matchers: Sequence[Matcher]) -> Sequence[Labels]:
        return self._labelled(self._matching(tuple(matchers)))

    def label_values(self, metric: str, label: str) -> frozenset[str]:
        """Values of a label on a metric's series, without making their labels."""
        first, last = self._by_metric.get(metric, (0, 0))
        codes = np.unique(self._column(label, first, last))
        return frozenset(self._strings[code] for code in codes.tolist() if code >= 0)

    def _labelled(self, rows: Ints) -> tuple[Labels, ...]:
        """The labels of series, made together: each pair that occurs once."""
        known = self._known
        new = np.array([row for row in rows.tolist() if row not in known], dtype=np.int64)
        if new.size:
            sizes = np.diff(self._offsets)[new]
            at = spread(self._offsets[new], sizes)
            coded = self._label_names[at] * len(self._strings) + self._label_values[at]
            codes, which = np.unique(coded, return_inverse=True)
            split = (divmod(code, len(self._strings)) for code in codes.tolist())
            pairs = [(self._strings[name], self._strings[value]) for name, value in split]
            told = [pairs[code] for code in which.tolist()]
            ends = np.cumsum(sizes).tolist()
            for row, size, end in zip(new.tolist(), sizes.tolist(), ends, strict=True):
                known[row] = tuple(sorted(pair for pair in told[end - size : end] if pair[0]))
        return tuple(known[row] for row in rows.tolist())

    # --- selecting ---

    def _matching(self, matchers: tuple[Matcher, ...]) -> Ints:
        """The series that satisfy every matcher, in order."""
        exact = [m.value for m in matchers if m.name == NAME and m.op == "="]
        first, last = (0, self._offsets.size - 1)
        if exact:
            first, last = self._by_metric.get(exact[0], (0, 0))
        kept = np.ones(last - first, dtype=np.bool_)
        for matcher in matchers:
            if not kept.any():
                break
            column = self._column(matcher.name, first, last)
            if matcher.op == "=" and matcher.value:
                kept &= column == self._codes.get(matcher.value, -2)
                continue
            test = accepts(matcher)
            codes, which = np.unique(column, return_inverse=True)
            said = [test("" if code < 0 else self._strings[code]) for code in codes.tolist()]
            kept &= np.array(said, dtype=np.bool_)[which]
        return np.flatnonzero(kept) + first

    @cached_property
    def _by_series(self) -> tuple[Ints, Ints]:
        """The chunks in order of series and time, and where those of each series begin."""
        start_ms = self._times_ms[self._grids[self._chunks["grid"]]]
        order = np.lexsort((start_ms, self._chunks["series"]))
        counts = np.bincount(self._chunks["series"], minlength=self._offsets.size - 1)
        return order, np.concatenate(([0], np.cumsum(counts))).astype(np.int64)

    def _touching(self, rows: Ints, first: float, last: float) -> Ints:
        """The chunks of these series that touch first..last seconds, by series and time."""
        order, begins = self._by_series
        found = order[spread(begins[rows], np.diff(begins)[rows])]
        grids = self._chunks["grid"][found]
        start = self._times_ms[self._grids[grids]] / 1000.0
        end = self._times_ms[self._grids[grids + 1] - 1] / 1000.0
        kept: Ints = found[(start <= last) & (end >= first)]
        return kept

    def select(self, matchers: Sequence[Matcher], start: float, end: float) -> Series:
        """Samples of the series that satisfy every matcher: those of whole chunks that touch
        start..end."""
        wanted = tuple(matchers)
        chunks = self._touching(self._matching(wanted), start, end)
        key = (wanted, chunks.tobytes())
        if key in self._selected:
            self._selected.move_to_end(key)
            return self._selected[key]
        found = self._selected[key] = self._read(chunks)
        self._remembered += found.times.size
        while self._remembered > REMEMBERED and len(self._selected) > 1:
            self._remembered -= self._selected.popitem(last=False)[1].times.size
        return found

    def _read(self, chunks: Ints) -> Series:
        """The samples of chunks, which stand in order of series and time."""
        sizes = self._sizes[chunks]
        if float(sizes.sum(dtype=np.float64)) > MAX_SAMPLES:
            raise QueryRejected(f"it needs more than {MAX_SAMPLES} samples at once: ask of fewer"
                                " series or a shorter time")  # fmt: skip
        begins = np.cumsum(sizes) - sizes
        values = np.empty(int(sizes.sum()))
        there = np.ones(chunks.size, dtype=np.bool_)
        parts = self._chunks["part"][chunks]
        kinds = self._chunks["kind"][chunks]
        for kind, part in dict.fromkeys(zip(kinds.tolist(), parts.tolist(), strict=True)):
            at = np.flatnonzero((parts == part) & (kinds == kind))
            if kind != CONSTANT:  # in the order in which they lie
                at = at[np.argsort(self._chunks["first"][chunks[at]], kind="stable")]
            found = self._decoded(kind, part, chunks[at])
            if found is None:
                there[at] = False
            else:
                _put(values, begins[at], sizes[at], found)
        self._put_odd(values, chunks, begins)
        times = self._times(self._chunks["grid"][chunks], sizes)
        if not there.all():
            kept = np.repeat(there, sizes)
            chunks, sizes, times, values = chunks[there], sizes[there], times[kept], values[kept]
        rows, firsts = np.unique(self._chunks["series"][chunks], return_index=True)
        offsets = np.append(np.cumsum(sizes)[firsts] - sizes[firsts], values.size)
        return Series(self._labelled(rows), times, values, offsets)

    def _times(self, grids: Ints, sizes: Ints) -> Floats:
        """The times of chunks: metrics of the same exporters are asked one after the other, and
        theirs are the same."""
        key = grids.tobytes()
        if self._timed[0] != key:
            self._timed = key, self._times_ms[spread(self._grids[grids], sizes)] / 1000.0
        return self._timed[1]

    def _decoded(self, kind: int, part: int, chunks: Ints) -> Floats | None:
        """The values of chunks of one part, one after the other; None where it is damaged."""
        sizes, base = self._sizes[chunks], self._chunks["base"][chunks]
        if kind == CONSTANT:
            return np.repeat(base.view(np.float64), sizes)
        numbers = self._numbers(part)
        first = self._chunks["first"][chunks]
        if numbers is None or first.min() < 0 or int((first + sizes).max()) > numbers.size:
            self._unread(part, "it is shorter than it should be")
            return None
        end = int(first[0] + sizes.sum())
        if np.array_equal(first[1:], first[:-1] + sizes[:-1]):
            wanted = numbers[int(first[0]) : end]
        else:
            wanted = numbers[spread(first, sizes)]
        scale, unit = self._chunks["scale"][chunks], self._chunks["unit"][chunks]
        return decode(kind, wanted, sizes, scale, unit, base)

    def _put_odd(self, values: Floats, chunks: Ints, begins: Ints) -> None:
        of, places, bits = self._odd
        if not of.size:
            return
        first = np.searchsorted(of, chunks, side="left")
        counts = np.searchsorted(of, chunks, side="right") - first
        at = spread(first, counts)
        values.view(np.int64)[np.repeat(begins, counts) + places[at]] = bits[at]

    def _numbers(self, part: int) -> Ints | None:
        if part in self._bad_parts:
            return None
        if part in self._parts:
            self._parts.move_to_end(part)
            return self._parts[part]
        try:
            (numbers,) = read_numbers(self._sound(part_name(part)), ("number",), MAX_PART)
        except FormatError as fault:
            self._unread(part, str(fault))
            return None
        if len(self._parts) >= PARTS:
            self._parts.popitem(last=False)
        self._parts[part] = numbers  # type: ignore[assignment]
        return self._parts[part]

    def _unread(self, part: int, reason: str) -> None:
        if part not in self._bad_parts:
            self._bad_parts.add(part)
            need = "every sample of the metrics"
            self._gaps.setdefault(Gap(need, f"{part_name(part)}: {reason}", self._source))


def _put(values: Floats, begins: Ints, sizes: Ints, found: Floats) -> None:
    """Runs of values into their places."""
    if np.array_equal(begins[1:], begins[:-1] + sizes[:-1]):
        values[int(begins[0]) : int(begins[0]) + found.size] = found
    elif found.size < LONG * sizes.size:
        values[spread(begins, sizes)] = found
    else:
        at = 0
        for begin, size in zip(begins.tolist(), sizes.tolist(), strict=True):
            values[begin : begin + size] = found[at : at + size]
            at += size


def _offsets(which: Ints, name: str) -> Ints:
    """Where the rows of each number begin, for numbers that count up from 0."""
    if not which.size:
        return np.zeros(1, dtype=np.int64)
    steps = np.diff(which)
    if which[0] != 0 or np.any((steps != 0) & (steps != 1)):
        raise FormatError(f"{name} is out of order")
    return np.concatenate((np.flatnonzero(np.diff(which, prepend=-1)), [which.size]))


class _Names(Mapping[str, frozenset[str]]):
    """Metrics with their label names, found when they are asked for."""

    def __init__(self, store: ColumnarStore) -> None:
        self._store = store
        self._found: dict[str, frozenset[str]] = {}

    def __getitem__(self, metric: str) -> frozenset[str]:
        if metric not in self._found:
            store = self._store
            first, last = store._by_metric[metric]
            part = slice(int(store._offsets[first]), int(store._offsets[last]))
            codes = np.unique(store._label_names[part]).tolist()
            self._found[metric] = frozenset(store._strings[code] for code in codes) - {NAME}
        return self._found[metric]

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._store._by_metric if name)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, metric: object) -> bool:
        return bool(metric) and metric in self._store._by_metric
