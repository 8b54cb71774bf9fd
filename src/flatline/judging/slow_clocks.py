"""
GPUs whose clock falls below the others' in the run's slow phases, by as much as slows the run.

Clocks of like GPUs differ by several percent for good; what holds in the slow phases alone, and
explains how slow they are, needs no reason bit and no large fall.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from math import isfinite
from statistics import median

from flatline.facts import Facts
from flatline.judging.anchored import UNPROVEN
from flatline.judging.apart import Fleet, fleet
from flatline.judging.bursts import Aligned
from flatline.judging.claims import claim
from flatline.judging.gpus import whole_hosts
from flatline.judging.held_low import AS_LONG, SMS, held_low
from flatline.judging.steering import leave_out
from flatline.judging.throughput import Slow, course, shown, step_at
from flatline.model import Action, Claim, Finding, Place, QueryCite, Scope

CLOCK, HEAT, LIMIT = "gpu_sm_clock_hertz", "gpu_temperature_celsius", "gpu_power_limit_watts"
BELOW = 0.97
"""Of the others' clock: repeats of a run differ by 2 % (docs/design/slow-runs.md), and less would
slow nothing by DROP of `throughput`."""
RESTS = 3.0
"""Times what is left of its clock at most what is left of the pace: the one published case fell to
0.14 of its clock and a third of its pace.  A card that fell farther rests; its job ended."""
FARTHER = (0.93, 0.9)
"""Asked next: a clock that sinks slowly has fallen below the others' long before the pace has
fallen by DROP.  Of three bars one is met by chance more often: not sure without SM activity."""
EXPLAINS = 0.8
"""Of the slow-down, what the lower clock makes by itself where nothing else does: a step is never
longer by more than the clock is lower.  The rest is what single readings of a clock are off by."""
LEAST_HERTZ = 5e6
"""Clocks are set in steps of 15 MHz (NVML); peers that agree to the last digit differ by less."""
BUSY = ("gpu_utilization_ratio", "gpu_engine_active_ratio")
IDLES = 0.85
"""Of the median GPU's time with a kernel: a slower card has one longer, not shorter, than those
that wait for it, which run the kernel that waits.  A judgement."""
HELD, HELD_MOST = 0.55, 0.7
"""Belief in a GPU that was held down all through the run, and the most: no time without it shows
what it cost.  A judgement."""
HOTTER_CELSIUS, LOWER_RATIO = 8.0, 0.95
"""Beside the median GPU in the slow phase: what tells heat and a lower limit apart."""
_SHOWN = 3


def slow_clocks(facts: Facts, code: str) -> Finding | None:
    """None where clocks were not measured, or none falls with the run or is held down all
    through it."""
    return _with_the_run(facts, code) or _all_through(facts, code)


def _with_the_run(facts: Facts, code: str) -> Finding | None:
    run = course(facts)
    measured = fleet(facts, run, CLOCK) if run is not None else None
    if run is None or measured is None:
        return None
    looks = (BELOW, *FARTHER) if run.slow else ()
    asked = ((part, measured.in_slow_phases(part, LEAST_HERTZ, rare=True)) for part in looks)
    beyond, found, spared = BELOW, None, False
    for part, apart in asked:
        beyond, found = part, _waited_for(facts, measured, apart) if apart is not None else None
        spared = spared or apart is not None
        if found is not None:
            break
    if found is None:
        return None if spared else _at_moments(facts, measured, code)
    worst = min(run.slow, key=lambda phase: phase.part)
    own = [measured.names()[name] for name in found.hosts[:_SHOWN]]
    beside = [one for place in own if (one := _clock(facts, measured, place, worst)) is not None]
    if not beside:
        return None
    fault_class, why = _why(facts, measured, own[0], worst)
    told = _finding(facts, measured, found, (fault_class, [*beside, *why]), worst, code)
    clock, others = (cite.value for cite in beside[0].cites[:2] if isinstance(cite, QueryCite))
    whole = beyond == BELOW and 1 - clock / others >= EXPLAINS * (1 - worst.part)
    return told if whole or facts.measured(SMS) else replace(told, most=HELD_MOST)


def _waited_for(facts: Facts, measured: Fleet, found: Aligned) -> Aligned | None:
    """Without those beside whom others of their kind worked longer in the slow phases, or had a
    kernel far longer: what idles clocks lower of itself."""
    sms = fleet(facts, measured.run, SMS)
    if sms is None:
        return _as_busy(facts, measured, found)
    from flatline.series.standing import medians  # what judges is imported without NumPy

    slow = [at for at, low in enumerate(measured.run.low(sms.cut)) if low]
    if not slow:
        return found
    levels = dict(zip(sms.read.rows, medians(sms.values[:, slow]).tolist(), strict=True))
    named, kept = {str(place): place for place in levels}, list[str]()
    for name in found.hosts:
        own = named.get(name)
        others = [level for place, level in levels.items()
                  if own is not None and str(place) not in found.hosts and isfinite(level)
                  and _model(sms, place) == _model(sms, own)]  # fmt: skip
        if own is None or not levels[own] < AS_LONG * max(others, default=0.0):
            kept.append(name)
    return replace(found, hosts=tuple(kept)) if kept else None


def _as_busy(facts: Facts, measured: Fleet, found: Aligned) -> Aligned | None:
    from flatline.series.standing import medians  # as in `_waited_for`

    for signal in BUSY:
        busy = fleet(facts, measured.run, signal)
        slow = (
            [] if busy is None else [n for n, low in enumerate(measured.run.low(busy.cut)) if low]
        )
        if busy is None or not slow:
            continue
        levels = medians(busy.values[:, slow]).tolist()
        usual = median([level for level in levels if isfinite(level)] or [0.0])
        idle = {str(place) for place, level in zip(busy.read.rows, levels, strict=True)
                if level < IDLES * usual}  # fmt: skip
        found = replace(found, hosts=tuple(name for name in found.hosts if name not in idle))
    return found if found.hosts else None


def _model(sms: Fleet, place: Place) -> str | None:
    return sms.read.rows[place].labels.get("model")


def _all_through(facts: Facts, code: str) -> Finding | None:
    """The GPU that the others wait for, where none clocks lower: nothing shows what it cost."""
    found = held_low(facts)
    if found is None or not found.slowest:
        return None
    hosts = tuple(sorted({place.host for place in found.places if place.host}))
    more = f" and {len(found.places) - 1} more" if len(found.places) > 1 else ""
    return Finding(
        code=code,
        summary=f"{found.places[0]}{more} ran at {found.clock:.0%} of the others' clock"
        + (
            ", far hotter than any of them, all through the run"
            if found.hot
            else f" and {found.power:.0%} of their power all through the run (unexplained)"
        ),
        fault_class="thermal" if found.hot else "unexplained",
        attribution="infrastructure",
        shows=found.shows,
        implies=(
            claim(
                "It was as busy as the others, and heat holds it down: every rank waits for the"
                " slowest."
                if found.hot
                else "It was as busy as the others and drew less than GPUs do that clock so low of"
                " themselves: something holds it down, and every rank waits for the slowest.",
                *found.shows[0].cites,
            ),
        ),
        strength=HELD,
        most=HELD_MOST,
        severity="degraded",
        culprits=found.places,
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=(
            "What it cost the run: it was so from the first step to the last; a run without it"
            " would tell.",
            *(() if found.hot else ("What holds the clock down: no measured reason names it.",)),
        ),
        actions=power_and_cooling(facts, hosts, found.places),
        resubmit="exclude" if hosts else "unknown",
    )


def _at_moments(facts: Facts, measured: Fleet, code: str) -> Finding | None:
    """Where the pace alone shows no phase, or others: asked at the moments of the low clocks."""
    found = measured.at_moments(BELOW, LEAST_HERTZ)
    if found is None:
        return None
    own = [measured.names()[name] for name in found.places[:_SHOWN]]
    inside = found.longest[found.places[0]][0]
    asked = [_clock(facts, measured, place, inside, found.outside) for place in own]
    beside = [one for one in asked if one is not None]
    if len(beside) < len(own):
        return None
    fault_class, why = _why(facts, measured, own[0], inside, found.outside)
    shows = [*beside, *why, found.shown(facts)]
    culprits = measured.places(found.places)
    hosts = tuple(sorted({place.host for place in culprits if place.host}))
    more = f" and {len(culprits) - 1} more" if len(culprits) > 1 else ""
    return Finding(
        code=code,
        summary=f"{culprits[0]}{more} clocked below the others, and throughput was"
        f" {found.lower:.1%} lower then ({fault_class})",
        fault_class=fault_class,
        attribution="infrastructure",
        shows=tuple(shows),
        implies=(found.told(shows),),
        strength=found.strength,
        most=found.most,
        severity="degraded",
        culprits=culprits,
        onset=datetime.fromtimestamp(found.begins, UTC),
        onset_step=step_at(facts, found.begins),
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=(UNPROVEN,),
        actions=power_and_cooling(facts, hosts, culprits),
        resubmit="exclude" if hosts else "unknown",
    )


def _clock(
    facts: Facts, measured: Fleet, place: Place, worst: Slow, fast: Slow | None = None
) -> Claim | None:
    """None where it did not fall below its own past: where the others wait for it their clocks
    rise, and it only looks low beside them; nor where it fell so far that it had no part in the
    run, which would have fallen further."""
    say = "ran its SMs at {own} in the slow phase, the median GPU at {others}"
    said = measured.beside(facts, place, worst, ("SM clock", say, _mhz), fast)
    if said is None:
        return None
    read = [cite.value for cite in said.cites if isinstance(cite, QueryCite)]
    if len(read) < 3 or read[0] > BELOW * read[2]:
        return None
    return said if worst.part <= RESTS * read[0] / read[2] else None


def _mhz(hertz: float) -> str:
    return f"{hertz / 1e6:.0f} MHz"


def _why(
    facts: Facts, measured: Fleet, place: Place, worst: Slow, fast: Slow | None = None
) -> tuple[str, list[Claim]]:
    """The fault class by limit, then by heat; unexplained where neither stands apart."""
    for signal, fault_class, told in (
        (LIMIT, "power-limit",
         ("power limit", "may draw {own}, the median GPU {others}", "{:.0f} W".format)),
        (HEAT, "thermal",
         ("temperature", "was at {own}, the median GPU at {others}", "{:.0f} °C".format)),
    ):  # fmt: skip
        other = fleet(facts, measured.run, signal)
        said = None if other is None else other.beside(facts, place, worst, told, fast)
        if said is None:
            continue
        own, usual = (cite.value for cite in said.cites[:2] if isinstance(cite, QueryCite))
        if signal == LIMIT and own < LOWER_RATIO * usual:
            return fault_class, [said]
        if signal == HEAT and own - usual >= HOTTER_CELSIUS:
            return fault_class, [said]
    return "unexplained", []


def _finding(
    facts: Facts,
    measured: Fleet,
    found: Aligned,
    told: tuple[str, list[Claim]],
    worst: Slow,
    code: str,
) -> Finding:
    run, culprits = measured.run, measured.places(found.hosts)
    hosts = tuple(sorted({place.host for place in culprits if place.host}))
    more = f" and {len(culprits) - 1} more" if len(culprits) > 1 else ""
    fault_class, shows = told
    return Finding(
        code=code,
        summary=f"{culprits[0]}{more} clocked below the others while throughput was"
        f" {1 - worst.part:.0%} down ({fault_class})",
        fault_class=fault_class,
        attribution="infrastructure",
        shows=(*shows, *(shown(facts, run, phase) for phase in run.slow[:_SHOWN])),
        implies=(
            claim(
                f"Its low clock covers {found.recall:.0%} of the slow time, and the others wait"
                f" for it; by chance phases meet so well in {found.chance:.1%} of random cuts.",
                *(cite for one in shows[:1] for cite in one.cites),
            ),
        ),
        strength=0.7 if fault_class == "unexplained" else 0.82,
        severity="degraded",
        culprits=culprits,
        onset=datetime.fromtimestamp(run.slow[0].begins, UTC),
        onset_step=step_at(facts, run.slow[0].begins),
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=("What holds the clock down: the driver's reason bits would tell.",),
        actions=power_and_cooling(facts, hosts, culprits),
        resubmit="exclude" if hosts else "unknown",
    )  # fmt: skip


def slow_ones(scope: Scope, culprits: Sequence[Place], at_work: Iterable[Place]) -> str:
    """One GPU, or a host of which all that work are meant, and how many more."""
    if scope == "all":
        return "Every GPU at work"
    named = whole_hosts(culprits, at_work)
    head = f"All GPUs of {named[0]}" if named[0].gpu is None else str(named[0])
    return head + (f" and {len(named) - 1} more" if len(named) > 1 else "")


def power_and_cooling(
    facts: Facts, hosts: tuple[str, ...], culprits: Sequence[Place]
) -> tuple[Action, ...]:
    """What to do about clocks that are held down."""
    if not hosts:
        return (Action("escalate", "Have power and cooling of the GPUs checked."),)
    here = (p.gpu for p in culprits if p.gpu is not None and p.host == hosts[0])
    gpus = ",".join(sorted(here, key=lambda gpu: (len(gpu), gpu)))
    look = "nvidia-smi -q -d PERFORMANCE,CLOCK,POWER,TEMPERATURE" + (f" -i {gpus}" if gpus else "")
    return (
        leave_out(facts, hosts),
        Action("escalate", "Have its power and cooling checked; the command shows reasons and"
               " limits there (AMD: `amd-smi metric`).", look, hosts),
    )  # fmt: skip
