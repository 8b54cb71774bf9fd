"""
What a host read in one phase of its run beside another, and whether what waits for its CPUs or its
memory grew as the run became slower: a job on one host has no other to stand beside, but a past of
its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from flatline.facts import Facts
from flatline.judging.claims import claim
from flatline.judging.host_loads import QUEUE
from flatline.judging.throughput import Course, Slow
from flatline.judging.timeline import by_host, instant, usual
from flatline.model import Claim, QueryCite

PRESSURE = "host_cpu_pressure_seconds_total"
FEW = 2
STRAINED, LEAKED = 0.2, 3.0
"""Of the time some task waited for a CPU, and times the queue of the fastest phase: two things
that both grow meet by chance, so that what is asked is far beyond a loader's ups and downs.  A
judgement."""
NEAR = 5
"""Points of the pace on each side of a border, but for the one beside it, between which the queue
must have changed as well: a queue that grew at another time met the slow phase by chance."""
SCRAPES_S = 180.0
"""At least so long: exporters are asked once in 15 to 60 s, and a rate takes two answers."""
TURNED = 2.0
"""Times as long on the one side as on the other: a part of what is asked of whole phases, as few
points scatter more."""

MEMORY, AVAILABLE = "host_memory_pressure_seconds_total", "host_memory_available_bytes"
LEFT = 0.1
"""Of the memory that could be had in the fastest phase.  Where more is left, tasks wait for memory
as they reach a limit of their own, which is nobody else's doing.  A judgement."""
Pair = tuple[QueryCite, QueryCite]


@dataclass(frozen=True, slots=True)
class Past:
    """The host, what it is short of, and what shows that it was not in the fastest phase."""

    host: str
    kind: str
    summary: str
    shows: tuple[Claim, Claim]


def middle(facts: Facts) -> tuple[str, str]:
    """How what every host shares is asked for, and whose it is: of two the middle is half
    the loaded one's."""
    if 0 < len(facts.hosts) <= FEW:
        return "min({})", "the least loaded host"
    return "quantile(0.5, {})", "the median host"


def over(facts: Facts, query: str, phase: Slow, host: str | None) -> QueryCite | None:
    """What a host, or the middle one, read over a phase."""
    end = float(int(phase.ends))
    asked = query.format(f"{max(1, int(phase.ends - phase.begins))}s")
    if host is None:
        reduce, who = middle(facts)
        return usual(facts, asked, end, who, reduce)
    read = by_host(instant(facts, asked, end))
    return None if read is None else read.cite(host, end, host)


def grown(facts: Facts, run: Course, host: str) -> Past | None:
    """None unless the host's queue and CPU pressure are far above those of the fastest phase in
    every slow one, and turned where these begin and end."""
    told = _turned_with(
        facts, run, host,
        (f"avg_over_time({QUEUE}[{{}}])", f"rate({PRESSURE}[{{}}])"),
        (QUEUE, PRESSURE),
        lambda a, b: b[0].value >= LEAKED * a[0].value and _strained(a[1], b[1]),
        lambda a, b: b[0].value >= TURNED * a[0].value,
    )  # fmt: skip
    if told is None:
        return None
    (before, little), (then, much) = told
    return Past(
        host, "run-queue",
        f"The run queue of {host} grew from {before.value:.0f} to {then.value:.0f} as throughput"
        " fell",
        (claim(f"{then.value:.0f} tasks ran or waited in the slow phase, {before.value:.0f} in the"
               " fast one", then, before),
         claim(f"Tasks waited for a CPU {much.value:.0%} of the time, {little.value:.0%} before",
               much, little)),
    )  # fmt: skip


def filled(facts: Facts, run: Course, host: str) -> Past | None:
    """The same of its memory: little of it left, and tasks that wait for it."""
    told = _turned_with(
        facts, run, host,
        (f"quantile_over_time(0.5, {AVAILABLE}[{{}}])", f"rate({MEMORY}[{{}}])"),
        (AVAILABLE, MEMORY),
        lambda a, b: b[0].value <= LEFT * a[0].value and _strained(a[1], b[1]),
        lambda a, b: b[1].value >= max(STRAINED / TURNED, TURNED * a[1].value),
    )  # fmt: skip
    if told is None:
        return None
    (before, little), (then, much) = told
    left, had = then.value / 2**30, before.value / 2**30
    return Past(
        host, "memory-pressure",
        f"The memory of {host} was filled as throughput fell: {left:.0f} of {had:.0f} GiB left",
        (claim(f"{left:.1f} GiB of memory could be had in the slow phase, {had:.1f} in the fast"
               " one", then, before),
         claim(f"Tasks waited for memory {much.value:.0%} of the time, {little.value:.0%} before",
               much, little)),
    )  # fmt: skip


def _strained(before: QueryCite, then: QueryCite) -> bool:
    return then.value >= max(STRAINED, LEAKED * before.value)


def _turned_with(
    facts: Facts,
    run: Course,
    host: str,
    queries: tuple[str, str],
    signals: tuple[str, str],
    far: Callable[[Pair, Pair], bool],
    turned: Callable[[Pair, Pair], bool],
) -> tuple[Pair, Pair] | None:
    """What the host read in the fastest phase and in the slowest, where it is far off in every
    slow one, and turned where these begin and end."""
    if not run.slow or not run.pace.clocked:
        return None
    if not all(map(facts.measured, signals)):
        return None
    worst = min(run.slow, key=lambda phase: phase.part)
    best, *told = (_read(facts, host, queries, phase) for phase in (run.best, worst, *run.slow))
    if best is None or any(one is None or not far(best, one) for one in told):
        return None
    for sides in _borders(run):
        fast, slow = (_read(facts, host, queries, side) for side in sides)
        if fast is None or slow is None or not turned(fast, slow):
            return None
    return None if told[0] is None else (best, told[0])


def _read(facts: Facts, host: str, queries: tuple[str, str], phase: Slow) -> Pair | None:
    """What the host read over a phase."""
    one, other = (over(facts, query, phase, host) for query in queries)
    return None if one is None or other is None else (one, other)


def _borders(run: Course) -> Iterator[tuple[Slow, Slow]]:
    """The sides of each border of a slow phase with one that is not, the slower one last."""
    slow, step_s = {*run.slow}, run.pace.interval_s
    reach_s = max(NEAR * step_s, SCRAPES_S)
    for before, after in zip(run.settled, run.settled[1:], strict=False):
        if (before in slow) == (after in slow):
            continue
        border = after.begins
        sides = (
            replace(before, begins=max(before.begins, border - reach_s), ends=border - step_s),
            replace(after, begins=border + step_s, ends=min(after.ends, border + reach_s)),
        )
        if all(side.ends - side.begins >= step_s for side in sides):
            yield sides if after in slow else (sides[1], sides[0])
