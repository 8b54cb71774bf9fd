"""
What a host read in one phase of its run beside another, and whether what waits for its CPUs grew
as the run became slower: a job on one host has no other to stand beside, but a past of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from flatline.facts import Facts
from flatline.judging.host_loads import QUEUE
from flatline.judging.throughput import Course, Slow
from flatline.judging.timeline import by_host, instant, usual
from flatline.model import QueryCite

PRESSURE = "host_cpu_pressure_seconds_total"
STRAINED, LEAKED = 0.2, 3.0
"""Of the time some task waited for a CPU, and times the queue of the fastest phase: two things
that both grow meet by chance, so that what is asked is far beyond a loader's ups and downs.  A
judgement."""
NEAR = 5
"""Points of the pace on each side of a border, but for the one beside it, between which the queue
must have changed as well: a queue that grew at another time met the slow phase by chance."""
TURNED = 2.0
"""Times as long on the one side as on the other: a part of what is asked of whole phases, as few
points scatter more."""


@dataclass(frozen=True, slots=True)
class Grown:
    """The host, its queue and the time under pressure in the fastest phase and in the slow one."""

    host: str
    phase: Slow
    queue: tuple[QueryCite, QueryCite]
    pressure: tuple[QueryCite, QueryCite]


def over(facts: Facts, query: str, phase: Slow, host: str | None) -> QueryCite | None:
    """What a host, or the median one, read over a phase."""
    end = float(int(phase.ends))
    asked = query.format(f"{max(1, int(phase.ends - phase.begins))}s")
    if host is None:
        return usual(facts, asked, end, "the median host")
    read = by_host(instant(facts, asked, end))
    return None if read is None else read.cite(host, end, host)


def grown(facts: Facts, run: Course) -> Grown | None:
    """None unless the one host's queue and CPU pressure are far above those of the fastest phase
    in every slow one, and turned where these begin and end."""
    if len(facts.hosts) != 1 or not run.slow or not run.pace.clocked:
        return None
    if not facts.measured(QUEUE) or not facts.measured(PRESSURE):
        return None
    worst = min(run.slow, key=lambda phase: phase.part)
    told = [_read(facts, phase) for phase in (run.best, worst, *run.slow)]
    known = [one for one in told if one is not None]
    if len(known) < len(told):
        return None
    (queue, pressure), (longer, higher), *rest = known
    strained = max(STRAINED, LEAKED * pressure.value)
    if any(q.value < LEAKED * queue.value or p.value < strained for q, p in rest):
        return None
    if not all(_turned(facts, *sides) for sides in _borders(run)):
        return None
    return Grown(facts.hosts[0], worst, (queue, longer), (pressure, higher))


def _read(facts: Facts, phase: Slow) -> tuple[QueryCite, QueryCite] | None:
    """Queue and pressure of the one host over a phase."""
    queue = over(facts, f"avg_over_time({QUEUE}[{{}}])", phase, facts.hosts[0])
    pressure = over(facts, f"rate({PRESSURE}[{{}}])", phase, facts.hosts[0])
    return None if queue is None or pressure is None else (queue, pressure)


def _borders(run: Course) -> Iterator[tuple[Slow, Slow]]:
    """The sides of each border of a slow phase with one that is not, the slower one last."""
    slow, step_s = {*run.slow}, run.pace.interval_s
    for before, after in zip(run.settled, run.settled[1:], strict=False):
        if (before in slow) == (after in slow):
            continue
        border, reach_s = after.begins, NEAR * step_s
        sides = (
            replace(before, begins=max(before.begins, border - reach_s), ends=border - step_s),
            replace(after, begins=border + step_s, ends=min(after.ends, border + reach_s)),
        )
        if all(side.ends - side.begins >= step_s for side in sides):
            yield sides if after in slow else (sides[1], sides[0])


def _turned(facts: Facts, fast: Slow, slow: Slow) -> bool:
    a, b = (_read(facts, side) for side in (fast, slow))
    return a is not None and b is not None and b[0].value >= TURNED * a[0].value
