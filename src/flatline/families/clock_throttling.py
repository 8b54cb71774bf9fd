"""
A GPU runs its clocks far below its peers under the same load, and the job runs at its pace.

Symptom:
    Steps take longer, with no error in any log.  One GPU (or one host's) shows SM clocks far
    below the others while it is as busy as they are; often it draws less power than they do,
    or is hotter.  Utilisation looks perfect everywhere: the others wait in collectives.

Mechanism:
    Heat, a power brake of the supply, a lowered power limit or locked clocks hold the SM clock
    down.  Kernels take longer on that device, and synchronous training waits for it at every
    step.  Fault classes: thermal, power-brake, hw-slowdown (the hardware asserted it and says
    no more), power-limit, locked-clocks, unexplained.

Told apart from:
    Idle GPUs, whose low clock is rest: only GPUs at work are compared, with peers at work then.
    The software power cap (0x4) that a busy fleet shows everywhere, and a GPU that clocks lower
    because it works harder and draws more: neither stands apart under the same load.
    D3 straggler: slow for another reason, at the clocks of its peers, or less busy than they.
    B2 gpu-hardware-fault: XID, ECC or link errors.
    Healthy spread: GPUs of one kind differ by 8 % on average and 22 % at most.  A clock that fell
    below its own past as well, when the device gave heat or a brake as its reason, is no spread;
    nor is one that draws less than like GPUs do that clock so low of themselves.

Do:
    Leave the host out and resubmit.  On it: `nvidia-smi -q -d PERFORMANCE,CLOCK,POWER,TEMPERATURE`
    (reasons, limits, heat), then fans, air flow, power supplies and the BMC's log; reset power
    limit and clocks (`nvidia-smi -pl`, `-rgc`, `-rac`) where someone set them.

References:
    NVML, nvmlClocksEventReasons: the reason bits, and that a hardware slowdown reduces the core
    clocks by a factor of 2 or more and may also be reported during a clock change.
    Sinha et al., "Not All GPUs Are Created Equal", arXiv 2208.11035: the healthy spread.
    J. Zhang, "Impact of GPU Thermal Throttling on LLM Training"
    (jingchaozhang.github.io/Thermal-Throttling-Impact-on-Multi-Node-Training): one GPU of sixteen
    throttled cost a factor of five.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from statistics import median

from flatline.facts import Facts
from flatline.judging.busy_clocks import LEAST_SHARE, busy_clocks
from flatline.judging.claims import claim
from flatline.judging.clock_events import BAD, HEAT, ClockEvents, clock_reasons
from flatline.judging.gpus import (
    PEERS,
    Beside,
    Gpus,
    Readings,
    Stretches,
    of_packages,
    package,
)
from flatline.judging.heat import Heat
from flatline.judging.slow_clocks import power_and_cooling, slow_clocks, slow_ones
from flatline.judging.slowdown import slowdown
from flatline.judging.uniform import lower_clocks
from flatline.model import Claim, Cleared, Finding, Judgement, Place, QueryCite, Scope
from flatline.series.answer import by_exporter
from flatline.signals import ClockEvent, clock_events

CODE = "B3"
NAME = "clock-throttling"
NEEDS = ("GPU clock and power metrics", "GPU activity metrics")
DECIDED_BY = (
    "clock, power, temperature and throttle reasons of each GPU in a slow and a fast time, "
    "beside its peers'"
)
EXPLAINS = {
    "D3": "a GPU held at a low clock finishes each step last, so the others wait for it",
    "D2/slow-interconnect": "a GPU held at a low clock is late in each of its collectives",
    "C2/straggler-timeout": "a GPU held at a low clock reaches a collective after its timeout",
    "F3": "a run at the pace of a throttled GPU does not reach its plan in time",
}

APART_RATIO = 0.78
"""Below this part of its peers' clock a GPU stands apart without a reason bit: like GPUs of one
cluster vary by 22 % at most (arXiv 2208.11035)."""
ASSERTED_RATIO = 0.9
"""With a bad reason bit lit most of the time: beyond the 8 % by which they vary on average."""
LIMITED_RATIO = 0.95
"""With a power limit of its own below its peers': beyond the 2 % by which repeats differ."""
FELL_RATIO = 0.97
"""With a bad reason lit, and so far below its own clock without it as well: beyond the same."""
HALVED_RATIO = 0.5
"""A hardware slowdown reduces the clock by a factor of 2 or more (NVML)."""
AS_BUSY_RATIO = 0.8
"""Less active than this part of its peers is another load: a slow device is busier than they."""
HARDER_RATIO = 1.05
"""More than this times its peers' power is more work than theirs, not less clock for the same."""
LOWER_RATIO = 0.9
"""A power limit below this part of its peers' stands apart: limits are set, they do not vary."""
DOUBTED = 0.79
"""Just short of confident, where the steps took hardly longer."""
COVERED_RATIO = 0.8
"""Of the run's time the metrics must cover before it is cleared."""

_MOST_CULPRITS = 64


@dataclass(frozen=True, slots=True)
class _Fleet:
    """The run's GPUs with every signal of this family that was measured."""

    cut: Stretches
    gpus: Gpus
    clock: Readings
    power: Readings | None
    temperature: Readings | None
    limit: Readings | None
    highest: Readings | None
    beside: Beside
    low: bool
    """Whether one ran far below its peers for long, beyond their spread."""
    reasons: ClockEvents

    def bad(self, place: Place, times: Iterable[float]) -> bool:
        """Whether a bad reason was lit in most readings of these stretches."""
        return self.reasons.mostly(place, times, BAD)

    def limited(self, place: Place, time: float) -> bool:
        """Whether its power limit stands below its peers'."""
        part = self.gpus.part(self.limit, package(self.limit, place), time)
        return part is not None and part < LOWER_RATIO


@dataclass(frozen=True, slots=True)
class _Slow:
    """A GPU that was slow in these stretches; `typical` is the one that is cited."""

    place: Place
    times: tuple[float, ...]
    typical: float
    ratio: float
    asserted: bool
    by_peers: bool


def judge(facts: Facts) -> Judgement:
    """Compare each busy GPU's clock with its busy peers', with its own past, with a baseline's."""
    fleet = _measure(facts)
    if fleet is None:
        return None
    far = fleet.beside.far_below()
    slow = [found for place in far if (found := _apart(fleet, place))]
    known = {found.place for found in slow}
    slow += [f for p in fleet.gpus.busy if p not in known and (f := _held_down(fleet, p))]
    blamed = [found for found in slow if _decided(fleet, found, known)]
    if blamed:
        return _finding(facts, fleet, blamed)
    raised = slow_clocks(facts, CODE) or lower_clocks(facts, CODE)
    if raised is not None or slow or not _covered(facts, fleet):
        return raised
    return _cleared(facts, fleet)


def _measure(facts: Facts) -> _Fleet | None:
    """None where clocks or activity were not measured, or no GPU was ever at work."""
    known = busy_clocks(facts)
    if known is None:
        return None
    cut = known.cut
    return _Fleet(
        cut=cut,
        gpus=known.gpus,
        clock=known.clock,
        power=of_packages(cut.means(facts, "gpu_power_watts")),
        temperature=cut.means(facts, "gpu_temperature_celsius"),
        limit=of_packages(cut.means(facts, "gpu_power_limit_watts")),
        highest=known.highest,
        beside=known.beside,
        low=known.one_lies_low,
        reasons=clock_reasons(facts, cut),
    )


# --- who is slow --------------------------------------------------------------------------------


def _apart(fleet: _Fleet, place: Place) -> _Slow | None:
    """The GPU, if its clock stands apart from its peers' for long enough."""
    ratios, past = fleet.beside.of(place), _unheld(fleet, place)[1]

    def fell(time: float) -> bool:
        own = fleet.clock.value(place, time)
        return past is not None and own is not None and own < FELL_RATIO * past

    slow = {
        time: ratio
        for time, (ratio, beyond) in ratios.items()
        if beyond
        and (
            ratio < APART_RATIO
            or (ratio < LIMITED_RATIO and fleet.limited(place, time))
            or (
                ratio < (FELL_RATIO if fell(time) else ASSERTED_RATIO)
                and fleet.bad(place, (time,))
            )
        )
    }
    return _lasting(fleet, place, slow, sorted(ratios), by_peers=True)


def _held_down(fleet: _Fleet, place: Place) -> _Slow | None:
    """
    The GPU, if a bad reason was lit and its clock then fell below its own past, or below the
    highest it has where it has no past.

    This is what finds a whole fleet throttled at once, where no peer stands apart.
    """
    if fleet.reasons.silent(place):
        return None
    clocks, usual = _unheld(fleet, place)
    lit = {time for time in clocks if fleet.bad(place, (time,))}
    if usual is None and fleet.highest is not None and lit:
        usual = fleet.highest.value(place, min(lit))
    if not lit or not usual:
        return None
    slow = {t: clocks[t] / usual for t in lit if clocks[t] < APART_RATIO * usual}
    return _lasting(fleet, place, slow, sorted(clocks), by_peers=False)


def _unheld(fleet: _Fleet, place: Place) -> tuple[dict[float, float], float | None]:
    """The GPU's clocks at work, and what it usually ran at while no bad reason was lit."""
    clocks = {t: hz for t in fleet.gpus.busy[place] if (hz := fleet.clock.value(place, t))}
    free = [hertz for time, hertz in clocks.items() if not fleet.bad(place, (time,))]
    return clocks, median(free) if len(free) >= PEERS else None


def _lasting(
    fleet: _Fleet, place: Place, slow: Mapping[float, float], seen: Sequence[float], by_peers: bool
) -> _Slow | None:
    """Slow in two stretches that follow each other, and in a tenth of its busy time."""
    follows = any(a in slow and b in slow for a, b in pairwise(seen))
    if not follows or len(slow) < LEAST_SHARE * len(seen):
        return None
    times = tuple(sorted(slow))
    typical = sorted(times, key=lambda time: (slow[time], time))[len(times) // 2]
    return _Slow(place, times, typical, slow[typical], fleet.bad(place, times), by_peers)


def _decided(fleet: _Fleet, slow: _Slow, apart: set[Place]) -> bool:
    """
    Whether a low clock is a fault: asserted by the hardware, set by a limit of its own, or low
    though the GPU is as busy as its peers and draws no more.

    Not so where power was not measured, for nothing then tells slow from harder at work; nor
    for a whole host of unknown kind, which may simply hold another model.
    """
    gpus, place, time = fleet.gpus, slow.place, slow.typical
    if slow.asserted or fleet.limited(slow.place, slow.typical):
        return True
    busy = gpus.part(gpus.activity, place, time)
    drawn = gpus.part(fleet.power, package(fleet.power, place), time)
    if busy is None or busy < AS_BUSY_RATIO or drawn is None or drawn > HARDER_RATIO:
        return False
    beside = [p for p in gpus.busy if p.host == place.host and p != place]
    return gpus.kinds.get(place) is not None or any(p not in apart for p in beside)


# --- the finding --------------------------------------------------------------------------------


def _finding(facts: Facts, fleet: _Fleet, slow: Sequence[_Slow]) -> Finding:
    worst = min(slow, key=lambda found: (found.ratio, str(found.place)))
    scope, culprits = _where(fleet, slow)
    fault_class, why = _why(fleet, worst)
    began = min(found.times[0] for found in slow) - fleet.cut.length_s
    earlier = any(times[0] <= began for times in fleet.gpus.busy.values())
    hosts = tuple(sorted({p.host for p in culprits if p.host}))
    pace, slower = slowdown(facts, began) if earlier else (None, None)
    past = "its own past" if len(slow) == 1 else "their own past"
    yardstick = "its peers" if worst.by_peers else past
    strength = _strength(worst, fault_class)
    alike = {found.place for found in slow}.issuperset(_as_hot(fleet, slow))
    low = "ran at" if alike else "ran down to"
    who = slow_ones(scope, culprits, fleet.gpus.busy)
    return Finding(
        code=CODE,
        summary=f"{who} {low} {worst.ratio:.0%} of the clock of {yardstick}"
        f" ({_mhz(fleet.clock.value(worst.place, worst.typical))}, {fault_class})",
        fault_class=fault_class,
        attribution="infrastructure",
        shows=(
            _low_clock(facts, fleet, worst),
            *_load(facts, fleet, worst),
            *why,
            *([pace] if pace else []),
        ),
        implies=(
            claim(
                "Every rank waits for the slowest at each synchronisation, so the whole job"
                " runs at the pace of this device while it is held down.",
                _own(fleet, worst),
            ),
        ),
        strength=min(strength, 0.6) if slower is False else strength,
        most=DOUBTED if slower is False else 1.0,
        severity="degraded",
        culprits=culprits,
        scope=scope,
        onset=datetime.fromtimestamp(_fell_from(fleet, slow), UTC) if earlier else None,
        onset_within_s=fleet.cut.length_s,
        attempt=_attempt(facts, began),
        ended_run=False,
        cannot_decide=_open(fault_class, slower),
        actions=power_and_cooling(facts, hosts, culprits),
        resubmit="exclude" if hosts else "unknown",
    )


def _fell_from(fleet: _Fleet, slow: Sequence[_Slow]) -> float:
    """The beginning of the first stretch in which one was low; of that before, where it was low
    for a part of it."""
    first = min(slow, key=lambda found: found.times[0])
    times, ratios = fleet.gpus.busy[first.place], fleet.beside.of(first.place)
    before = max((time for time in times if time < first.times[0]), default=None)
    partly = before is not None and ratios.get(before, (1.0, False))[1]
    at = before if partly and before is not None else first.times[0]
    return at - fleet.cut.length_s


def _strength(worst: _Slow, fault_class: str) -> float:
    """A clock down under load with the hardware's own word for it leaves little doubt; one a
    quarter down without any reason may have a cause nobody measured."""
    if worst.asserted:
        return 0.92 if worst.ratio < APART_RATIO else 0.85
    if fault_class == "power-limit":
        return 0.88
    return 0.85 if worst.ratio < HALVED_RATIO else 0.7


def _where(fleet: _Fleet, slow: Sequence[_Slow]) -> tuple[Scope, tuple[Place, ...]]:
    """GPUs, worst first; none where all of all are slow."""
    places = [found.place for found in sorted(slow, key=lambda f: (f.ratio, str(f.place)))]
    if len(places) == len(fleet.gpus.busy) > 1:
        return "all", ()
    places += [place for place in _as_hot(fleet, slow) if place not in places]
    return "place", tuple(places[:_MOST_CULPRITS])


def _as_hot(fleet: _Fleet, slow: Sequence[_Slow]) -> tuple[Place, ...]:
    """The GPUs of hosts whose cooling fails: not all of them need be slow enough by themselves."""
    worst = {found.place: found.typical for found in sorted(slow, key=lambda f: f.ratio)}
    return Heat(fleet.gpus, fleet.temperature).of_hosts(worst, fleet.clock, LIMITED_RATIO)


def _mhz(hertz: float | None) -> str:
    return f"{(hertz or 0.0) / 1e6:.0f} MHz"


def _own(fleet: _Fleet, slow: _Slow) -> QueryCite | None:
    text = f"SM clock, mean of {fleet.cut.length_s} s"
    return fleet.clock.cite(slow.place, slow.typical, text)


def _low_clock(facts: Facts, fleet: _Fleet, slow: _Slow) -> Claim:
    """Its clock, beside the median of the GPUs at work, or beside its own past."""
    place, time = slow.place, slow.typical
    said = f"{place} ran its SMs at {_mhz(fleet.clock.value(place, time))}"
    if slow.by_peers:
        usual = fleet.cut.median_at_work(facts, "gpu_sm_clock_hertz", fleet.gpus, place, time)
        if usual is not None:
            said += f" while the median of the GPUs at work was {_mhz(usual.value)}"
        return claim(said, _own(fleet, slow), usual)
    before = [t for t in fleet.gpus.busy[place] if t < slow.times[0]]
    past = fleet.clock.cite(place, before[-1], "SM clock before") if before else None
    if past is None and fleet.highest is not None:
        past = fleet.highest.cite(place, time, "highest SM clock")
    said += f", {slow.ratio:.0%} of what it had run or can run at"
    return claim(said, _own(fleet, slow), past)


def _load(facts: Facts, fleet: _Fleet, slow: _Slow) -> list[Claim]:
    """That it was at work, what it drew and how hot it was, beside the GPUs at work."""
    place, time, gpus = slow.place, slow.typical, fleet.gpus
    out = []
    for signal, name, text, unit, scale in (
        (gpus.activity, gpus.measure, "It was active", " % of the time", 100.0),
        (fleet.power, "gpu_power_watts", "It drew", " W", 1.0),
        (fleet.temperature, "gpu_temperature_celsius", "It was at", " °C", 1.0),
    ):
        own = None if signal is None else signal.value(place, time)
        if signal is None or own is None:
            continue
        usual = fleet.cut.median_at_work(facts, name, gpus, place, time)
        said = f"{text} {own * scale:.0f}{unit}"
        beside = f", the median of the GPUs at work {usual.value * scale:.0f}" if usual else ""
        out.append(claim(said + beside, signal.cite(place, time, said), usual))
    return out


def _why(fleet: _Fleet, slow: _Slow) -> tuple[str, list[Claim]]:
    """The fault class, from reason bits first, then limits, then heat; with the evidence."""
    shown: list[Claim] = []
    mask, cite = fleet.reasons.usual(slow.place, slow.times, BAD if slow.asserted else None)
    if cite is not None:
        shown.append(claim(f"The device gives as its reason {clock_events(mask)}", cite))
    limit, limited = fleet.limit, fleet.limited(slow.place, slow.typical)
    if limit is not None and limited:
        place = package(limit, slow.place)
        own = limit.value(place, slow.typical) or 0.0
        usual = fleet.gpus.usual(limit, place, slow.typical)
        text = f"Its power limit is {own:.0f} W, its peers' {usual:.0f} W"
        shown.append(claim(text, limit.cite(place, slow.typical, "power limit")))
    if slow.asserted and mask & ClockEvent.POWER_BRAKE:
        return "power-brake", shown
    if slow.asserted:
        return ("thermal" if mask & HEAT else "hw-slowdown"), shown
    if limited:
        return "power-limit", shown
    if Heat(fleet.gpus, fleet.temperature).hotter(slow.place, slow.typical):
        return "thermal", shown
    return ("locked-clocks" if mask & ClockEvent.APPLICATION_CLOCKS else "unexplained"), shown


def _open(fault_class: str, slower: bool | None) -> tuple[str, ...]:
    out = []
    if fault_class == "unexplained":
        out.append("What holds the clock down: no measured reason names it.")
    if fault_class == "hw-slowdown":
        out.append("Whether heat or the power supply asserted the hardware slowdown.")
    if slower is False:
        out.append(
            "Whether it cost the job anything: by the log's clock the steps took hardly longer."
        )
    return tuple(out)


def _attempt(facts: Facts, began: float) -> int:
    """The attempt that ran when it began."""
    for attempt in reversed(facts.attempts):
        if attempt.started_at is not None and attempt.started_at.timestamp() <= began:
            return attempt.n
    return facts.last.n


# --- cleared ------------------------------------------------------------------------------------


def _covered(facts: Facts, fleet: _Fleet) -> bool:
    """Whether the clocks of every host the run is known to have held were read, beside another's
    by the same exporter where there are several, over most of the time it is known to have run."""
    told = by_exporter(fleet.clock.rows).values()
    if len(told) > 1 and any(len({place.host for place in places}) < 2 for places in told):
        return False
    read = {p.host.partition(".")[0] for p in fleet.clock.rows if p.host}
    hosts = {host.partition(".")[0] for host in facts.hosts}
    if (hosts - read) if read else len(hosts) > 1:
        return False
    began, ended = facts.last.started_at, facts.last.ended_at
    if began is None or ended is None or ended <= began:
        return True
    inside = (min(ended, fleet.cut.end) - max(began, fleet.cut.start)).total_seconds()
    return inside >= COVERED_RATIO * (ended - began).total_seconds()


def _cleared(facts: Facts, fleet: _Fleet) -> Cleared | None:
    """
    Cleared where every busy GPU had peers to be compared with and either the reasons, or power
    and heat, were measured beside the clocks; without peers, where the reasons name nothing.
    Not where one lies far below the others, though no further than like GPUs of a cluster may.
    """
    busy, beside = fleet.gpus.busy, fleet.beside
    told = fleet.reasons.cover(busy)
    if fleet.low or any(fleet.bad(place, times) for place, times in busy.items()):
        return None
    if not beside.rows and told:
        return _cleared_by_reasons(fleet)
    if beside.rows.keys() != busy.keys() or not (told or (fleet.power and fleet.temperature)):
        return None
    lowest = beside.lowest_for_two()
    if lowest is None:
        return None
    part, time, place = lowest
    cites = [fleet.clock.cite(place, time, f"SM clock, mean of {fleet.cut.length_s} s: the lowest"
                              f" for two stretches, {part:.0%} of its peers' median; threshold"
                              f" {APART_RATIO:.0%}")]  # fmt: skip
    cites.append(fleet.cut.median_at_work(facts, "gpu_sm_clock_hertz", fleet.gpus, place, time))
    cites.append(fleet.reasons.usual(place, (time,))[1])
    why = f"no busy GPU's clock stood apart from its peers' for long (lowest {part:.0%})"
    return Cleared(CODE, why, tuple(cite for cite in cites if cite is not None))


def _cleared_by_reasons(fleet: _Fleet) -> Cleared | None:
    """Too few GPUs to compare: cleared where no clock was set low either."""
    cites: list[QueryCite] = []
    for place, times in fleet.gpus.busy.items():
        usual, cite = fleet.reasons.usual(place, times)
        if cite is None or usual & ClockEvent.APPLICATION_CLOCKS:
            return None
        cites.append(cite)
    return Cleared(CODE, "the device gave no reason that held its clock down", tuple(cites))
