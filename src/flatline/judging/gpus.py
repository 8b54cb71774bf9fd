"""
The GPUs of a run as measured: means over stretches of time, who was at work, and how each
stands beside its peers.

Only GPUs at work are compared, with GPUs of their kind at work in the same stretch: idle ones,
and those of another job, have nothing to say of this one's load.  What two exporters tell is not
compared: one reads the power of a moment and another its mean, one counts reserved memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import compress
from math import ceil, isfinite
from statistics import median
from typing import TYPE_CHECKING

from flatline.facts import Facts
from flatline.judging.timeline import alone
from flatline.model import Place, QueryCite
from flatline.series.answer import grid
from flatline.series.spread import without
from flatline.signals import ACTIVITY

if TYPE_CHECKING:
    from flatline.series.answer import Answer, Row
    from flatline.series.promql.vector import Bools
    from flatline.series.storage import Floats

Kind = tuple[str | None, str]
BUSY_RATIO = 0.05
"""Activity above this is work: idle GPUs measure 0.00 to 0.01, and a GPU that waits in a
collective keeps its engine busy."""
PEERS = 3
"""Fewer peers at work have no usual value."""
MADS = 5.0
"""Beyond the peers' spread: this many median absolute deviations, 5 / 1.48 is over 3 sigma."""
POWER = "gpu_power_watts"
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

    def telling(self) -> set[Place]:
        """The GPUs that ever had a finite value other than 0: few of a fleet, where it names a
        fault."""
        import numpy as np  # where numbers were read alone

        times = next(iter(self.rows.values())).table.times
        said = np.nan_to_num(grid(self.rows.values(), times))
        return {*compress(self.rows, np.any(said, axis=1).tolist())}


def package(read: Readings | None, place: Place) -> Place:
    """The GPU itself or, of one that has no reading, the one numbered before it that has: of the
    two dies of a package (AMD MI200) the first tells the power and the cap of both."""
    if read is None or place in read.rows or not (place.gpu or "").isdecimal():
        return place
    first = replace(place, gpu=str(int(place.gpu or "0") - 1))
    return first if first in read.rows else place


def of_packages(power: Readings | None) -> Readings | None:
    """Without the GPUs that read 0 all the time, which no card draws or is limited to; None where
    none is left."""
    told = None if power is None else power.telling()
    if power is None or not told:
        return None
    return replace(power, rows={place: row for place, row in power.rows.items() if place in told})


def readings(answer: Answer | None) -> Readings | None:
    """The rows of an answer that are a GPU's; None where there is none."""
    if answer is None or not answer.rows:
        return None
    kept = alone((row.place, row) for row in answer.rows if row.place.gpu)
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
        self, facts: Facts, signal: str, gpus: Gpus, place: Place, time: float
    ) -> QueryCite | None:
        """The median of a signal over all GPUs at work in one stretch, as one query: those that
        the same exporter tells of."""
        mean, work = (
            f"avg_over_time({name}[{self.length_s}s])" for name in (signal, gpus.measure)
        )
        drawn = " > 0" if signal == POWER else ""  # the second die of a package reads 0 W
        query = f"quantile(0.5, {mean}{drawn} and on (host, gpu) ({work} > {BUSY_RATIO}))"
        moment = datetime.fromtimestamp(time, UTC)
        exporter = gpus.activity.rows[place].exporter
        answer = facts.series(query, start=moment, end=moment, exporter=exporter)
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


@dataclass(frozen=True)
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
    _at_work: dict[tuple[str, Kind, float], list[float]] = field(
        default_factory=dict, compare=False, repr=False
    )
    """By query, kind and stretch the values of all GPUs of the kind at work then, in order."""

    def kind(self, place: Place) -> Kind:
        """What its peers share: the kind of device, and who reads it."""
        return self.kinds.get(place), self.activity.rows[place].exporter

    def usual(self, signal: Readings | None, place: Place, time: float) -> float | None:
        """The median of a signal over its peers, the other GPUs of its kind at work in that
        stretch; None for too few."""
        if signal is None:
            return None
        kind = self.kind(place)
        key = signal.answer.canonical, kind, time
        if key not in self._at_work:
            at_work = (p for p, times in self.busy.items()
                       if self.kind(p) == kind and time in times)  # fmt: skip
            read = (signal.value(p, time) for p in at_work)
            self._at_work[key] = sorted(value for value in read if value is not None)
        ordered = self._at_work[key]
        own = signal.value(place, time) if time in self.busy.get(place, ()) else None
        if len(ordered) - (own is not None) < PEERS:
            return None
        return median(ordered) if own is None else without(ordered, own)

    def part(self, signal: Readings | None, place: Place, time: float) -> float | None:
        """A GPU's value as a part of its peers' median."""
        own = None if signal is None else signal.value(place, time)
        usual = self.usual(signal, place, time)
        return None if own is None or not usual else own / usual


def at_work(
    facts: Facts, cut: Stretches, read: Readings, kind: Callable[[Place, Row], str | None]
) -> Gpus | None:
    """The GPUs at work by the best measure of activity there is, if it can be of all exporters
    that `read` is of; None without any."""
    wanted, found = _exporters(read), None
    for name in ACTIVITY:
        activity = cut.means(facts, name)
        if activity is not None and (found is None or wanted <= _exporters(activity)):
            found = name, activity
        if found is not None and wanted <= _exporters(found[1]):
            break
    if found is None:
        return None
    name, activity = found
    times = next(iter(activity.rows.values())).table.times
    work = (grid(activity.rows.values(), times) > BUSY_RATIO).tolist()
    busy = {
        place: tuple(compress(times, marks))
        for place, marks in zip(activity.rows, work, strict=True)
        if any(marks)
    }
    kinds = {place: kind(place, row) for place, row in activity.rows.items()}
    return Gpus(name, activity, busy, kinds)


def _exporters(read: Readings) -> set[str]:
    return {row.exporter for row in read.rows.values()}


def whole_hosts(meant: Sequence[Place], measured: Iterable[Place]) -> tuple[Place, ...]:
    """The host in place of its GPUs where all that were measured on it, several, are meant."""
    on_host: dict[str | None, set[Place]] = {}
    for place in measured:
        on_host.setdefault(place.host, set()).add(place)
    every = set(meant)
    whole = {host for host, here in on_host.items() if host and len(here) > 1 and here <= every}
    return tuple(dict.fromkeys(Place(host=p.host) if p.host in whole else p for p in meant))


@dataclass(frozen=True)
class Beside:
    """
    Every busy GPU beside its peers: of each (a row) and stretch its value as a part of its peers'
    median, NaN where it was not compared, and whether it lies `below` them by more than their
    spread.
    """

    times: tuple[float, ...]
    rows: Mapping[Place, int]
    part: Floats
    below: Bools

    def far_below(self) -> list[Place]:
        """The GPUs that ever lie below their peers by more than their spread."""
        import numpy as np  # where numbers were read alone

        return [*compress(self.rows, np.any(self.below, axis=1).tolist())]

    def of(self, place: Place) -> dict[float, tuple[float, bool]]:
        """Part and whether it lies below, by stretch."""
        row = self.rows[place]
        found = zip(self.times, self.part[row].tolist(), self.below[row].tolist(), strict=True)
        return {time: (part, below) for time, part, below in found if isfinite(part)}

    def lowest_for_two(self) -> tuple[float, float, Place] | None:
        """The lowest part that lasted for two stretches in which a GPU was compared, one after
        the other, with the better of the two and the GPU; None where none has two."""
        import numpy as np  # as in `beside_peers`

        rows, columns = np.nonzero(np.isfinite(self.part))
        part = self.part[rows, columns]
        then = np.flatnonzero(rows[1:] == rows[:-1]) + 1
        if not then.size:
            return None
        better = np.where(part[then - 1] >= part[then], then - 1, then)
        lowest = better[part[better] == part[better].min()].tolist()
        places = [*self.rows]
        time, _, at = min((self.times[columns[at]], str(places[rows[at]]), at) for at in lowest)
        return float(part[at]), time, places[rows[at]]


def beside_peers(gpus: Gpus, signal: Readings) -> Beside:
    """Every busy GPU beside its peers, stretch by stretch; GPUs that have too few are left out."""
    import numpy as np  # where numbers were read alone

    from flatline.series.standing import middle, others

    times = tuple(sorted({time for at in gpus.busy.values() for time in at}))
    places = [place for place in gpus.busy if place in signal.rows]
    values = grid([signal.rows[place] for place in places], times)
    active = grid([gpus.activity.rows[place] for place in places], times)
    values[~((active > BUSY_RATIO) & (values > 0))] = np.nan
    part, below = np.full(values.shape, np.nan), np.zeros(values.shape, dtype=np.bool_)
    kinds: dict[Kind, list[int]] = {}
    for row, place in enumerate(places):
        kinds.setdefault(gpus.kind(place), []).append(row)
    for members in map(np.array, kinds.values()):
        for column in range(len(times)):
            rows = members[np.isfinite(values[members, column])]
            if rows.size <= PEERS:
                continue
            own = values[rows, column]
            ordered = np.sort(own)
            usual = others(ordered, own)
            spread = MADS * middle(np.sort(np.abs(ordered - middle(ordered))))
            part[rows, column] = own / usual
            below[rows, column] = usual - own > spread
    compared = np.flatnonzero(np.isfinite(part).any(axis=1))
    known = {places[row]: at for at, row in enumerate(compared.tolist())}
    return Beside(times, known, part[compared], below[compared])
