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

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from flatline.facts import Facts
from flatline.judging.bursts import Aligned, align
from flatline.judging.claims import claim
from flatline.judging.gpus import Readings, readings
from flatline.judging.steering import leave_out
from flatline.judging.throughput import Course, Slow, course, shown, step_at
from flatline.judging.timeline import Timeline, instant, timeline, usual
from flatline.model import Action, Claim, Finding, Judgement, Place
from flatline.series.spread import apart

CODE = "D3"
NAME = "straggler"
NEEDS = (
    "per-rank collective or compute times (profiler traces, flight recorder)",
    "GPU activity metrics",
)
EXPLAINS = {
    "F3": "a run at the pace of its slowest rank does not reach its plan in time",
    "D2/slow-interconnect": "every collective waits for the rank that comes last",
}

ACTIVITY = "gpu_sm_active_ratio"
"""Never the engine's or the coarse utilisation: a kernel that waits in a collective counts as
work there, so that victims look as busy as the rank they wait for."""
ABOVE, BELOW = 1.15, 0.85
"""Apart by more than GPUs of one job vary: below a tenth traces call no rank late (traceml)."""
LEAST_SPREAD = 0.01
MOST_SHARE = 0.25
"""More GPUs than this share are a pipeline stage or another part of the model, not a rank."""
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class _Ranks:
    """SM activity of every GPU over the stretches of the run."""

    cut: Timeline
    read: Readings


def judge(facts: Facts) -> Judgement:
    """
    Name the GPUs whose SMs work apart from their peers' in the slow phases, and in those alone.

    Their own fast phases are the control: a stage of a pipeline that always has more to do slows
    nothing.  Traces would name the rank by its waits; none are read here.
    """
    run = course(facts)
    if run is None or not run.slow or not facts.measured(ACTIVITY):
        return None
    ranks = _measure(facts, run)
    if ranks is None:
        return None
    low = run.low(ranks.cut)
    for ratio, kind in ((ABOVE, "slow-device"), (BELOW, "slow-host")):
        lit = _apart(ranks, ratio)
        found = align(lit, low)
        if found is not None and len(found.hosts) <= MOST_SHARE * len(ranks.read.rows):
            return _finding(facts, run, ranks, found, kind)
    return None


def _measure(facts: Facts, run: Course) -> _Ranks | None:
    cut = timeline(facts, [ACTIVITY], run.pace.span, 2 * run.pace.interval_s)
    read = None if cut is None else readings(cut.ask(facts, f"avg_over_time({ACTIVITY}[w])"))
    return None if cut is None or read is None else _Ranks(cut, read)


def _apart(ranks: _Ranks, ratio: float) -> dict[str, list[bool]]:
    """Per GPU and stretch whether its activity stands apart from that of GPUs of its model."""
    names = {str(place): place for place in ranks.read.rows}
    models: dict[str | None, list[str]] = {}
    for name, place in names.items():
        models.setdefault(ranks.read.rows[place].labels.get("model"), []).append(name)
    lit: dict[str, list[bool]] = {}
    for at, end in enumerate(ranks.cut.ends):
        for peers in models.values():
            values = {name: value for name in peers
                      if (value := ranks.read.value(names[name], end)) is not None}  # fmt: skip
            for name in apart(values, ratio=ratio, floor=LEAST_SPREAD):
                lit.setdefault(name, [False] * len(ranks.cut.ends))[at] = True
    return lit


# --- the finding --------------------------------------------------------------------------------


def _finding(facts: Facts, run: Course, ranks: _Ranks, found: Aligned, kind: str) -> Finding:
    names = {str(place): place for place in ranks.read.rows}
    places = [names[name] for name in found.hosts]
    culprits = _places(ranks, places)
    worst = min(run.slow, key=lambda phase: phase.part)
    beside = [one for place in places[:_SHOWN]
              if (one := _beside(facts, run, ranks, place, worst)) is not None]  # fmt: skip
    more = f" and {len(culprits) - 1} more" if len(culprits) > 1 else ""
    hosts = tuple(sorted({place.host for place in culprits if place.host}))
    why = (
        "Its own work takes longer than the others', which wait for it in the collectives."
        if kind == "slow-device"
        else "It is given its work late, and the others wait for it in the collectives."
    )
    return Finding(
        code=CODE,
        summary=f"{culprits[0]}{more} held the run back: throughput was {1 - worst.part:.0%} down"
        " while its SMs worked apart from the others'",
        fault_class=kind,
        attribution="infrastructure",
        shows=(*beside, *(shown(facts, run, phase) for phase in run.slow[:_SHOWN])),
        implies=(claim(why, *(cite for one in beside for cite in one.cites)),) if beside else (),
        strength=0.75 if kind == "slow-device" else 0.65,
        severity="degraded",
        culprits=culprits,
        onset=datetime.fromtimestamp(run.slow[0].begins, UTC),
        onset_step=step_at(facts, run.slow[0].begins),
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=("Why it is slow: its clocks, its host's load and a trace would tell.",),
        actions=(
            leave_out(facts, hosts),
            Action("collect", "Trace a few steps on this rank and on another.", None, hosts),
        ) if hosts else (),
        resubmit="exclude" if hosts else "unknown",
    )  # fmt: skip


def _places(ranks: _Ranks, places: Sequence[Place]) -> tuple[Place, ...]:
    """The GPUs, or their host where it is all of a host's."""
    out: dict[Place, None] = {}
    for place in places:
        here = [p for p in ranks.read.rows if p.host == place.host]
        whole = place.host is not None and len(here) > 1 and set(here) <= set(places)
        out.setdefault(Place(host=place.host) if whole else place)
    return tuple(out)


def _beside(facts: Facts, run: Course, ranks: _Ranks, place: Place, phase: Slow) -> Claim | None:
    """Its activity in the slow phase beside the median GPU's, and beside its own when the run
    was fast."""
    slow, fast = _query(phase), _query(run.best)
    own, before = (
        None if read is None else read.cite(place, float(int(p.ends)), "SM activity")
        for p, q in ((phase, slow), (run.best, fast))
        for read in (readings(instant(facts, q, float(int(p.ends)))),)
    )
    others = usual(facts, slow, float(int(phase.ends)), "SM activity of the median GPU")
    if own is None or others is None:
        return None
    past = f"; while the run was fast its own was {before.value:.0%}" if before else ""
    return claim(f"{place} had its SMs active {own.value:.0%} of the slow phase, the median GPU"
                 f" {others.value:.0%}{past}", own, others, before)  # fmt: skip


def _query(phase: Slow) -> str:
    return f"avg_over_time({ACTIVITY}[{max(1, int(phase.ends - phase.begins))}s])"
