"""
An answer to a canonical query: rows by place, and citations that can be run again.

Families read rows; they never see how the data spells its labels.  `cite` narrows the native
query to the one row and checks that it still gives the value, so that what a verdict shows can
be pasted into Grafana and shows that number alone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import compress
from typing import TYPE_CHECKING, TypeVar

from flatline.model import Gap, Place, QueryCite

if TYPE_CHECKING:
    from flatline.series.promql.evaluate import Matrix
    from flatline.series.storage import Floats, Labels


K = TypeVar("K", bound=Hashable)


class Table:
    """The numbers of an answer's rows: `values[i, j]` of row i at `times[j]`, where `present`."""

    def __init__(self, matrix: Matrix) -> None:
        self.times: tuple[float, ...] = tuple(matrix.times.tolist())
        self.columns = {time: column for column, time in enumerate(self.times)}
        self.values, self.present = matrix.values, matrix.present


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """
    One series of an answer: values at times, in seconds since 1970, where there is one.

    `labels` are the canonical ones (`host`, `gpu`, `model`), `native` those of the data, and
    `exporter` is who told them.  The numbers stay in the table of all rows until they are asked
    for: a fleet has thousands.
    """

    place: Place
    labels: Mapping[str, str]
    native: Mapping[str, str]
    table: Table
    number: int
    exporter: str

    @property
    def times(self) -> tuple[float, ...]:
        return tuple(time for time, _ in self.points())

    @property
    def values(self) -> tuple[float, ...]:
        return tuple(value for _, value in self.points())

    def __len__(self) -> int:
        return int(self.table.present[self.number].sum())

    def points(self) -> Iterator[tuple[float, float]]:
        """(time, value), oldest first."""
        return self._points(0, len(self.table.times))

    def between(self, after: float, until: float) -> Iterator[tuple[float, float]]:
        """The same, for after < time <= until."""
        return self._points(*(bisect_right(self.table.times, end) for end in (after, until)))

    def _points(self, first: int, last: int) -> Iterator[tuple[float, float]]:
        values, present = (part[self.number, first:last].tolist()
                           for part in (self.table.values, self.table.present))  # fmt: skip
        return compress(zip(self.table.times[first:last], values, strict=True), present)

    @property
    def still(self) -> bool:
        """Whether all of its values are the same one, but for what rounding makes of its mean."""
        values = self.table.values[self.number][self.table.present[self.number]]
        return not len(values) or bool((abs(values - values[0]) <= STILL * abs(values[0])).all())

    @property
    def last(self) -> float:
        """The newest value. Raises IndexError where there is none."""
        return float(self.table.values[self.number][self.table.present[self.number]][-1])

    def at(self, time: float) -> float | None:
        """The value at exactly this time."""
        column = self.table.columns.get(time)
        if column is None or not self.table.present[self.number, column]:
            return None
        return float(self.table.values[self.number, column])


def grid(rows: Collection[Row], times: Sequence[float]) -> Floats:
    """The finite values of rows of one answer at these times, [row x time]; NaN elsewhere."""
    import numpy as np  # what judges is imported without it

    out = np.full((len(rows), len(times)), np.nan)
    table = next((row.table for row in rows), None)
    if table is not None:
        there = [at for at, time in enumerate(times) if time in table.columns]
        columns = [table.columns[times[at]] for at in there]
        found = table.values[np.ix_([row.number for row in rows], columns)]
        out[:, there] = np.where(np.isfinite(found), found, np.nan)
    return out


def by_exporter(rows: Mapping[K, Row]) -> dict[str, list[K]]:
    """The keys of rows by who told them: what two exporters mean by a signal may differ."""
    out: dict[str, list[K]] = {}
    for each, row in rows.items():
        out.setdefault(row.exporter, []).append(each)
    return out


Pin = Callable[[Row, float], tuple[str, float]]
"""Narrows an answer's native query to one row at one time: the query and its value."""
STILL = 1e-9
"""Relative; the mean of a constant differs from it by some 1e-16 for each sample."""


@dataclass(frozen=True, slots=True)
class Answer:
    """
    What a source says to a canonical query over start..end.

    `query` is the native query that ran, of several exporters joined by `or`; `missing` names
    signals nothing read carries; then there are no rows.
    """

    canonical: str
    query: str
    engine: str
    source: str
    unit: str
    start: datetime
    end: datetime
    step_s: float
    rows: tuple[Row, ...] = ()
    missing: tuple[Gap, ...] = ()
    pin: Pin | None = field(default=None, compare=False, repr=False)
    pods: Mapping[str, str] = field(default_factory=dict)
    """The host of each pod whose label rows lack, as those of one GPU are joined."""

    def __bool__(self) -> bool:
        return bool(self.rows)

    def of(self, place: Place) -> Row | None:
        """The row of a place, if there is exactly one."""
        found = [row for row in self.rows if row.place == place]
        return found[0] if len(found) == 1 else None

    def cite(
        self,
        row: Row,
        text: str,
        *,
        at: float | None = None,
        unit: str | None = None,
    ) -> QueryCite:
        """
        The value of a row at one of its times (the last by default) as evidence.

        The citation is an instant query at that time.  Raises ValueError where the row has no
        value there.
        """
        time = row.times[-1] if at is None and row.times else at
        if time is None or row.at(time) is None:
            raise ValueError(f"{self.canonical} has no value at {time} on {row.place}")
        assert self.pin is not None
        query, value = self.pin(row, time)
        moment = datetime.fromtimestamp(time, UTC)
        return QueryCite(
            source=self.source,
            query=query,
            engine=self.engine,
            start=moment,
            end=moment,
            step_s=0.0,
            value=value,
            unit=self.unit if unit is None else unit,
            text=text,
            place=row.place,
        )


Placed = tuple[Place, dict[str, str], dict[str, str]]
"""A place, the canonical labels it was told by, and those of the data."""


def place_of(labels: Mapping[str, str]) -> Place:
    """The place canonical labels name."""
    return Place(host=labels.get("host"), gpu=labels.get("gpu"), device=labels.get("device"))


def rows_of(
    series: Sequence[Labels],
    table: Table,
    first: int,
    exporter: tuple[str, Callable[[Mapping[str, str]], dict[str, str]]],
    known: dict[Labels, Placed],
) -> Iterator[Row]:
    """The series of an exporter's answer, which stand in the table from row `first` on, by place:
    its name and how it reads labels; `known` are those met before."""
    from flatline.series.storage import NAME  # as in `grid`

    name, canonical = exporter
    for number, labels in enumerate(series, first):
        placed = known.get(labels)
        if placed is None:
            native = {label: value for label, value in labels if label != NAME}
            own = canonical(native)
            placed = known[labels] = place_of(own), own, native
        yield Row(*placed, table, number, name)
