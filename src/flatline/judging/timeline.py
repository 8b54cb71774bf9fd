"""
The run cut into stretches of time, and what its hosts did in each.

Every signal is asked for on the same stretches, so that hosts can be laid beside one another and
beside the phases of the run's throughput.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from math import ceil, floor, isfinite
from typing import TYPE_CHECKING, TypeVar

from flatline.facts import Facts
from flatline.model import QueryCite

if TYPE_CHECKING:
    from flatline.series.answer import Answer, Row

K = TypeVar("K", bound=Hashable)
STRETCHES, SHORTEST_S = 96, 20
SAMPLES_EACH = 3
"""Samples a stretch holds, so that a rate is had even where one came late."""

COVERED = 0.8
"""Of the stretches in which a host must have been read before it is cleared."""
AGREE = 0.1
"""Of what they read, by which two scrapes of one card may differ: they look at other moments, and
a card that works draws now more and now less."""


@dataclass(frozen=True, slots=True)
class ByHost:
    """An answer with one row a host; a host that has several rows is left out."""

    answer: Answer
    rows: Mapping[str, Row]

    def value(self, host: str, time: float) -> float | None:
        """The finite value of a host at a time."""
        row = self.rows.get(host)
        found = None if row is None else row.at(time)
        return found if found is not None and isfinite(found) else None

    def cite(self, host: str, time: float, text: str) -> QueryCite | None:
        """That value as evidence."""
        if self.value(host, time) is None:
            return None
        cite: QueryCite = self.answer.cite(self.rows[host], text, at=time)
        return cite

    def beside(self, host: str, time: float) -> dict[str, float]:
        """The values at a time of the other hosts that the same exporter tells of."""
        row = self.rows.get(host)
        who = None if row is None else row.exporter
        return {other: value for other, value in self.at(time).items()
                if other != host and self.rows[other].exporter == who}  # fmt: skip

    def covers(self, cut: Timeline) -> bool:
        """Whether every host has values in most stretches: what was not read clears nothing."""
        least = COVERED * len(cut.ends)
        return all(
            sum(self.value(host, end) is not None for end in cut.ends) >= least
            for host in self.rows
        )

    def at(self, time: float) -> dict[str, float]:
        """Every host's value at a time."""
        return {h: v for h in self.rows if (v := self.value(h, time)) is not None}


def by_host(answer: Answer | None) -> ByHost | None:
    """The rows of an answer that are a host's; None where there is none."""
    if answer is None or not answer.rows:
        return None
    kept = alone((row.place.host, row) for row in answer.rows if row.place.host is not None)
    return ByHost(answer, kept) if kept else None


def alone(rows: Iterable[tuple[K, Row]]) -> dict[K, Row]:
    """Those that stand alone under their key, or that alone move of those that tell of the same
    thing: beside the exporter of a host a forgotten one may go on serving its last reading.  A
    namesake in another domain is another thing.  Of several that move and agree, as one card's
    that is scraped twice do, any will do."""
    found: dict[K, list[Row]] = {}
    for key, row in rows:
        found.setdefault(key, []).append(row)
    for key, several in found.items():
        if len(several) > 1 and len({_thing(row) for row in several}) == 1:
            moving = [row for row in several if not row.still]
            found[key] = [min(moving, key=_source)] if _agree(moving) else moving
    return {key: several[0] for key, several in found.items() if len(several) == 1}


def _thing(row: Row) -> tuple[object, ...]:
    """What a row tells of, whoever read it, from whichever port."""
    rest = {name: text for name, text in row.native.items() if name not in ("instance", "job")}
    where = _card(row) or row.native.get("instance", "").rpartition(":")[0]
    return where, frozenset(rest.items())


def _card(row: Row) -> str:
    """Which card of all there are it tells of, by whatever name its host was reached."""
    return row.native.get("UUID", "")


def _agree(rows: Sequence[Row]) -> bool:
    """Whether they tell of one card, and the same of it but for when each was scraped."""
    if len(rows) < 2 or not _card(rows[0]):
        return False
    first, *others = (dict(row.points()) for row in rows)
    for other in others:
        both = first.keys() & other.keys()
        apart = sum(abs(first[at] - other[at]) for at in both)
        if not both or not apart <= AGREE * sum(
            max(abs(first[at]), abs(other[at])) for at in both
        ):  # NaN agrees with nothing
            return False
    return True


def _source(row: Row) -> tuple[str, str]:
    return row.native.get("job", ""), row.native.get("instance", "")


@dataclass(frozen=True)
class Timeline:
    """
    `start`..`end` in stretches of `length_s`, each named by its end (POSIX seconds).

    All are whole seconds: answers are looked up by their exact time.
    """

    start: datetime
    end: datetime
    length_s: int

    @cached_property
    def ends(self) -> tuple[float, ...]:
        first = self.start.timestamp() + self.length_s
        count = int((self.end.timestamp() - first) / self.length_s + 1e-9) + 1
        return tuple(first + n * self.length_s for n in range(max(0, count)))

    def index(self, time: float) -> int | None:
        """Which stretch a moment lies in."""
        at = ceil((time - self.start.timestamp()) / self.length_s) - 1
        return at if 0 <= at < len(self.ends) else None

    def ask(self, facts: Facts, query: str) -> Answer | None:
        """A query with `[w]` for the length of a stretch, answered at the end of each."""
        if not self.ends:
            return None
        first, last = (datetime.fromtimestamp(self.ends[at], UTC) for at in (0, -1))
        text = query.replace("[w]", f"[{self.length_s}s]")
        answer: Answer | None = facts.series(
            text, start=first, end=last, step_s=float(self.length_s)
        )
        return answer

    def hosts(self, facts: Facts, query: str) -> ByHost | None:
        """The same by host."""
        return by_host(self.ask(facts, query))


def instant(facts: Facts, query: str, time: float, exporter: str | None = None) -> Answer | None:
    """A query's answer at one moment, of one exporter alone where it is named."""
    moment = datetime.fromtimestamp(time, UTC)
    answer: Answer | None = facts.series(query, start=moment, end=moment, exporter=exporter)
    return answer


def timeline(
    facts: Facts,
    signals: Iterable[str],
    within: tuple[float, float] | None = None,
    least_s: float = 0.0,
    samples: int = SAMPLES_EACH,
) -> Timeline | None:
    """
    The metrics' window, or the part of it within `within`, cut so that a stretch holds several
    samples of the first of these signals that is carried, and lasts `least_s`.

    None where none is carried or nothing is left.
    """
    if facts.window is None:
        return None
    start, end = (moment.timestamp() for moment in facts.window)
    for signal in signals:
        interval_s = _interval(facts, signal, start, end) if facts.measured(signal) else None
        if interval_s is not None:
            break
    else:
        return None
    if within is not None:
        start, end = max(start, within[0]), min(end, within[1])
    start, end = float(ceil(start)), float(floor(end))
    length_s = ceil(max(SHORTEST_S, (end - start) / STRETCHES, samples * interval_s, least_s))
    if end - start < 2 * length_s:
        return None
    return Timeline(datetime.fromtimestamp(start, UTC), datetime.fromtimestamp(end, UTC), length_s)


def _interval(facts: Facts, signal: str, start: float, end: float) -> float | None:
    """Seconds between samples of a signal, as most of its series have them."""
    span_s = max(1, ceil(end - start))
    answer = instant(facts, f"quantile(0.5, count_over_time({signal}[{span_s}s]))", end)
    if answer is None or not answer.rows:
        return None
    return span_s / max(1.0, answer.rows[0].last)


def usual(
    facts: Facts,
    query: str,
    time: float,
    text: str,
    reduce: str = "quantile(0.5, {})",
    exporter: str | None = None,
) -> QueryCite | None:
    """One number over all places at a moment, their median by default, as one query; over those
    of one exporter where it is named."""
    answer = instant(facts, reduce.format(query), time, exporter)
    if answer is None or len(answer.rows) != 1 or not isfinite(answer.rows[0].last):
        return None
    cite: QueryCite = answer.cite(answer.rows[0], text)
    return cite
