"""
The GPUs of a run as measured: means over stretches of time, who was at work, and how each
stands beside its peers.

Only GPUs at work are compared, with GPUs of their kind at work in the same stretch: idle ones,
and those of another job, have nothing to say of this one's load.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil, isfinite
from statistics import median
from typing import TYPE_CHECKING

from flatline.facts import Facts
from flatline.model import Place, QueryCite
from flatline.signals import ACTIVITY

if TYPE_CHECKING:
    from flatline.series.answer import Answer, Row

BUSY_RATIO = 0.05
"""Activity above this is work: idle GPUs measure 0.00 to 0.01, and a GPU that waits in a
collective keeps its engine busy."""
PEERS = 3
"""Fewer peers at work have no usual value."""
MADS = 5.0
"""Beyond the peers' spread: this many median absolute deviations, 5 / 1.48 is over 3 sigma."""
SAMPLES_EACH = 2
STRETCHES, SHORTEST_S, LONGEST_S = 48, 60, 600
"""Signals are read as means over this many stretches: single readings are noisy (an idle AMD
compute die shows 132 MHz between two kernels)."""


@dataclass(frozen=True, slots=True)
class Readings:
    """An answer with its rows by GPU; a place that has several rows is left out."""

    answer: Answer
    rows: Mapping[Place, Row]

    def value(self, place: Place, time: float) -> float | None:
        """The finite value at a time."""
        row = self.rows.get(place)
        found = None if row is None else row.at(time)
        return found if found is not None and isfinite(found) else None

    def cite(self, place: Place, time: float, text: str) -> QueryCite | None:
        """That value as evidence."""
        if self.value(place, time) is None:
            return None
        cite: QueryCite = self.answer.cite(self.rows[place], text, at=time)
        return cite


def readings(answer: Answer | None) -> Readings | None:
    """The rows of an answer that are a GPU's; None where there is none."""
    if answer is None or not answer.rows:
        return None
    rows: dict[Place, Row] = {}
    again: set[Place] = set()
    for row in answer.rows:
        again |= {row.place} & rows.keys()
        rows[row.place] = row
    kept = {place: row for place, row in rows.items() if place not in again and place.gpu}
    return Readings(answer, kept) if kept else None


@dataclass(frozen=True, slots=True)
class Stretches:
    """The run's window cut into stretches of `length_s`, each named by its end."""

    start: datetime
    first: datetime
    end: datetime
    length_s: int

    def means(self, facts: Facts, signal: str) -> Readings | None:
        """The mean of a signal over each stretch."""
        query = f"avg_over_time({signal}[{self.length_s}s])"
        step_s = float(self.length_s)
        return readings(facts.series(query, start=self.first, end=self.end, step_s=step_s))

    def median_at_work(
        self, facts: Facts, signal: str, gpus: Gpus, time: float
    ) -> QueryCite | None:
        """The median of a signal over all GPUs at work in one stretch, as one query."""
        mean, work = (
            f"avg_over_time({name}[{self.length_s}s])" for name in (signal, gpus.measure)
        )
        query = f"quantile(0.5, {mean} and on (host, gpu) ({work} > {BUSY_RATIO}))"
        moment = datetime.fromtimestamp(time, UTC)
        answer = facts.series(query, start=moment, end=moment)
        if not answer or len(answer.rows) != 1:
            return None
        cite: QueryCite = answer.cite(answer.rows[0], "median of the GPUs at work")
        return cite

    def samples(self, facts: Facts, signal: str, each: int) -> Readings | None:
        """A signal as it stands at so many times of each stretch."""
        step_s = float(max(1, self.length_s // each))
        return readings(facts.series(signal, start=self.start, end=self.end, step_s=step_s))


def stretches(facts: Facts, signal: str) -> Stretches | None:
    """The window cut so that a stretch holds several samples of a signal; None without any."""
    if facts.window is None:
        return None
    start, end = facts.window
    span_s = max(1, ceil((end - start).total_seconds()))
    query = f"count_over_time({signal}[{span_s}s])"
    taken = readings(facts.series(query, start=end, end=end))
    if taken is None:
        return None
    interval_s = span_s / max(1.0, median(row.last for row in taken.rows.values()))
    length_s = min(max(SHORTEST_S, ceil(span_s / STRETCHES)), LONGEST_S)
    length_s = max(length_s, ceil(SAMPLES_EACH * interval_s))
    first = min(start.timestamp() + length_s, end.timestamp())
    return Stretches(start, datetime.fromtimestamp(first, UTC), end, length_s)


@dataclass(frozen=True, slots=True)
class Gpus:
    """
    Which GPUs were at work in which stretches, and of what kind each is.

    `measure` is the signal that tells.  A kind is the model's name, or whatever else tells
    unlike devices apart; None is unknown.
    """

    measure: str
    activity: Readings
    busy: Mapping[Place, tuple[float, ...]]
    kinds: Mapping[Place, str | None]

    def peers(self, place: Place, time: float) -> list[Place]:
        """The other GPUs of the same kind at work in that stretch."""
        kind = self.kinds.get(place)
        return [
            other
            for other, times in self.busy.items()
            if other != place and self.kinds.get(other) == kind and time in times
        ]

    def usual(self, signal: Readings | None, place: Place, time: float) -> float | None:
        """The median of a signal over its peers; None for too few."""
        if signal is None:
            return None
        found = [v for p in self.peers(place, time) if (v := signal.value(p, time)) is not None]
        return median(found) if len(found) >= PEERS else None

    def part(self, signal: Readings | None, place: Place, time: float) -> float | None:
        """A GPU's value as a part of its peers' median."""
        own = None if signal is None else signal.value(place, time)
        usual = self.usual(signal, place, time)
        return None if own is None or not usual else own / usual


def at_work(facts: Facts, cut: Stretches, kind: Callable[[Place, Row], str | None]) -> Gpus | None:
    """The GPUs at work by the best measure of activity there is; None without any."""
    for name in ACTIVITY:
        activity = cut.means(facts, name)
        if activity is not None:
            busy = {
                place: times
                for place, row in activity.rows.items()
                if (times := tuple(t for t, share in row.points() if share > BUSY_RATIO))
            }
            kinds = {place: kind(place, row) for place, row in activity.rows.items()}
            return Gpus(name, activity, busy, kinds)
    return None


Beside = Mapping[Place, Mapping[float, tuple[float, bool]]]
"""Of a GPU and stretch: its value as a part of its peers' median, and whether it lies below
them by more than their spread."""


def beside_peers(gpus: Gpus, signal: Readings) -> Beside:
    """Every busy GPU beside its peers, stretch by stretch; where they are too few, nothing."""
    groups: dict[tuple[str | None, float], list[tuple[float, str, Place]]] = {}
    for place, times in gpus.busy.items():
        kind, name, row = gpus.kinds.get(place), str(place), signal.rows.get(place)
        values = {} if row is None else dict(row.points())
        for time in times:
            value = values.get(time, 0.0)
            if value > 0 and isfinite(value):
                groups.setdefault((kind, time), []).append((value, name, place))
    out: dict[Place, dict[float, tuple[float, bool]]] = {}
    for (_, time), members in groups.items():
        if len(members) <= PEERS:
            continue
        members.sort(key=lambda member: member[:2])
        ordered = [value for value, _, _ in members]
        middle = median(ordered)
        spread = MADS * median(abs(value - middle) for value in ordered)
        for rank, (value, _, place) in enumerate(members):
            usual = _median_without(ordered, rank)
            out.setdefault(place, {})[time] = (value / usual, usual - value > spread)
    return out


def _median_without(ordered: Sequence[float], rank: int) -> float:
    """The median of the others."""

    def at(index: int) -> float:
        return ordered[index if index < rank else index + 1]

    count = len(ordered) - 1
    return (at((count - 1) // 2) + at(count // 2)) / 2
