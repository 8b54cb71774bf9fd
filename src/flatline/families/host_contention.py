"""
Something else uses the host the run needs.

Symptom:
    Steps are slower while the host shows a longer run queue, memory or I/O pressure, or threads
    that were never ended.

Mechanism:
    Data loading, launches and progress threads compete for CPU, memory bandwidth or I/O.

Told apart from:
    D1 input-starvation: the pipeline is slow by itself.
    D3 straggler: the slow rank's host shows no pressure.
    A head node that always runs more than the others while the pace is steady and its GPUs are as
    active: that is a warning.
    Storage pressure on the hosts that write a checkpoint, while they write it.
    A queue that grows through the run on one host, unless its tasks wait for a CPU much of the
    time and throughput falls by degrees with it.
    Threads that every host carries from the first step on: they show beside a baseline run of the
    same settings, where throughput is lower and every host's queue longer.  Lower throughput of
    other settings, and a longer queue at the same throughput, are none.

Do:
    End what competes, pin the ranks' cores, or take the host alone (--exclusive).

References:
    Linux pressure stall information; /proc/stat procs_running.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby, pairwise

from flatline.facts import Facts
from flatline.judging.anchored import UNPROVEN, anchored, unlike
from flatline.judging.beside import Beside, beside
from flatline.judging.bursts import Aligned, align, passed
from flatline.judging.claims import claim
from flatline.judging.comparison import signal_levels
from flatline.judging.data_waits import fed_late, grown_waits, waits_told
from flatline.judging.gaps import gaps_of
from flatline.judging.host_loads import QUEUE, SIGNALS, HostLoads, host_loads
from flatline.judging.levels import ALIKE, Level
from flatline.judging.lone_worker import lone_host
from flatline.judging.own_past import FEW, LEAKED, PRESSURE, STRAINED, filled, grown, middle, over
from flatline.judging.starved import KIND as CPU
from flatline.judging.starved import less_active, starving
from flatline.judging.throughput import Course, Slow, course, shown, step_at
from flatline.judging.timeline import usual
from flatline.model import Action, Cite, Claim, Cleared, Finding, Judgement, Place, QueryCite
from flatline.series.phases import phases
from flatline.signals import ACTIVITY

CODE = "D5"
NAME = "host-contention"
NEEDS = ("host metrics (run queue, pressure, memory)",)
DECIDED_BY = (
    "run queue and pressure of each host in a slow and a fast time, or those of a sound run "
    "on the same setting"
)
EXPLAINS = {
    "D1": "a starved host cannot feed its GPUs",
    "D3": "the rank on the contended host is the one the others wait for",
    "D2/slow-interconnect": "progress threads that wait for a CPU slow every collective",
    "F3": "a slowed run does not reach its plan in time",
}

THREADS = "host_threads"
RARE = ("memory-pressure",)
"""Of no host that has memory left, where a queue grows with a run's time for many reasons."""
DEGREES = 3
"""Slow phases, each slower than the one before it.  A judgement: of three that come in any order
one in six does so by chance, of two every other one."""
TRENDS = 0.75
"""Never more of one host: what grows with the run's time meets whatever else slows it by then."""
_RAISED = SIGNALS["run-queue"][2].ratio
_UNIFORM = {
    "run-queue": (QUEUE, "run queue", "{:.1f}"),
    "cpu-pressure": ("host_cpu_pressure_seconds_total", "time under CPU pressure", "{:.0%}"),
    "memory-pressure": ("host_memory_pressure_seconds_total", "time under memory pressure",
                        "{:.0%}"),
    "io-pressure": ("host_io_pressure_seconds_total", "time under storage pressure", "{:.0%}"),
}  # fmt: skip
"""What is compared with a baseline by fault class: signal, its name, how a value is spelt."""
WARNED, DOUBTED = 0.4, 0.79
LOADERS = "Whether the queue is the run's own loaders', or what keeps them waiting."
FILLED = "Whether the run itself filled the memory, or what runs beside it on the host."
MOST_HOSTS = 0.5
LASTING, LASTS = 0.5, 5
"""Above its peers in so much of the time, a host is always so."""
"""Stretches, a twentieth of a run whose pace is known well: saves and evaluations are shorter, and
the host that writes them is under pressure meanwhile."""
_SHOWN = 4


def judge(facts: Facts) -> Judgement:
    """Look for hosts under pressure in the slow phases, then for all of them at once, then for
    one whose pressure begins as the pace falls, then for one that is always so and whose GPUs pay
    for it."""
    run = course(facts)
    hosts = host_loads(facts, run)
    if hosts is None:  # of one host only another run tells, or its own past
        return _from_baseline(facts) or (_by_own_past(facts, run) if run is not None else None)
    low = run.low(hosts.cut) if run is not None else []
    if run is not None and (told := _in_bursts(facts, run, hosts, low)) is not None:
        return told
    if run is not None and run.slow:
        slowed = _uniform(facts, run, hosts, low) or _steadily(facts, run, hosts)
        if slowed is not None and not slowed.culprits:
            return _of_loaders(facts, slowed)
        slowed = slowed or _by_own_past(facts, run, hosts.pressed(MOST_HOSTS))
        if slowed is not None:
            return slowed
    raised = (_at_moments(facts, run, hosts) if run is not None else None) or _from_baseline(facts)
    if raised is not None:
        return raised
    for kind, lit in hosts.lit.items():
        lasting = [host for host, on in lit.items() if sum(on) >= LASTING * len(on)]
        few = lasting and len(lasting) <= MOST_HOSTS * len(hosts.read[kind].rows)
        if few and not fed_late(facts):
            return _always(facts, run, hosts, kind, lasting)
    if any(hosts.lit.values()) or (facts.baseline is not None and not _beside_cleared(facts)):
        return None
    return _cleared(facts, hosts)


def _in_bursts(
    facts: Facts, run: Course, hosts: HostLoads, low: Sequence[bool | None]
) -> Finding | None:
    def few(kind: str, found: Aligned | None) -> bool:
        return found is not None and len(found.hosts) <= MOST_HOSTS * len(hosts.read[kind].rows)

    for kind, lit in hosts.lit.items():
        found = align(lit, low, rare=kind in RARE or passed(low))
        if found is not None and few(kind, found):
            told = _in_phases(facts, run, hosts, kind, found)
            return _of_loaders(facts, told) if _all_press(facts, kind, found.hosts) else told
    starved = starving(hosts, low)
    if starved is None or not few(CPU, starved):
        return None
    return replace(_in_phases(facts, run, hosts, CPU, starved), most=DOUBTED)


def _all_press(facts: Facts, kind: str, hosts: Sequence[str]) -> bool:
    """Whether these are all of the run's hosts that are known, and wait for storage: what its own
    loaders read makes that as well."""
    named = {facts.node_of(host) for host in hosts}
    return kind == "io-pressure" and named >= {*facts.hosts}


# --- findings -----------------------------------------------------------------------------------


def _in_phases(facts: Facts, run: Course, hosts: HostLoads, kind: str, found: Aligned) -> Finding:
    first = run.slow[0]
    worst = min(run.slow, key=lambda phase: phase.part)
    names = ", ".join(found.hosts[:_SHOWN])
    return _finding(
        facts, kind, found.hosts,
        summary=f"{names} stood under {kind.replace('-', ' ')} while throughput was"
        f" {1 - worst.part:.0%} down",
        shows=(*_beside(facts, hosts, kind, found.hosts, hosts.lit[kind]),
               *(shown(facts, run, phase) for phase in run.slow[:_SHOWN])),
        strength=0.8 if len(run.slow) > 1 or len(_other(hosts, kind, found.hosts)) else 0.72,
        onset=first.begins,
    )  # fmt: skip


def _other(hosts: HostLoads, kind: str, named: Sequence[str]) -> list[str]:
    """Other kinds of pressure that the same hosts show."""
    return [k for k, lit in hosts.lit.items() if k != kind and set(named) & lit.keys()]


def _uniform(
    facts: Facts, run: Course, hosts: HostLoads, low: Sequence[bool | None]
) -> Finding | None:
    """Every host's queue grew with the slow phase: the run's own past is the baseline."""
    reduce, who = middle(facts)
    cut, query = hosts.cut, reduce.format(f"avg_over_time({QUEUE}[w])")
    answer = cut.ask(facts, query)
    row = answer.rows[0] if answer is not None and len(answer.rows) == 1 else None
    if answer is None or row is None or len(row) != len(cut.ends):
        return None
    parts = phases(row.values, effect=0.2)
    lowest = min(part.level for part in parts)
    high = [p for p in parts if p.level >= 1.5 * max(lowest, 1.0)]
    lit = [any(p.first <= at < p.last for p in high) for at in range(len(row))]
    if not high or align({"": lit}, low) is None:
        return None
    top, calm = high[0], min(parts, key=lambda part: part.level)
    cites = [answer.cite(row, text, at=row.times[(p.first + p.last) // 2])
             for p, text in ((top, f"run queue of {who} in the slow phase"),
                             (calm, f"run queue of {who} before"))]  # fmt: skip
    return _finding(
        facts, "run-queue", (),
        summary=f"The run queue of every host grew from {cites[1].value:.0f} to"
        f" {cites[0].value:.0f} as throughput fell",
        shows=(claim(f"{who.capitalize()} had {cites[0].value:.0f} tasks running or waiting in the"
                     f" slow phase, {cites[1].value:.0f} before", *cites),
               *(shown(facts, run, phase) for phase in run.slow[:_SHOWN])),
        strength=0.75,
        onset=run.slow[0].begins,
    )  # fmt: skip


def _steadily(facts: Facts, run: Course, hosts: HostLoads) -> Finding | None:
    """The same of a queue that grows from the first minute on, and leaves no level to stand above:
    longer in each phase the slower it is, until tasks wait for a CPU much of the time.  Of every
    host, or of those alone that stand above the others in both; there the pace must have fallen by
    degrees, for one fall meets a growing queue by chance as often as not."""
    slow = run.slow
    if not all(a.begins < b.begins and a.part > b.part for a, b in pairwise((run.best, *slow))):
        return None
    queues = _growing(facts, (run.best, *slow), None)
    lit = hosts.lit["run-queue"]
    apart = hosts.pressed(MOST_HOSTS) if len(slow) >= DEGREES else []
    by_name = {host: told for host in apart
               if (told := _growing(facts, (run.best, *slow), host)) is not None}  # fmt: skip
    if queues is None and not by_name:
        return None
    names = [] if queues is not None else sorted(by_name, key=lambda h: -by_name[h][-1].value)
    *each, waited = queues or by_name[names[0]]
    whose, who = (names[0], names[0]) if names else ("every host", middle(facts)[1])
    return _finding(
        facts, "run-queue", names,
        summary=f"The run queue of {whose} grew from {each[0].value:.0f} to"
        f" {each[-1].value:.0f} as throughput fell",
        shows=(claim(f"Phase by phase {who} had"
                     f" {', '.join(f'{cite.value:.0f}' for cite in each)} tasks running or"
                     " waiting", *each),
               claim(f"In the last one its tasks waited for a CPU {waited.value:.0%} of the time",
                     waited),
               *_beside(facts, hosts, "run-queue", names, lit),
               *(shown(facts, run, phase) for phase in slow[:_SHOWN])),
        strength=0.6,
        most=TRENDS if names else 1.0,
        onset=slow[0].begins,
    )  # fmt: skip


def _by_own_past(facts: Facts, run: Course, apart: Sequence[str] = ()) -> Finding | None:
    """Of few hosts, or of those `apart` from the others, where the memory of one was filled or its
    CPUs came under pressure as the run became slower; what all share is `_uniform`'s."""
    hosts = facts.hosts if len(facts.hosts) <= FEW else apart
    filled_up = [one for host in hosts if (one := filled(facts, run, host)) is not None]
    found = filled_up or [one for host in hosts if (one := grown(facts, run, host)) is not None]
    if not found or len(found) == len(facts.hosts) > 1:
        return None
    told = _finding(
        facts, found[0].kind, [one.host for one in found],
        summary=found[0].summary,
        shows=(*(shows for one in found for shows in one.shows),
               *(shown(facts, run, phase) for phase in run.slow[:_SHOWN])),
        strength=0.75,
        most=DOUBTED if filled_up else 1.0,
        onset=run.slow[0].begins,
        doubts=(FILLED,) if filled_up else (),
    )  # fmt: skip
    return told if filled_up or len(facts.hosts) > 1 else _of_loaders(facts, told)


def _of_loaders(facts: Facts, found: Finding) -> Finding:
    """A warning where what the steps lost is what they wait more for their data: loaders that have
    more to do make a queue on every host by themselves."""
    if _more_threads(facts):
        return found
    if grown_waits(facts) is None:
        return found if waits_told(facts) else replace(
            found, most=DOUBTED, cannot_decide=(*found.cannot_decide, LOADERS))  # fmt: skip
    return replace(found, role="warning", severity="warning", strength=WARNED, implies=(),
                   cannot_decide=(*found.cannot_decide, LOADERS))  # fmt: skip


def _more_threads(facts: Facts) -> bool:
    """Whether the hosts had many more threads in the slow phase: loaders are started once."""
    run = course(facts)
    if run is None or not run.slow or not facts.measured(THREADS):
        return False
    asked = [over(facts, f"avg_over_time({THREADS}[{{}}])", phase, None)
             for phase in (run.best, run.slow[-1])]  # fmt: skip
    before, then = asked
    return before is not None and then is not None and then.value >= LEAKED * before.value


def _growing(facts: Facts, phases_: Sequence[Slow], host: str | None) -> list[QueryCite] | None:
    """The queue of a host, of the median one where none is named, in each of these phases, and
    how much its tasks waited in the last one; None where it does not grow throughout, or not so
    far."""
    asked = [over(facts, f"avg_over_time({QUEUE}[{{}}])", phase, host) for phase in phases_]
    waited = (over(facts, f"rate({PRESSURE}[{{}}])", phases_[-1], host)
              if facts.measured(PRESSURE) else None)  # fmt: skip
    queues = [cite for cite in asked if cite is not None]
    if waited is None or waited.value < STRAINED or len(queues) < len(asked):
        return None
    grows = all(a.value < b.value for a, b in pairwise(queues))
    far = queues[-1].value >= LEAKED * queues[0].value
    return [*queues, waited] if grows and far else None


def _at_moments(facts: Facts, run: Course, hosts: HostLoads) -> Finding | None:
    """Where the pace alone shows no phase, or one that meets any long pressure by chance: asked at
    the moments at which a host came under pressure for long."""
    lasting = {kind: {host: _long(marks) for host, marks in lit.items()}
               for kind, lit in hosts.lit.items() if lit}  # fmt: skip
    cuts = unlike([[*lit.values()] for lit in lasting.values()])
    for kind, lit in lasting.items():
        found = anchored(run.pace, hosts.cut, lit, cuts=cuts)
        if found is None or len(found.places) > MOST_HOSTS * len(hosts.read[kind].rows):
            continue
        names = ", ".join(found.places[:_SHOWN])
        return _finding(
            facts, kind, found.places,
            summary=f"{names} stood under {kind.replace('-', ' ')} while throughput was"
            f" {found.lower:.0%} down",
            shows=(*_beside(facts, hosts, kind, found.places, hosts.lit[kind]),
                   found.shown(facts)),
            strength=found.strength,
            most=found.most,
            onset=found.begins,
            doubts=(UNPROVEN,),
        )  # fmt: skip
    return None


def _long(marks: Sequence[bool]) -> list[bool]:
    """Without what is as short as a save or an evaluation, which slow a run as well."""
    parts = [(lit, len(list(group))) for lit, group in groupby(marks)]
    return [lit and length >= LASTS for lit, length in parts for _ in range(length)]


def _from_baseline(facts: Facts) -> Finding | None:
    """
    Every host under more pressure than in a baseline of the same settings.

    A cause where the run is slower than it as well, a warning where it is not; nothing where the
    settings differ, for other work asks for other threads.
    """
    if (known := beside(facts)) is None or not known.alike:
        return None
    for kind, (signal, what, spell) in _UNIFORM.items():
        if not known.rose(signal) or not _far(known.levels[signal]):
            continue
        level = known.level_claim(signal, what[0].upper() + what[1:], spell)
        here, there = known.told(signal)
        restore = known.restore_claim()
        counted = (known.level_claim(THREADS, "Threads", "{:.0f}"),) if known.rose(THREADS) else ()
        slower = known.slower
        lost = f", and the run is {known.lost:.1%} slower" if slower else "; the run is no slower"
        own = kind == "io-pressure" and any(known.rose(name, -1) for name in ACTIVITY)
        if own or (not slower and kind != "run-queue"):
            continue  # GPUs wait as well: the run's own loaders press the storage, which is D1
        ours = [*known.levels[signal].ours]
        alone = ours if len(ours) == 1 else []
        whose = f"The {what} of {ours[0]}" if alone else f"Every host's {what}"
        return _finding(
            facts, kind, alone,
            summary=f"{whose} is at {spell.format(here)} against"
            f" {spell.format(there)} in the baseline{lost}",
            shows=(level, *counted, known.pace_claim(), *([restore] if restore else []),
                   *known.unmoved((signal,))),
            strength=known.strength(0.8) if slower else 0.35,
            warning=not slower,
            leaked=(_leak(known, level, restore) if slower and kind == "run-queue" else None),
            doubts=known.open_questions(),
        )  # fmt: skip
    return None


def _far(level: Level) -> bool:
    """Beyond what is asked of a host beside its peers, on nearly every host."""
    ratio = _RAISED if level.signal.name == QUEUE else 1.0
    far = [value >= ratio * level.theirs.get(host, level.there)
           for host, value in level.ours.items()]  # fmt: skip
    return sum(far) >= ALIKE * len(far)


def _leak(known: Beside, level: Claim, restore: Claim | None) -> Claim:
    here, there = known.told(QUEUE)
    more = here - there
    since = ("since the restore, in which threads were made that did not end"
             if restore is not None else "whose origin the numbers do not tell")  # fmt: skip
    cites = (*level.cites, *(restore.cites if restore is not None else ()))
    return claim(f"About {more:.0f} threads more want a CPU on each host, {since}.", *cites)


def _beside_cleared(facts: Facts) -> bool:
    """Whether the baseline shows every host's queue as long as in this run."""
    level = signal_levels(facts).get(QUEUE)
    return level is not None and level.everywhere() != 1


def _always(
    facts: Facts, run: Course | None, hosts: HostLoads, kind: str, lasting: Sequence[str]
) -> Finding:
    """Hosts above their peers most of the time: a cause where their GPUs are less active or alone
    have gaps; else a warning, for the head node always runs more."""
    starved = [c for host in lasting if (c := less_active(facts, hosts, host)) is not None]
    starved += _gaps(facts, run, lasting) if run is not None and not starved else ()
    return _finding(
        facts, kind, names := sorted(lasting),
        summary=f"{', '.join(names[:_SHOWN])} stood under {kind.replace('-', ' ')} all the time"
        + (", and its GPUs worked less than the others'" if starved else ""),
        shows=(*_beside(facts, hosts, kind, names, hosts.lit[kind]), *starved),
        strength=0.75 if starved else 0.35,
        warning=not starved,
    )  # fmt: skip


def _gaps(facts: Facts, run: Course, hosts: Sequence[str]) -> tuple[Claim, ...]:
    """That GPUs of these hosts alone had gaps, in the slow phases or all along."""
    alone = lone_host(facts, run)
    own = [*hosts] == [alone.place.host if alone is not None else None]
    return (alone.shows,) if alone and own else gaps_of(facts, run, hosts)


def _beside(
    facts: Facts, hosts: HostLoads, kind: str, named: Sequence[str], lit: dict[str, list[bool]]
) -> list[Claim]:
    """Each host in a stretch in which it stood apart, beside the median host then."""
    query = hosts.read[kind].answer.canonical
    out = []
    for host in named[:_SHOWN]:
        marked = [end for end, on in zip(hosts.cut.ends, lit[host], strict=True) if on]
        time = marked[len(marked) // 2]
        own = hosts.read[kind].cite(host, time, f"{kind} of {host}")
        others = usual(facts, query, time, f"{kind} of the median host")
        if own is not None:
            beside = f", the median host {_said(kind, others.value)}" if others else ""
            out.append(claim(f"{host}: {_said(kind, own.value)}{beside}", own, others))
    return out


def _said(kind: str, value: float) -> str:
    if kind == "run-queue":
        return f"{value:.1f} tasks running or waiting for a CPU"
    return f"{value:.0%} of the time under {kind.replace('-', ' ')}"


def _finding(
    facts: Facts, kind: str, names: Sequence[str], *, summary: str, shows: Sequence[Claim],
    strength: float, most: float = 1.0, onset: float | None = None, warning: bool = False,
    leaked: Claim | None = None, doubts: tuple[str, ...] = (),
) -> Finding:  # fmt: skip
    hosts = tuple(names)
    return Finding(
        code=CODE,
        summary=summary,
        fault_class=kind,
        attribution="infrastructure" if hosts else "job",
        shows=tuple(shows),
        implies=() if warning else (
            claim("Launches, progress threads and data loading wait for the host, and every rank"
                  " waits for the slowest.", *shows[0].cites),
            *([leaked] if leaked is not None else []),
        ),
        strength=strength,
        most=most,
        role="warning" if warning else "cause",
        severity="warning" if warning else "degraded",
        culprits=tuple(Place(host=host) for host in hosts),
        scope="place" if hosts else "all",
        onset=None if onset is None else datetime.fromtimestamp(onset, UTC),
        onset_step=None if onset is None else step_at(facts, onset),
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=("What runs there: a list of its processes during the run would tell.",
                       *doubts),
        actions=(
            Action("collect", "List what runs beside the job while it is slow.",
                   "ps -eLo pid,user,stat,pcpu,comm --sort=-pcpu | head -40", hosts),
        ),
        resubmit="exclude" if hosts and not warning else "unknown",
    )  # fmt: skip


# --- cleared ------------------------------------------------------------------------------------


def _cleared(facts: Facts, hosts: HostLoads) -> Cleared | None:
    """No host stood above the others for a single stretch, whatever was measured."""
    short = {host.partition(".")[0] for host in hosts.read["run-queue"].rows}
    if {host.partition(".")[0] for host in facts.hosts} - short:
        return None
    if not all(read.covers(hosts.cut) for read in hosts.read.values()):
        return None
    end, span_s = hosts.cut.ends[-1], max(1, int(hosts.cut.ends[-1] - hosts.cut.start.timestamp()))
    cites: list[Cite] = []
    for kind, read in hosts.read.items():
        query = read.answer.canonical.replace(f"[{hosts.cut.length_s}s]", f"[{span_s}s]")
        for reduce, text in (("max({})", "the highest host"), ("quantile(0.5, {})", "the median")):
            cite = usual(facts, query, end, f"{kind} over the run: {text}", reduce)
            cites += [] if cite is None else [cite]
    if len(hosts.read) < 2 or not cites:
        return None
    kinds = ", ".join(kind.replace("-", " ") for kind in hosts.read)
    why = f"no host stood above the others in {kinds}, and none grew with a slow phase"
    return Cleared(CODE, why, tuple(cites))
