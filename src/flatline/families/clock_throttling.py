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
    D3 straggler: slow for another reason, at the clocks of its peers.
    B2 gpu-hardware-fault: XID, ECC or link errors.
    Healthy spread: GPUs of one kind differ by 8 % on average and 22 % at most.

Do:
    Leave the host out and resubmit.  On it: `nvidia-smi -q -d PERFORMANCE,CLOCK,POWER,TEMPERATURE`
    (reasons, limits, heat), then fans, air flow, power supplies and the BMC's log; reset power
    limit and clocks (`nvidia-smi -pl`, `-rgc`, `-rac`) where someone set them.

References:
    NVML, nvmlClocksEventReasons: the reason bits, and that a hardware slowdown reduces the core
    clocks by a factor of 2 or more and may also be reported during a clock change.
    Sinha et al., "Not All GPUs Are Created Equal", arXiv 2208.11035: the healthy spread.
    J. Zhang, "Impact of GPU Thermal Throttling on LLM Training" (2026): one GPU of sixteen
    throttled cost a factor of five.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil, isfinite
from statistics import median
from typing import TYPE_CHECKING

from flatline.facts import Facts
from flatline.judging.claims import claim
from flatline.model import Action, Claim, Cleared, Finding, Judgement, Place, QueryCite, Scope
from flatline.signals import ACTIVITY

if TYPE_CHECKING:
    from flatline.series.answer import Answer, Row

CODE = "B3"
NAME = "clock-throttling"
NEEDS = ("GPU clock and power metrics", "GPU activity metrics")
EXPLAINS = {
    "D3": "a GPU held at a low clock finishes each step last, so the others wait for it",
    "D2": "a GPU held at a low clock sets the pace of every collective it takes part in",
    "C2/straggler-timeout": "a GPU held at a low clock reaches a collective after its timeout",
    "F3": "a run at the pace of a throttled GPU does not reach its plan in time",
}

APART_RATIO = 0.78
"""Below this part of its peers' clock a GPU stands apart without a reason bit: like GPUs of one
cluster vary by 22 % at most (arXiv 2208.11035)."""
ASSERTED_RATIO = 0.9
"""With a bad reason bit lit most of the time: beyond the 8 % by which they vary on average."""
MADS = 5.0
"""And beyond this many median absolute deviations of those peers: 5 / 1.48 is over 3 sigma."""
HALVED_RATIO = 0.5
"""A hardware slowdown reduces the clock by a factor of 2 or more (NVML)."""
BUSY_RATIO = 0.05
"""Activity above this is work: idle GPUs measure 0.00 to 0.01, a GPU that waits in a collective
keeps its engine busy."""
HARDER_RATIO = 1.05
"""More than this times its peers' power is more work than theirs, not less clock for the same."""
LOWER_RATIO = 0.9
"""A power limit below this part of its peers' stands apart: limits are set, they do not vary."""
HOTTER_CELSIUS = 10.0
"""Hotter than its peers by this much: within one chassis they differ by some 5 degrees."""
MOSTLY_RATIO = 0.5
LEAST_SHARE = 0.1
"""Slow in a smaller share of its busy time, a GPU cost the run little."""
PEERS = 3
"""Fewer peers at work have no usual clock."""
BINS, SHORTEST_S, LONGEST_S = 48, 60, 600
"""Clocks are read as means over this many stretches: single readings are noisy on AMD, whose
idle compute dies show 132 MHz between kernels."""

IDLE, LOCKED, POWER_CAP, HARDWARE, SYNC, SOFT_HEAT, HEAT, BRAKE = (1 << n for n in range(8))
BAD = HARDWARE | SOFT_HEAT | HEAT | BRAKE
_WORDS = {
    IDLE: "idle",
    LOCKED: "application clocks",
    POWER_CAP: "software power cap",
    HARDWARE: "hardware slowdown",
    SYNC: "sync boost",
    SOFT_HEAT: "software thermal slowdown",
    HEAT: "hardware thermal slowdown",
    BRAKE: "power brake",
}  # nvmlClocksEventReasons
_MOST_CULPRITS = 64


@dataclass(frozen=True, slots=True)
class _Signal:
    """An answer with its rows by place; places that have several rows are left out."""

    answer: Answer
    rows: Mapping[Place, Row]

    def value(self, place: Place, time: float) -> float | None:
        row = self.rows.get(place)
        return None if row is None else row.at(time)

    def cite(self, place: Place, time: float, text: str) -> QueryCite | None:
        row = self.rows.get(place)
        if row is None or row.at(time) is None:
            return None
        return self.answer.cite(row, text, at=time)


@dataclass(frozen=True, slots=True)
class _Fleet:
    """The run's GPUs as measured: means over stretches of `bin_s`, named by their ends."""

    bin_s: int
    clock: _Signal
    activity: _Signal
    power: _Signal | None
    temperature: _Signal | None
    limit: _Signal | None
    highest: _Signal | None
    reasons: _Signal | None
    busy: Mapping[Place, tuple[float, ...]]

    def model(self, place: Place) -> str | None:
        return self.clock.rows[place].labels.get("model")

    def masks(self, place: Place, time: float) -> list[int]:
        """Reason masks read within the stretch that ends at `time`."""
        row = None if self.reasons is None else self.reasons.rows.get(place)
        if row is None:
            return []
        return [
            int(value)
            for at, value in row.points()
            if time - self.bin_s < at <= time and isfinite(value) and 0 <= value < 1 << 32
        ]

    def mostly(self, place: Place, times: Iterable[float], bits: int) -> bool:
        """Whether any of these bits was lit in most readings of these stretches."""
        masks = [mask for time in times for mask in self.masks(place, time)]
        return bool(masks) and sum(bool(m & bits) for m in masks) >= MOSTLY_RATIO * len(masks)


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
    """Compare each busy GPU's clock with its busy peers', then with its own past."""
    fleet = _measure(facts)
    if fleet is None:
        return None
    compared = _compared(fleet)
    slow = [found for place in fleet.busy if (found := _apart(fleet, place, compared))]
    known = {found.place for found in slow}
    slow += [f for place in fleet.busy if place not in known and (f := _held_down(fleet, place))]
    blamed = [found for found in slow if _decided(fleet, found)]
    if blamed:
        return _finding(facts, fleet, blamed)
    return None if slow else _cleared(fleet, compared)


# --- measuring ----------------------------------------------------------------------------------


def _measure(facts: Facts) -> _Fleet | None:
    """None where clocks or activity were not measured, or no GPU was ever at work."""
    if facts.window is None:
        return None
    start, end = facts.window
    span_s = (end - start).total_seconds()
    bin_s = int(min(max(SHORTEST_S, ceil(span_s / BINS)), LONGEST_S))
    first = datetime.fromtimestamp(min(start.timestamp() + bin_s, end.timestamp()), UTC)

    def mean(signal: str) -> _Signal | None:
        return _signal(
            facts.series(f"avg_over_time({signal}[{bin_s}s])", start=first, end=end, step_s=bin_s)
        )

    clock = mean("gpu_sm_clock_hertz")
    activity = next((found for name in ACTIVITY if (found := mean(name))), None)
    if clock is None or activity is None:
        return None
    reasons = facts.series("gpu_clock_event_reasons", start=start, end=end, step_s=bin_s // 4)
    busy = {place: times for place in clock.rows if (times := _busy(clock, activity, place))}
    if not busy:
        return None
    return _Fleet(
        bin_s=bin_s,
        clock=clock,
        activity=activity,
        power=mean("gpu_power_watts"),
        temperature=mean("gpu_temperature_celsius"),
        limit=mean("gpu_power_limit_watts"),
        highest=mean("gpu_sm_clock_max_hertz"),
        reasons=_signal(reasons),
        busy=busy,
    )


def _signal(answer: Answer | None) -> _Signal | None:
    if answer is None or not answer.rows:
        return None
    rows: dict[Place, Row] = {}
    again = set()
    for row in answer.rows:
        again |= {row.place} & rows.keys()
        rows[row.place] = row
    kept = {place: row for place, row in rows.items() if place not in again and place.gpu}
    return _Signal(answer, kept) if kept else None


def _busy(clock: _Signal, activity: _Signal, place: Place) -> tuple[float, ...]:
    row = activity.rows.get(place)
    if row is None:
        return ()
    clocks = clock.rows[place]
    return tuple(
        time for time, share in row.points() if share > BUSY_RATIO and clocks.at(time) is not None
    )


# --- against peers, and against the past --------------------------------------------------------

_Compared = Mapping[Place, Mapping[float, tuple[float, bool]]]


def _compared(fleet: _Fleet) -> _Compared:
    """For each GPU and busy stretch: its clock as a part of its busy peers' median, and whether
    it is beyond their spread."""
    groups: dict[tuple[str | None, float], list[tuple[float, Place]]] = {}
    for place, times in fleet.busy.items():
        row = fleet.clock.rows[place]
        for time in times:
            hertz = row.at(time)
            if hertz is not None and isfinite(hertz) and hertz > 0:
                groups.setdefault((fleet.model(place), time), []).append((hertz, place))
    out: dict[Place, dict[float, tuple[float, bool]]] = {}
    for (_, time), members in groups.items():
        if len(members) <= PEERS:
            continue
        members.sort(key=lambda pair: (pair[0], str(pair[1])))
        clocks = [hertz for hertz, _ in members]
        middle = median(clocks)
        spread = MADS * median(abs(hertz - middle) for hertz in clocks)
        for rank, (hertz, place) in enumerate(members):
            usual = _median_without(clocks, rank)
            out.setdefault(place, {})[time] = (hertz / usual, usual - hertz > spread)
    return out


def _median_without(ordered: Sequence[float], rank: int) -> float:
    """The median of the others."""

    def at(index: int) -> float:
        return ordered[index if index < rank else index + 1]

    count = len(ordered) - 1
    return (at((count - 1) // 2) + at(count // 2)) / 2


def _apart(fleet: _Fleet, place: Place, compared: _Compared) -> _Slow | None:
    """The GPU, if its clock stands apart from its peers' for long enough."""
    ratios = compared.get(place, {})
    slow = {
        time: ratio
        for time, (ratio, beyond) in ratios.items()
        if beyond
        and (ratio < APART_RATIO or (ratio < ASSERTED_RATIO and fleet.mostly(place, (time,), BAD)))
    }
    return _lasting(fleet, place, slow, sorted(ratios), by_peers=True)


def _held_down(fleet: _Fleet, place: Place) -> _Slow | None:
    """
    The GPU, if a bad reason was lit and its clock then fell below its own past, or below the
    highest it has where it has no past.

    This is what finds a whole fleet throttled at once, where no peer stands apart.
    """
    row = fleet.clock.rows[place]
    clocks = {time: hertz for time in fleet.busy[place] if (hertz := row.at(time))}
    lit = {time for time in clocks if fleet.mostly(place, (time,), BAD)}
    free = [hertz for time, hertz in clocks.items() if time not in lit]
    usual = median(free) if len(free) >= PEERS else None
    if usual is None and fleet.highest is not None and lit:
        usual = fleet.highest.value(place, min(lit))
    if not lit or not usual:
        return None
    slow = {t: clocks[t] / usual for t in lit if clocks[t] < APART_RATIO * usual}
    return _lasting(fleet, place, slow, sorted(clocks), by_peers=False)


def _lasting(
    fleet: _Fleet, place: Place, slow: Mapping[float, float], seen: Sequence[float], by_peers: bool
) -> _Slow | None:
    """Slow in two stretches that follow each other, and in a tenth of its busy time."""
    follows = any(a in slow and b in slow for a, b in zip(seen, seen[1:], strict=False))
    if not follows or len(slow) < LEAST_SHARE * len(seen):
        return None
    times = tuple(sorted(slow))
    ordered = sorted(times, key=lambda time: (slow[time], time))
    typical = ordered[len(ordered) // 2]
    asserted = fleet.mostly(place, times, BAD)
    return _Slow(place, times, typical, slow[typical], asserted, by_peers)


def _usual(fleet: _Fleet, signal: _Signal | None, slow: _Slow) -> float | None:
    """The median of a signal over the GPU's busy peers in its typical stretch."""
    if signal is None:
        return None
    found = [
        value
        for place, times in fleet.busy.items()
        if place != slow.place
        and fleet.model(place) == fleet.model(slow.place)
        and slow.typical in times
        and (value := signal.value(place, slow.typical)) is not None
    ]
    return median(found) if len(found) >= PEERS else None


def _part(fleet: _Fleet, signal: _Signal | None, slow: _Slow) -> float | None:
    """The GPU's value as a part of its peers'."""
    own = None if signal is None else signal.value(slow.place, slow.typical)
    usual = _usual(fleet, signal, slow)
    return None if own is None or not usual else own / usual


def _limited(fleet: _Fleet, slow: _Slow) -> bool:
    part = _part(fleet, fleet.limit, slow)
    return part is not None and part < LOWER_RATIO


def _decided(fleet: _Fleet, slow: _Slow) -> bool:
    """
    Whether a low clock is a fault: asserted by the hardware, set by a limit of its own, or low
    without the GPU drawing more than its peers.  Without power nothing tells slow from harder
    at work.
    """
    if slow.asserted or _limited(fleet, slow):
        return True
    part = _part(fleet, fleet.power, slow)
    return part is not None and part <= HARDER_RATIO


# --- the finding --------------------------------------------------------------------------------


def _finding(facts: Facts, fleet: _Fleet, slow: Sequence[_Slow]) -> Finding:
    worst = min(slow, key=lambda found: (found.ratio, str(found.place)))
    scope, culprits = _where(fleet, slow)
    fault_class, why = _why(fleet, worst)
    onset = min(found.times[0] for found in slow) - fleet.bin_s
    begun = min(times[0] for times in fleet.busy.values()) - fleet.bin_s
    hosts = tuple(sorted({p.host for p in culprits if p.host}))
    who = _who(scope, culprits)
    shown = [_low_clock(fleet, worst), *_against(fleet, worst), *why]
    return Finding(
        code=CODE,
        summary=f"{who} ran at {worst.ratio:.0%} of the clock of {_yardstick(worst)}"
        f" ({_words_of(fleet, worst, fault_class)})",
        fault_class=fault_class,
        attribution="infrastructure",
        shows=tuple(shown),
        implies=(_consequence(fleet, worst),),
        strength=_strength(worst, fault_class),
        severity="degraded",
        culprits=culprits,
        scope=scope,
        onset=datetime.fromtimestamp(onset, UTC) if onset > begun else None,
        attempt=_attempt(facts, onset),
        ended_run=False,
        cannot_decide=_open(fault_class),
        actions=_actions(hosts, culprits),
        resubmit="exclude" if hosts else "unknown",
    )


def _strength(worst: _Slow, fault_class: str) -> float:
    """A clock halved under load with the hardware's own word for it leaves little doubt; one a
    quarter down without any reason may have a cause nobody measured."""
    if worst.asserted:
        return 0.92 if worst.ratio < APART_RATIO else 0.85
    if fault_class == "power-limit":
        return 0.88
    return 0.85 if worst.ratio < HALVED_RATIO else 0.7


def _where(fleet: _Fleet, slow: Sequence[_Slow]) -> tuple[Scope, tuple[Place, ...]]:
    """GPUs, worst first; a host where all its busy GPUs are slow; none where all of all are."""
    places = [found.place for found in sorted(slow, key=lambda f: (f.ratio, str(f.place)))]
    if len(places) == len(fleet.busy) and len(places) > 1:
        return "all", ()
    of_host: dict[str | None, int] = {}
    for place in fleet.busy:
        of_host[place.host] = of_host.get(place.host, 0) + 1
    out: dict[Place, None] = {}
    for place in places:
        count = sum(other.host == place.host for other in places)
        whole = place.host is not None and 1 < count == of_host[place.host]
        out.setdefault(Place(host=place.host) if whole else place)
    return "place", tuple(out)[:_MOST_CULPRITS]


def _who(scope: Scope, culprits: Sequence[Place]) -> str:
    if scope == "all":
        return "Every GPU at work"
    first = str(culprits[0])
    head = f"All GPUs of {first}" if culprits[0].gpu is None else first
    return head + (f" and {len(culprits) - 1} more" if len(culprits) > 1 else "")


def _yardstick(slow: _Slow) -> str:
    return "its peers" if slow.by_peers else "its own past"


def _words_of(fleet: _Fleet, slow: _Slow, fault_class: str) -> str:
    hertz = fleet.clock.value(slow.place, slow.typical) or 0.0
    return f"{_mhz(hertz)}, {fault_class}"


def _mhz(hertz: float) -> str:
    return f"{hertz / 1e6:.0f} MHz"


def _low_clock(fleet: _Fleet, slow: _Slow) -> Claim:
    """The clock of the GPU, beside that of all GPUs at work then."""
    hertz = fleet.clock.value(slow.place, slow.typical) or 0.0
    mean = f"mean of {fleet.bin_s} s"
    own = fleet.clock.cite(slow.place, slow.typical, f"SM clock, {mean}")
    if not slow.by_peers:
        return claim(f"{slow.place} ran its SMs at {_mhz(hertz)}, {slow.ratio:.0%} of what it ran"
                     " at before, or can", own, _free(fleet, slow))  # fmt: skip
    clocks = [
        value
        for place, times in fleet.busy.items()
        if slow.typical in times and (value := fleet.clock.value(place, slow.typical))
    ]
    return claim(f"{slow.place} ran its SMs at {_mhz(hertz)} while the median of {len(clocks)}"
                 f" GPUs at work was {_mhz(median(clocks))}",
                 own, *_fastest_usual(fleet, slow, mean))  # fmt: skip


def _free(fleet: _Fleet, slow: _Slow) -> QueryCite | None:
    """The clock before the slow time, or the highest there is."""
    before = [t for t in fleet.busy[slow.place] if t < slow.times[0]]
    if before:
        return fleet.clock.cite(slow.place, before[-1], "SM clock before")
    if fleet.highest is None:
        return None
    return fleet.highest.cite(slow.place, slow.typical, "highest SM clock")


def _fastest_usual(fleet: _Fleet, slow: _Slow, mean: str) -> list[QueryCite | None]:
    """The peer whose clock is nearest the peers' median, as its stand-in."""
    usual = _usual(fleet, fleet.clock, slow)
    if usual is None:
        return []
    peers = [
        (abs(value - usual), str(place), place)
        for place, times in fleet.busy.items()
        if place != slow.place
        and slow.typical in times
        and fleet.model(place) == fleet.model(slow.place)
        and (value := fleet.clock.value(place, slow.typical)) is not None
    ]
    return [fleet.clock.cite(min(peers)[2], slow.typical, f"SM clock of the usual peer, {mean}")]


def _against(fleet: _Fleet, slow: _Slow) -> list[Claim]:
    """That it was at work, and what it drew and how hot it was beside its peers."""
    time, place = slow.typical, slow.place
    share = fleet.activity.value(place, time) or 0.0
    out = [claim(f"It was at work: active {share:.0%} of the time",
                 fleet.activity.cite(place, time, "activity"))]  # fmt: skip
    for signal, what, unit in (
        (fleet.power, "drew", "W"),
        (fleet.temperature, "was at", "degrees"),
    ):
        usual = _usual(fleet, signal, slow)
        own = None if signal is None else signal.value(place, time)
        if signal is not None and own is not None and usual is not None:
            out.append(claim(f"It {what} {own:.0f} {unit}, its peers at work {usual:.0f}",
                             signal.cite(place, time, what)))  # fmt: skip
    return out


def _why(fleet: _Fleet, slow: _Slow) -> tuple[str, list[Claim]]:
    """The fault class, from reason bits first, then limits, then heat; with the evidence."""
    shown: list[Claim] = []
    mask = _usual_mask(fleet, slow)
    if mask is not None and fleet.reasons is not None:
        cite = _mask_cite(fleet, slow, mask)
        shown.append(claim(f"The device gives as reason {_spelled(mask)}", cite))
    limit = fleet.limit
    if limit is not None and _limited(fleet, slow):
        own, usual = limit.value(slow.place, slow.typical), _usual(fleet, limit, slow)
        cite = limit.cite(slow.place, slow.typical, "power limit")
        shown.append(claim(f"Its power limit is {own:.0f} W, its peers' {usual:.0f} W", cite))
    if slow.asserted and mask is not None:
        if mask & BRAKE:
            return "power-brake", shown
        return ("thermal" if mask & (HEAT | SOFT_HEAT) else "hw-slowdown"), shown
    if _limited(fleet, slow):
        return "power-limit", shown
    if _hotter(fleet, slow):
        return "thermal", shown
    if mask is not None and mask & LOCKED:
        return "locked-clocks", shown
    return "unexplained", shown


def _usual_mask(fleet: _Fleet, slow: _Slow) -> int | None:
    """The mask read most often while it was slow; bad ones before others."""
    masks = [mask for time in slow.times for mask in fleet.masks(slow.place, time)]
    if slow.asserted:
        masks = [mask for mask in masks if mask & BAD]
    return max(sorted(set(masks)), key=masks.count, default=None)


def _mask_cite(fleet: _Fleet, slow: _Slow, mask: int) -> QueryCite:
    assert fleet.reasons is not None
    row = fleet.reasons.rows[slow.place]
    first, last = slow.times[0] - fleet.bin_s, slow.times[-1]
    at = next(t for t, value in row.points() if first < t <= last and int(value) == mask)
    return fleet.reasons.answer.cite(row, f"clock event reasons 0x{mask:x}", at=at)


def _spelled(mask: int) -> str:
    words = [word for bit, word in _WORDS.items() if mask & bit]
    return f"0x{mask:x}" + (f" ({', '.join(words)})" if words else " (none)")


def _hotter(fleet: _Fleet, slow: _Slow) -> bool:
    own = None if fleet.temperature is None else fleet.temperature.value(slow.place, slow.typical)
    usual = _usual(fleet, fleet.temperature, slow)
    return own is not None and usual is not None and own - usual >= HOTTER_CELSIUS


def _consequence(fleet: _Fleet, slow: _Slow) -> Claim:
    cite = fleet.clock.cite(slow.place, slow.typical, "SM clock")
    return claim("Every rank waits for the slowest at each synchronisation, so the whole job"
                 " runs at the pace of this device while it is held down.", cite)  # fmt: skip


def _open(fault_class: str) -> tuple[str, ...]:
    if fault_class == "unexplained":
        return ("What holds the clock down: the device's reasons were not measured or name none.",)
    if fault_class == "hw-slowdown":
        return ("Whether heat or the power supply asserted the hardware slowdown.",)
    return ()


def _attempt(facts: Facts, onset: float) -> int:
    """The attempt that ran when it began."""
    for attempt in reversed(facts.attempts):
        if attempt.started_at is not None and attempt.started_at.timestamp() <= onset:
            return attempt.n
    return facts.attempts[-1].n if len(facts.attempts) == 1 else facts.last.n


def _actions(hosts: Sequence[str], culprits: Sequence[Place]) -> tuple[Action, ...]:
    if not hosts:
        return (Action("escalate", "Have power and cooling of the GPUs checked."),)
    gpus = ",".join(p.gpu for p in culprits if p.gpu is not None and p.host == hosts[0])
    look = "nvidia-smi -q -d PERFORMANCE,CLOCK,POWER,TEMPERATURE" + (f" -i {gpus}" if gpus else "")
    return (
        Action("exclude", f"Leave out {', '.join(hosts)} and resubmit.", targets=tuple(hosts)),
        Action("escalate", "Have its power and cooling checked; look at the reasons and limits"
               " there (AMD: `amd-smi metric`).", look, tuple(hosts)),
    )  # fmt: skip


# --- cleared ------------------------------------------------------------------------------------


def _cleared(fleet: _Fleet, compared: _Compared) -> Cleared | None:
    """
    Cleared where every busy GPU had peers to be compared with, and either the reasons or power
    and heat were measured beside the clocks.
    """
    told = fleet.reasons is not None or (fleet.power is not None and fleet.temperature is not None)
    if not told or set(compared) != set(fleet.busy):
        return None
    if fleet.reasons is not None and not set(fleet.busy) <= set(fleet.reasons.rows):
        return None
    ratio, time, place = min(
        (
            (ratio, time, place)
            for place, of in compared.items()
            for time, (ratio, _) in of.items()
        ),
        key=lambda found: (found[0], found[1], str(found[2])),
    )
    least = fleet.clock.cite(place, time, f"SM clock, mean of {fleet.bin_s} s, the lowest beside"
                             f" its peers: {ratio:.0%}, threshold {APART_RATIO:.0%}")  # fmt: skip
    assert least is not None
    cites = [least]
    why = f"no busy GPU's clock stood apart for long; the lowest moment was {ratio:.0%} of its peers'"
    masks = [(mask, t) for t in fleet.busy[place] for mask in fleet.masks(place, t)]
    if masks and fleet.reasons is not None:
        row = fleet.reasons.rows[place]
        value = row.values[-1]
        cites.append(fleet.reasons.answer.cite(row, f"its reasons {_spelled(int(value))}"))
    return Cleared(CODE, why, tuple(cites))
