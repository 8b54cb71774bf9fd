"""
An answer to a canonical query: rows by place, and citations that can be run again.

Families read rows; they never see how the data spells its labels.  `cite` narrows the native
query to the one row and checks that it still gives the value, so that what a verdict shows can
be pasted into Grafana and shows that number alone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import compress
from typing import TYPE_CHECKING

from flatline.model import Gap, Place, QueryCite

if TYPE_CHECKING:
    from flatline.series.promql.evaluate import Matrix
    from flatline.series.storage import Labels


@dataclass(frozen=True, slots=True)
class Row:
    """
    One series of an answer: values at times, in seconds since 1970, where there is one.

    `labels` are the canonical ones (`host`, `gpu`, `model`), `native` those of the data.
    """

    place: Place
    labels: Mapping[str, str]
    native: Mapping[str, str]
    times: tuple[float, ...]
    values: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.values)

    def points(self) -> Iterator[tuple[float, float]]:
        """(time, value), oldest first."""
        return zip(self.times, self.values, strict=True)

    def between(self, after: float, until: float) -> Iterator[tuple[float, float]]:
        """The same, for after < time <= until."""
        part = slice(bisect_right(self.times, after), bisect_right(self.times, until))
        return zip(self.times[part], self.values[part], strict=True)

    @property
    def last(self) -> float:
        """The newest value. Raises IndexError where there is none."""
        return self.values[-1]

    def at(self, time: float) -> float | None:
        """The value at exactly this time."""
        index = bisect_right(self.times, time) - 1
        if index < 0 or self.times[index] != time:
            return None
        return self.values[index]


Pin = Callable[[Row, float], tuple[str, float]]
"""Narrows an answer's native query to one row at one time: the query and its value."""


@dataclass(frozen=True, slots=True)
class Answer:
    """
    What a source says to a canonical query over start..end.

    `query` is the native query that ran, `missing` names signals nothing read carries; then
    there are no rows.
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
    matrix: Matrix,
    canonical: Callable[[Mapping[str, str]], dict[str, str]],
    known: dict[Labels, Placed],
) -> Iterator[Row]:
    """The series of a native answer by place; `known` are those of labels met before."""
    import numpy as np  # what judges reads answers without it

    from flatline.series.storage import NAME

    times, values = tuple(matrix.times.tolist()), matrix.values.tolist()
    whole = np.all(matrix.present, axis=1)
    for index, labels in enumerate(matrix.labels):
        placed = known.get(labels)
        if placed is None:
            native = {name: value for name, value in labels if name != NAME}
            own = canonical(native)
            placed = known[labels] = place_of(own), own, native
        when, said = times, values[index]
        if not whole[index]:
            there = matrix.present[index].tolist()
            when, said = tuple(compress(times, there)), compress(said, there)
        yield Row(*placed, when, tuple(said))
