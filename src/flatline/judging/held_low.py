"""
A GPU clocked below its peers from the first step to the last, and drawing less than they would.

Clocks of like GPUs differ for good by more than a fault need take, and a run that was never faster
shows no phase.  But a GPU that clocks lower by nature, at its power limit or in its bin, does as
much work in more time and draws what its peers' powers say of such a clock; one that something
holds down draws less, or stands at one clock that no other comes down to.  So power is laid over
clock, by a line through its peers that single GPUs do not move (Theil and Sen), and only who lies
far below it, and is as busy as the others, stands apart.  Outliers low in both were the faulty
devices of arXiv 2208.11035.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import inf
from statistics import median

from flatline.facts import Facts
from flatline.judging.claims import claim
from flatline.judging.gpus import Readings, readings
from flatline.judging.throughput import pace
from flatline.judging.timeline import instant, usual
from flatline.model import Cite, Claim, Place
from flatline.series.spread import SIGMA, bar, mad
from flatline.signals import ACTIVITY

CLOCK, POWER = "gpu_sm_clock_hertz", "gpu_power_watts"
LIMIT = "gpu_power_limit_watts"
LEAST_PEERS = 15
"""Fewer show no line."""
BELOW = 0.97
"""Of its peers' clock, and of their power: beyond the 2 % by which repeats of a run differ."""
AS_BUSY = 0.95
"""Of its peers' activity: less is another load."""
SMS, AS_LONG = "gpu_sm_active_ratio", 0.98
"""Of the longest at work of its kind, within the 2 % by which repeats of a run differ."""
LEAST_SPREAD = 0.01
"""Of the usual power, in standard deviations: sensors are no better."""
LEAST_OTHERS = 7
ONE_VALUE, UNCAPPED = 0.98, 0.95
"""Of its highest clock at work, the lowest: sound ones sway by steps of 15 MHz, about a hundredth
of theirs; and of the power it may draw: nearer to it the clock is its power's."""
FAR = 0.96
"""Of the others' lowest clock, at power to spare: a step of sound GPUs' highest clocks, or two, is
nearer, and costs less than a slow-down that is one (DROP of `throughput`).  A judgement."""
FARTHER, DRAWN = 0.95, 0.93
"""The same, and of their least power, where what it may draw is not known: one that its power
limit holds back, as high as theirs, draws as much as they."""
HEAT, HOTTER, HOT = "gpu_temperature_celsius", 15.0, 75.0
"""Above the hottest of all others, and no less than that: places in one chassis differ by a few
degrees, and vendors' first limits lie between 80 and 90."""
HEATED_FAR = 0.9
"""Of the others' lowest clock: less costs little that anything would show."""
HEATED = "far hotter than any other all through the run"
WEAKER = "all through the run; others so low draw more"
PINNED = "one clock all through the run, with power to spare"
MOST_SHARE = 0.125
"""Of the GPUs: more of them are another kind, or another part of the work."""
LOOK_S, MOST_LOOKS = 60, 240
"""How finely a clock is looked at, which some exporters read in parts of a GPU: these have a mean
at each moment, and no quantile over a range."""
MOST_LAID = 512
"""GPUs through which the line is laid: every pair of them has its slope."""
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class HeldLow:
    """Such GPUs, the lowest clock first; of that one its clock and its power as parts of its
    peers', what shows them, and whether no other GPU at work clocks lower, or its SMs are known to
    work longer than its own."""

    places: tuple[Place, ...]
    clock: float
    power: float
    shows: tuple[Claim, ...]
    slowest: bool
    hot: bool = False
    """Whether it is far hotter than any other."""


@dataclass(frozen=True, slots=True)
class _Read:
    """Means over a part of the run: from so many seconds before a moment to it."""

    signals: Mapping[str, Readings]
    length_s: int
    until: float

    def value(self, signal: str, place: Place) -> float | None:
        return self.signals[signal].value(place, self.until)


def held_low(facts: Facts) -> HeldLow | None:
    """None where nothing was measured, nobody stands apart, or not in both halves of the run."""
    return facts.memo("held low", _held_low)


def _held_low(facts: Facts) -> HeldLow | None:
    known, active = pace(facts), next(filter(facts.measured, ACTIVITY), None)
    if known is None or active is None or not (facts.measured(CLOCK) and facts.measured(POWER)):
        return None
    begins, ends = map(int, known.span)
    middle = (begins + ends) // 2
    first, last = (
        _read(facts, active, max(1, until - since), float(until))
        for since, until in ((begins, middle), (middle, ends))
    )
    if first is None or last is None:
        return None
    before, after = _low(first, active), _low(last, active)
    both = sorted(before.keys() & after.keys(), key=lambda place: after[place])
    pinned = () if both else _pinned(facts, last, active)
    heated = () if both or pinned else _heated(facts, last, active)
    low = tuple(both) or pinned or heated
    if not both and not _lowest(first, low):
        return None
    read = _read(facts, active, max(1, ends - begins), float(ends)) if low else None
    how = WEAKER if both else HEATED if heated else PINNED
    if read is not None and heated:
        query = f"avg_over_time({HEAT}[{read.length_s}s])"
        if (warm := readings(instant(facts, query, read.until))) is not None:
            read = replace(read, signals={**read.signals, HEAT: warm})
    return None if read is None else _told(facts, read, low, how)


def _lowest(read: _Read, places: tuple[Place, ...]) -> bool:
    """Whether these clocked below all others of their kind."""
    rows = read.signals[CLOCK].rows
    kinds = {(rows[place].labels.get("model"), rows[place].exporter)
             for place in places if place in rows}  # fmt: skip
    own = [read.value(CLOCK, place) or inf for place in places]
    others = [value for place, row in rows.items() if place not in places
              and (row.labels.get("model"), row.exporter) in kinds
              and (value := read.value(CLOCK, place))]  # fmt: skip
    return bool(others) and max(own, default=inf) < BELOW * min(others)


def _pinned(facts: Facts, read: _Read, active: str) -> tuple[Place, ...]:
    """GPUs whose clock stood at one value below every other's, at less power than any other and
    than they may draw, the lowest first: what holds a clock there is neither power nor load."""
    length_s, until = read.length_s, read.until
    looks = f"{CLOCK}[{length_s}s:{max(LOOK_S, length_s // MOST_LOOKS)}s]"
    bounds = [readings(instant(facts, f"quantile_over_time({share}, {looks})", until))
              for share in (0.1, 0.9)]  # fmt: skip
    limits = readings(instant(facts, LIMIT, until)) if facts.measured(LIMIT) else None
    bottom, top = bounds
    if bottom is None or top is None:
        return ()
    kinds: dict[tuple[str | None, str], list[tuple[float, Place]]] = {}
    for place, row in read.signals[CLOCK].rows.items():
        if clock := top.value(place, until):
            kinds.setdefault((row.labels.get("model"), row.exporter), []).append((clock, place))

    def held(place: Place, others: Sequence[Place]) -> bool:
        most = None if limits is None else limits.value(place, until)
        draws = read.value(POWER, place)
        peers = [value for one in others if (value := read.value(POWER, one))]
        busy = [value for one in others if (value := read.value(active, one))]
        return bool(
            draws and peers and busy
            and (bottom.value(place, until) or 0.0) >= ONE_VALUE * (top.value(place, until) or 0.0)
            and draws < (DRAWN * min(peers) if most is None else min(min(peers), UNCAPPED * most))
            and (read.value(active, place) or 0.0) >= AS_BUSY * median(busy)
        )  # fmt: skip

    for alike in kinds.values():
        alike.sort(key=lambda one: (one[0], str(one[1])))
        floors = [bottom.value(place, until) or 0.0 for _, place in alike]
        least = [*accumulate(reversed(floors), min)][::-1]  # of all from there on
        far = FARTHER if limits is None else FAR
        for count in range(int(MOST_SHARE * len(alike)), 0, -1):
            if len(alike) - count < LEAST_OTHERS or alike[count - 1][0] >= far * least[count]:
                continue
            below, above = [p for _, p in alike[:count]], [p for _, p in alike[count:]]
            if all(held(place, above) for place in below):
                return tuple(below)
    return ()


def _heated(facts: Facts, read: _Read, active: str) -> tuple[Place, ...]:
    """The one GPU that clocks below every other of its kind and is far hotter than any of them,
    whatever it draws: hot silicon leaks."""
    warm = readings(instant(facts, f"avg_over_time({HEAT}[{read.length_s}s])", read.until))
    rows = read.signals[CLOCK].rows
    clocks = {place: clock for place in rows if (clock := read.value(CLOCK, place))}
    if warm is None or len(clocks) <= LEAST_OTHERS:
        return ()
    lowest = min(clocks, key=lambda place: (clocks[place], str(place)))
    model = rows[lowest].labels.get("model")
    others = [place for place in clocks
              if place != lowest and rows[place].labels.get("model") == model]  # fmt: skip
    heats = [warm.value(place, read.until) for place in (lowest, *others)]
    known = [heat for heat in heats if heat is not None]
    busy = [read.value(active, place) or 0.0 for place in (lowest, *others)]
    if len(others) < LEAST_OTHERS or len(known) < len(heats):
        return ()
    hot = known[0] >= max(HOT, max(known[1:]) + HOTTER)
    slow = clocks[lowest] < HEATED_FAR * min(clocks[place] for place in others)
    return (lowest,) if hot and slow and busy[0] >= AS_BUSY * median(busy[1:]) else ()


def _read(facts: Facts, active: str, length_s: int, until: float) -> _Read | None:
    asked = {
        signal: readings(instant(facts, f"avg_over_time({signal}[{length_s}s])", until))
        for signal in (CLOCK, POWER, active)
    }
    signals = {signal: read for signal, read in asked.items() if read is not None}
    return _Read(signals, length_s, until) if len(signals) == len(asked) else None


def _low(read: _Read, active: str) -> dict[Place, float]:
    """Who stands apart among its kind, with its part of their clock."""
    kinds: dict[tuple[str | None, str], dict[Place, tuple[float, float, float]]] = {}
    for place, row in read.signals[CLOCK].rows.items():
        clock, power, busy = (read.value(signal, place) for signal in (CLOCK, POWER, active))
        if clock and power and busy and min(clock, power, busy) > 0:
            kind = kinds.setdefault((row.labels.get("model"), row.exporter), {})
            kind[place] = clock, power, busy
    out: dict[Place, float] = {}
    for alike in kinds.values():
        low = _below_the_line(alike)
        if len(low) <= MOST_SHARE * len(alike):
            out |= low
    return out


def _below_the_line(alike: Mapping[Place, tuple[float, float, float]]) -> dict[Place, float]:
    if len(alike) <= LEAST_PEERS:
        return {}
    middles = [median(column) for column in zip(*alike.values(), strict=True)]
    parts = {place: tuple(value / middle for value, middle in zip(own, middles, strict=True))
             for place, own in alike.items()}  # fmt: skip
    slope = _slope([(clock, power) for clock, power, _ in parts.values()])
    above = {place: power - slope * clock for place, (clock, power, _) in parts.items()}
    usual_, spread = median(above.values()), max(SIGMA * mad([*above.values()]), LEAST_SPREAD)
    far = bar(len(alike)) * spread
    return {
        place: clock
        for place, (clock, power, busy) in parts.items()
        if above[place] < usual_ - far and max(clock, power) < BELOW and busy >= AS_BUSY
    }


def _slope(points: Sequence[tuple[float, float]]) -> float:
    """The median slope between two points, of those whose clocks differ; 0 where none do."""
    import numpy as np  # where numbers were read alone

    laid = np.array(points[:: -(-len(points) // MOST_LAID)])
    one, other = np.triu_indices(len(laid), 1)
    across, up = (laid[other] - laid[one]).T
    apart = np.abs(across) >= 1.0 - BELOW
    return float(np.median(up[apart] / across[apart])) if apart.any() else 0.0


def _told(facts: Facts, read: _Read, places: tuple[Place, ...], how: str) -> HeldLow | None:
    shown = [
        one for place in places[:_SHOWN] if (one := _beside(facts, read, place, how)) is not None
    ]
    if not shown:
        return None
    clocks = [value for place in read.signals[CLOCK].rows
              if (value := read.value(CLOCK, place))]  # fmt: skip
    slowest = read.value(CLOCK, places[0]) == min(clocks) and _works_longest(read, places)
    clock, power, *_ = shown[0][1]
    return HeldLow(places, clock, power, tuple(one for one, _ in shown), slowest, how == HEATED)


def _works_longest(read: _Read, places: tuple[Place, ...]) -> bool:
    """Whether none of its kind is known to work longer than the first of these."""
    busy = read.signals.get(SMS)
    if busy is None or places[0] not in busy.rows:
        return True
    model = busy.rows[places[0]].labels.get("model")
    others = [value for place, row in busy.rows.items()
              if place not in places and row.labels.get("model") == model
              and (value := read.value(SMS, place))]  # fmt: skip
    return (read.value(SMS, places[0]) or 0.0) >= AS_LONG * max(others, default=0.0)


def _beside(facts: Facts, read: _Read, place: Place, how: str) -> tuple[Claim, list[float]] | None:
    """Its clock and its power beside the median GPU's, and as parts of them."""
    texts, cites, parts = [], list[Cite](), []
    for signal, name, unit, scale in (
        (CLOCK, "ran its SMs at", "MHz", 1e-6),
        (POWER, "drew", "W", 1.0),
        (HEAT, "was at", "°C", 1.0),
    ):
        if signal not in read.signals:
            continue
        own = read.signals[signal].cite(place, read.until, f"{name}, the mean over the run")
        query = f"avg_over_time({signal}[{read.length_s}s])"
        exporter = read.signals[signal].rows[place].exporter
        others = usual(facts, query, read.until, "the median GPU", exporter=exporter)
        if own is None or others is None or not others.value:
            return None
        texts.append(f"{name} {own.value * scale:.0f} {unit}, the median GPU"
                     f" {others.value * scale:.0f}")  # fmt: skip
        cites += [own, others]
        parts.append(own.value / others.value)
    text = f"{place} {' and '.join(texts)}, {how}"
    return claim(text, *cites), parts
