"""
Counters of faults that should stand still: what they rose by within the run, and when.

They are small and run since boot, so only differences of raw samples count: extrapolation makes
half an error of one.  A series that first appears within the run began with an error; one that
was reset counts from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil, inf
from typing import TYPE_CHECKING

from flatline.facts import Facts
from flatline.judging.timeline import instant
from flatline.model import Place, QueryCite

if TYPE_CHECKING:
    from flatline.series.answer import Answer, Row

EARLY_S = 300
"""A series that is there this long after the beginning was there at it: the time for which a
sample stands for its series."""


@dataclass(frozen=True, slots=True)
class Counted:
    """
    One counter of one place over a window: `rose` by so much, to `last`; `at` (POSIX seconds) is
    the first moment it is seen higher, None where it never was.

    `cite` shows the rise, or the last value where there was none.
    """

    signal: str
    place: Place
    last: float
    rose: float
    at: float | None
    cite: QueryCite
    began_late: bool = False


def counted(facts: Facts, signal: str, start: datetime, end: datetime) -> tuple[Counted, ...]:
    """Every series of a signal that stands above zero at the end of start..end; empty where
    nothing carries it.  Of those at zero nothing is cited: a citation is a query of its own."""
    if not facts.measured(signal):
        return ()
    first, last = start.timestamp(), end.timestamp()
    span_s = max(1, ceil(last - first))
    now = instant(facts, f"last_over_time({signal}[{span_s}s])", last)
    above = _keyed(() if now is None else (row for row in now.rows if 0 < row.last < inf))
    if now is None or not above:
        return ()
    most, least, resets = (
        _values(instant(facts, f"{name}({signal}[{span_s}s])", last), above)
        for name in ("max_over_time", "min_over_time", "resets")
    )
    late = _late(facts, signal, above, first)
    out = []
    for key, row in above.items():
        value = row.last
        since = resets.get(key, 0.0) > 0 or key in late
        rose = max(0.0, value if since else most.get(key, 0.0) - least.get(key, 0.0))
        cite = None if since or not rose else _rise(facts, signal, row.place, rose, (span_s, last))
        text = f"{signal} rose by {rose:g}" if rose else f"{signal} stayed at {value:g}"
        at = _when(facts, signal, row, first, last) if rose else None
        out.append(Counted(signal, row.place, value, rose, at, cite or now.cite(row, text),
                           key in late))  # fmt: skip
    return tuple(out)


def _rise(
    facts: Facts, signal: str, place: Place, rose: float, span: tuple[int, float]
) -> QueryCite | None:
    """The rise as one query: it is matched over canonical labels, so that it has lost the data's
    own, and stands for a series where the place has but one."""
    length_s, last = span
    query = f"max_over_time({signal}[{length_s}s]) - min_over_time({signal}[{length_s}s])"
    answer = instant(facts, query, last)
    rows = [] if answer is None else [row for row in answer.rows if row.place == place]
    if answer is None or len(rows) != 1 or rows[0].last != rose:
        return None
    cite: QueryCite = answer.cite(rows[0], f"{signal} rose by {rose:g}")
    return cite


def _late(facts: Facts, signal: str, rows: Mapping[_Key, Row], first: float) -> set[_Key]:
    """Series that were not there early though others of the same exporter's place were."""
    early = _values(instant(facts, signal, first + EARLY_S), rows)
    power = instant(facts, "gpu_power_watts", first + EARLY_S)
    alive = {row.place.host for row in power.rows} if power is not None else set()
    return {key for key in rows if key not in early and key[0].host in alive}


def _when(facts: Facts, signal: str, row: Row, first: float, last: float) -> float | None:
    """The first moment of a row's own series at which it is higher than at the beginning."""
    step_s = max(1.0, (last - first) / 240)

    answer: Answer | None = facts.series(
        signal, start=datetime.fromtimestamp(first, UTC), end=datetime.fromtimestamp(last, UTC),
        step_s=step_s,
    )  # fmt: skip
    if answer is None:
        return None
    key = _key(row)
    for other in answer.rows:
        if _key(other) == key and len(other):
            lowest = other.values[0] if other.times[0] - first < EARLY_S else 0.0
            return next((t for t, v in other.points() if v > lowest), None)
    return None


_Key = tuple[Place, tuple[tuple[str, str], ...]]


def _key(row: Row) -> _Key:
    return row.place, tuple(sorted(row.native.items()))


def _keyed(rows: Iterable[Row]) -> dict[_Key, Row]:
    return {_key(row): row for row in rows}


def _values(answer: Answer | None, of: Mapping[_Key, Row]) -> dict[_Key, float]:
    """The values of these series."""
    places = {place for place, _ in of}
    rows = () if answer is None else (row for row in answer.rows if row.place in places)
    return {key: row.last for key, row in _keyed(rows).items()}
