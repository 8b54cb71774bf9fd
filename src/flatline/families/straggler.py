"""
One rank is slower than the others, and all wait for it.

Symptom:
    Steps take longer than they should; one rank waits least in collectives, or is late before
    each synchronisation.

Mechanism:
    Synchronous training runs at the pace of its slowest rank: a slow device, a slow host, more
    data, or worse placement.

Told apart from:
    B2, B3, D4 and D5 explain a slow rank and go before it.
    Victims: synchronised step time is the same on every rank and names nobody, and a rank that
    spins in a collective keeps its engine as busy as the one it waits for.
    Pipeline stages and embeddings: ranks that have more to do by design stand apart in the fast
    phases as well.

Do:
    Compare the rank's device, host and data with its peers'; exclude its host if it recurs.

References:
    NCCL collective timing; NVIDIA DCGM SM activity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from flatline.facts import Facts
from flatline.judging.addresses import carded
from flatline.judging.anchored import UNPROVEN, Anchored
from flatline.judging.apart import Fleet, fleet
from flatline.judging.bursts import Aligned
from flatline.judging.claims import claim
from flatline.judging.fell_behind import Behind, fell_behind, lags
from flatline.judging.gaps import GAPS, LEAST_SPREAD, RESIDENT, SAID
from flatline.judging.kept_on import kept_on
from flatline.judging.lone_power import Drew, drew_more
from flatline.judging.lone_worker import Lone, lone_card, lone_host, lone_worker, lone_workers
from flatline.judging.named_logs import labelled
from flatline.judging.own_work import Slow, own_work
from flatline.judging.pauses import in_told_pauses
from flatline.judging.pcie import narrow
from flatline.judging.printed_tables import tabled_waits
from flatline.judging.printed_waits import Waits, printed_waits, waited_beside
from flatline.judging.rank_blocks import in_its_block
from flatline.judging.reported import Reported, reported
from flatline.judging.slow_cpus import at_moments, beside, slow_cpus
from flatline.judging.steering import leave_out
from flatline.judging.throughput import Course, course, shown, step_at, steps_of
from flatline.judging.waited_for import on_its_card
from flatline.model import Action, Claim, Finding, Judgement, Place

CODE = "D3"
NAME = "straggler"
NEEDS = (
    "per-rank collective or compute times (profiler traces, flight recorder)",
    "GPU activity metrics",
)
DECIDED_BY = (
    "each rank's time to the collective without its wait in it (profiler traces or flight "
    "recorder of all ranks)"
)
EXPLAINS = {
    "F3": "a run at the pace of its slowest rank does not reach its plan in time",
    "D2/slow-interconnect": "every collective waits for the rank that comes last",
}

ACTIVITY = "gpu_sm_active_ratio"
"""Not the engine's or the coarse utilisation for who works longer: a kernel that waits in a
collective counts as work there, so that victims look as busy as the rank they wait for."""
ABOVE, BELOW = 1.05, 0.95
"""Apart by as much as a slow-down that is one (DROP of `throughput`) makes of it."""
BRIEF = 0.97
"""The same where the pace is asked at those moments."""
HOST_LOADS = ("host_procs_running", "host_cpu_pressure_seconds_total")
UNSEEN_MOST = 0.79
"""Just short of confident: a host whose load nobody measured may be held by other processes."""
WHY = {
    "slow-device": "Its own work takes longer than the others', which wait for it in the"
    " collectives.",
    "slow-host": "It is given its work late, and the others wait for it in the collectives.",
    "late-rank": "It is given its work late, and the others wait for it in the collectives.",
}
OPEN = "Why it is slow: its clocks, its host's load and a trace would tell."
BY_DESIGN = "Whether it has another part of the work than the others by design."
WHY_CLOCKED = "Why its CPUs are slower: heat, a power cap of the host, or its governor."
LINKED, REPORTED, BOTH, DREW = 0.75, 0.72, 0.85, 0.6
_SHOWN = 3


def judge(facts: Facts) -> Judgement:
    """
    Name the GPUs whose SMs work apart from their peers' in the slow phases, and in those alone.

    Their own fast phases are the control: a stage of a pipeline that always has more to do slows
    nothing.  Where every rank prints its waits, these name the one that comes last, in any phase.
    """
    found = in_its_block(facts, _judged(facts))
    if found is None or found.fault_class != "slow-host" or any(map(facts.measured, HOST_LOADS)):
        return found
    open_ = "Whether other processes took its CPUs (D5): nothing read measures their load."
    return replace(found, most=min(found.most, UNSEEN_MOST),
                   cannot_decide=(*found.cannot_decide, open_))  # fmt: skip


def _judged(facts: Facts) -> Finding | None:
    for look, tell in READ:
        if (told := look(facts)) is not None:
            return carded(facts, tell(facts, told))
    measured = _measured(facts)
    late = waited_beside(facts) if measured is None else None
    return measured if late is None else carded(facts, _waited_for(facts, late))


def _measured(facts: Facts) -> Finding | None:
    """By what the GPUs did while the run was slow."""
    if (run := course(facts)) is None:
        return None
    found = _in_phases(facts, run) or _waited_in_vain(facts, run)
    return found or _at_times(facts, run) or _all_through(facts, run)


# That one works more than its peers is rare; they work less for many reasons.
LOOKS = ((ACTIVITY, ABOVE, "slow-device"), (ACTIVITY, BELOW, "slow-host"),
         *((signal, GAPS, "slow-host") for signal in RESIDENT))  # fmt: skip


def _in_phases(facts: Facts, run: Course) -> Finding | None:
    if not run.slow:
        return None
    for signal, ratio, kind in LOOKS:
        ranks = fleet(facts, run, signal)
        found = (
            None if ranks is None else ranks.in_slow_phases(ratio, LEAST_SPREAD, rare=ratio > 1)
        )
        if ranks is not None and found is not None and not ranks.of_one_place(found.hosts):
            return _finding(facts, run, ranks, found, kind)
    return _launched_late(facts, run)


def _at_times(facts: Facts, run: Course) -> Finding | None:
    for signal, ratio, kind in LOOKS:
        ranks, near = fleet(facts, run, signal), BRIEF if signal in RESIDENT else ratio
        moments = None if ranks is None else ranks.at_moments(near, LEAST_SPREAD)
        if ranks is not None and moments is not None:
            if in_told_pauses(facts, moments.spans) or ranks.of_one_place(moments.places):
                continue
            return _at_moments(facts, ranks, moments, kind)
    clocked = at_moments(facts, run)
    return None if clocked is None else _slow_cpus(facts, clocked)


def _all_through(facts: Facts, run: Course) -> Finding | None:
    alone = lone_worker(facts, run) or lone_workers(facts, run)
    if alone is not None:
        return _throughout(facts, alone, "slow-device")
    apart = lone_host(facts, run)
    if apart is not None:
        return _throughout(facts, apart, "slow-host")
    late = lone_card(facts, run)
    link = None if late is None else narrow(facts, late.place, *run.pace.span)
    if late is not None and link is not None:
        return _on_its_link(facts, late, link)
    drew = drew_more(facts, run)
    return None if drew is None else _drew_more(facts, drew)


def _on_its_link(facts: Facts, late: Lone, link: Claim) -> Finding:
    """A card that is late throughout because its PCIe link has lost lanes: without that, it may be
    the first stage of a pipeline, or the rank that writes and evaluates."""
    told = _throughout(facts, late, "late-rank")
    why = claim("What it copies to and from its host takes longer.", *link.cites)
    asked = tuple(text for text in told.cannot_decide if text != OPEN)
    return replace(told, shows=(*told.shows, link), implies=(*told.implies, why),
                   strength=LINKED, cannot_decide=asked)  # fmt: skip


# --- the finding --------------------------------------------------------------------------------


def _waited_for(facts: Facts, told: Waits) -> Finding:
    """By what every rank printed of its own waits."""
    places = tuple(labelled(facts, place, told.shows[0]) for place in told.places)
    places, cards = on_its_card(facts, places, _measured)
    hosts = tuple(sorted({place.host for place in places if place.host}))
    more = f" and {len(places) - 1} more" if len(places) > 1 else ""
    return Finding(
        code=CODE,
        summary=f"{places[0]}{more} came last to its collectives: the others waited"
        f" {told.part:.0%} of each step for it",
        fault_class="late-rank",
        attribution="infrastructure",
        shows=(*told.shows, *cards),
        implies=(
            claim(
                "A synchronised step is as long as its slowest rank's work.", *told.shows[0].cites
            ),
        ),
        strength=0.85,
        most=UNSEEN_MOST if told.doubted else 1.0,
        severity="degraded",
        culprits=places,
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=(OPEN, *((BY_DESIGN,) if told.doubted else ())),
        actions=_actions(facts, hosts),
        resubmit="exclude" if hosts else "unknown",
    )


def _reported(facts: Facts, told: Reported) -> Finding:
    """By the program's own detection of stragglers."""
    places, cards = on_its_card(facts, told.places, _measured)
    hosts = tuple(sorted({place.host for place in places if place.host}))
    more = f" and {len(places) - 1} more" if len(places) > 1 else ""
    slower = "" if told.score is None else f", at {told.score:.2f} of the fastest"
    when = ", and the program ended the run for it" if told.stopped else " throughout"
    return Finding(
        code=CODE,
        summary=f"{places[0]}{more} worked slower than the others{when}{slower}",
        fault_class="slow-device",
        attribution="infrastructure",
        shows=(told.shows, *cards),
        implies=(claim("A synchronised step is as long as its slowest rank's work.",
                       *told.shows.cites),),
        strength=REPORTED,
        severity="degraded",
        culprits=places,
        attempt=facts.last.n,
        ended_run=told.stopped,
        cannot_decide=(OPEN, BY_DESIGN),
        actions=_actions(facts, hosts),
        resubmit="exclude" if hosts else "unknown",
    )  # fmt: skip


def _behind(facts: Facts, behind: Behind) -> Finding:
    """By the program's own timing, in the slow time alone."""
    run, phase, found = behind.run, behind.phase, _reported(facts, behind.told)
    return replace(
        found,
        summary=f"{behind.told.places[0]} worked at {behind.told.score:.2f} of the fastest since"
        f" throughput was {1 - phase.part:.0%} down",
        shows=(*found.shows, shown(facts, run, phase)),
        onset=datetime.fromtimestamp(phase.begins, UTC) if run.pace.clocked else None,
        onset_step=steps_of(run, phase)[0],
        cannot_decide=(OPEN, BY_DESIGN) if behind.just else (OPEN,),
    )  # fmt: skip


def _slow_itself(facts: Facts, slow: Slow) -> Finding:
    """By what each of a few ranks printed of its own work."""
    places, cards = on_its_card(facts, slow.places, _measured)
    hosts = tuple(sorted({place.host for place in places if place.host}))
    more = f" and {len(places) - 1} more work" if len(places) > 1 else " works"
    return Finding(
        code=CODE,
        summary=f"{places[0]}{more} {slow.times:.1f} times as long as the others on what a rank"
        f" does by itself, {slow.part:.0%} of each step",
        fault_class="late-rank",
        attribution="infrastructure",
        shows=(slow.shows, *cards),
        implies=(
            claim("A synchronised step is as long as its slowest rank's work"
                  + ("; the others wait for it in the collective" if slow.waited else "")
                  + ("; it was as fast as they before" if slow.became else "") + ".",
                  *slow.shows.cites),
        ),
        strength=0.65 if slow.became and slow.waited and slow.ranks > 2 else 0.55,
        severity="degraded",
        culprits=places,
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=(OPEN, *(() if slow.became else (BY_DESIGN,))),
        actions=_actions(facts, hosts),
        resubmit="unknown",
    )  # fmt: skip


def _at_moments(facts: Facts, ranks: Fleet, found: Anchored, kind: str) -> Finding | None:
    """Where the pace alone shows no phase, or others: asked at the moments of these GPUs."""
    inside = found.longest[found.places[0]][0]
    asked = (ranks.beside(facts, ranks.names()[name], inside, _said(ranks), found.outside)
             for name in found.places[:_SHOWN])  # fmt: skip
    shows = [one for one in asked if one is not None]
    if not shows:
        return None
    shows.append(found.shown(facts))
    culprits = ranks.places(found.places)
    hosts = tuple(sorted({place.host for place in culprits if place.host}))
    more = f" and {len(culprits) - 1} more" if len(culprits) > 1 else ""
    return Finding(
        code=CODE,
        summary=f"{culprits[0]}{more} held the run back: throughput was {found.lower:.1%} lower"
        " while its GPUs worked apart from the others'",
        fault_class=kind,
        attribution="infrastructure",
        shows=tuple(shows),
        implies=(found.told(shows), claim(WHY[kind], *shows[0].cites)),
        strength=found.strength,
        most=found.most,
        severity="degraded",
        culprits=culprits,
        onset=datetime.fromtimestamp(found.begins, UTC),
        onset_within_s=found.pace.off_s,
        onset_step=step_at(facts, found.begins),
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=(OPEN, UNPROVEN),
        actions=_actions(facts, hosts),
        resubmit="exclude" if hosts else "unknown",
    )


def _waited_in_vain(facts: Facts, run: Course) -> Finding | None:
    """One GPU that works on as before while the others wait, by power where nothing finer was
    measured, and by what the steps' lines say."""
    told = kept_on(facts, run)
    if told is None:
        return None
    hosts = (told.place.host,) if told.place.host and told.twice else ()
    onset = told.phase.begins
    return Finding(
        code=CODE,
        summary=f"{told.place} worked on as before while the others waited, and throughput was"
        f" {1 - told.phase.part:.0%} down",
        fault_class="slow-device",
        attribution="infrastructure" if told.twice else "unknown",
        shows=(*told.shows, shown(facts, run, told.phase)),
        implies=(claim("A synchronised step is as long as its slowest rank's work.",
                       *told.shows[0].cites),),
        strength=BOTH if told.twice else REPORTED,
        most=1.0 if told.twice else UNSEEN_MOST,
        severity="degraded",
        culprits=(told.place,),
        onset=datetime.fromtimestamp(onset, UTC) if run.pace.clocked else None,
        onset_step=step_at(facts, onset),
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=(OPEN, "Whether it has more of the work by design since then."),
        actions=_actions(facts, hosts),
        resubmit="exclude" if hosts else "unknown",
    )  # fmt: skip


def _launched_late(facts: Facts, run: Course) -> Finding | None:
    """One host with smaller gaps in the slow phases, and in those alone, whose CPUs are clocked
    apart from the others'."""
    for signal in RESIDENT:
        ranks = fleet(facts, run, signal)
        found = None if ranks is None else ranks.in_slow_phases(BRIEF, LEAST_SPREAD, rare=False)
        if ranks is None or found is None:
            continue
        hosts = {place.host or "" for place in ranks.read.rows}
        apart = {ranks.names()[name].host or "" for name in found.hosts}
        host = next(iter(apart))
        cpus = slow_cpus(facts, run, host, tuple(hosts)) if len(apart) == 1 else None
        if cpus is not None:
            told = _finding(facts, run, ranks, found, "slow-host")
            return replace(told, shows=(*told.shows, cpus), cannot_decide=(WHY_CLOCKED,))
    return None


def _slow_cpus(facts: Facts, found: Anchored) -> Finding | None:
    """Hosts whose CPUs are clocked down at the moments at which the run is slower."""
    hosts = found.places[:_SHOWN]
    asked = (beside(facts, host, found.longest[host][0]) for host in hosts)
    shows = [one for one in asked if one is not None]
    if not shows:
        return None
    why = claim("Its CPUs launch the work of its GPUs, and the others wait for it.",
                *shows[0].cites)  # fmt: skip
    return Finding(
        code=CODE,
        summary=f"{', '.join(hosts)} held the run back: throughput was {found.lower:.1%} lower"
        " while its CPUs were clocked down",
        fault_class="slow-host",
        attribution="infrastructure",
        shows=(*shows, found.shown(facts)),
        implies=(found.told(shows), why),
        strength=found.strength,
        most=found.most,
        severity="degraded",
        culprits=tuple(Place(host=facts.node_of(host)) for host in found.places),
        onset=datetime.fromtimestamp(found.begins, UTC),
        onset_within_s=found.pace.off_s,
        onset_step=step_at(facts, found.begins),
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=(WHY_CLOCKED, UNPROVEN),
        actions=_actions(facts, tuple(found.places)),
        resubmit="exclude",
    )


def _throughout(facts: Facts, alone: Lone, kind: str) -> Finding:
    hosts = (alone.place.host,) if alone.place.host else ()
    told = (
        f"worked {alone.part:.0%} longer than the others in every step"
        if kind == "slow-device"
        else f"alone had gaps in all the run: {'it' if alone.place.gpu else 'its GPUs'} had work"
        f" {alone.part:.0%} less of the time"
    )
    return Finding(
        code=CODE,
        summary=f"{alone.place} {told}",
        fault_class=kind,
        attribution="infrastructure",
        shows=(alone.shows, *((alone.cpus,) if alone.cpus else ())),
        implies=(
            claim(WHY[kind], *alone.shows.cites),
            *(
                (claim("Its CPUs are slower: they launch the work.", *alone.cpus.cites),)
                if alone.cpus
                else ()
            ),
        ),
        strength=0.6 if alone.cpus is None else 0.8 if alone.sure else 0.7,
        severity="degraded",
        culprits=(alone.place,),
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=(
            OPEN if alone.cpus is None else WHY_CLOCKED,
            BY_DESIGN,
        ),
        actions=_actions(facts, hosts),
        resubmit="unknown",
    )


def _drew_more(facts: Facts, drew: Drew) -> Finding:
    """Where nothing tells what the SMs do: by the power of a card beside all others'."""
    told = _throughout(facts, Lone(drew.place, drew.part, drew.shows), "slow-device")
    return replace(
        told,
        summary=f"{drew.place} alone drew {drew.part:.0%} more than the others in all the run, at"
        " their clock and as busy as they",
        strength=DREW,
        most=UNSEEN_MOST,
    )


def _said(ranks: Fleet) -> tuple[str, str, Callable[[float], str]]:
    """How a reading of this signal is told."""
    if ranks.signal == ACTIVITY:
        say = "had its SMs active {own} of the slow phase, the median GPU {others}"
        return "SM activity", say, "{:.1%}".format
    return SAID


def _finding(facts: Facts, run: Course, ranks: Fleet, found: Aligned, kind: str) -> Finding:
    places = [ranks.names()[name] for name in found.hosts[:_SHOWN]]
    culprits = ranks.places(found.hosts)
    worst = min(run.slow, key=lambda phase: phase.part)
    sms = ranks.signal == ACTIVITY
    asked = (ranks.beside(facts, place, worst, _said(ranks)) for place in places)
    beside = [one for one in asked if one is not None]
    more = f" and {len(culprits) - 1} more" if len(culprits) > 1 else ""
    hosts = tuple(sorted({place.host for place in culprits if place.host}))
    return Finding(
        code=CODE,
        summary=f"{culprits[0]}{more} held the run back: throughput was {1 - worst.part:.0%} down"
        + (" while its SMs worked apart from the others'" if sms else ", and it alone had gaps"),
        fault_class=kind,
        attribution="infrastructure",
        shows=(*beside, *(shown(facts, run, phase) for phase in run.slow[:_SHOWN])),
        implies=(claim(WHY[kind], *(cite for one in beside for cite in one.cites)),)
        if beside
        else (),
        strength=0.75 if kind == "slow-device" else 0.65,
        severity="degraded",
        culprits=culprits,
        onset=datetime.fromtimestamp(run.slow[0].begins, UTC),
        onset_within_s=run.pace.off_s,
        onset_step=step_at(facts, run.slow[0].begins),
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=(OPEN,),
        actions=_actions(facts, hosts),
        resubmit="exclude" if hosts else "unknown",
    )


def _actions(facts: Facts, hosts: tuple[str, ...]) -> tuple[Action, ...]:
    trace = Action("collect", "Trace a few steps on this rank and on another.", None, hosts)
    return (leave_out(facts, hosts), trace) if hosts else ()


READ: tuple[tuple[Callable[[Facts], Any], Callable[[Facts, Any], Finding]], ...] = (
    (lambda facts: printed_waits(facts) or tabled_waits(facts), _waited_for),
    (reported, _reported), (fell_behind, _behind), (lags, _reported), (own_work, _slow_itself),
)  # fmt: skip
"""What tells of ranks in words, the first that does, and how it is told."""
