"""
One host whose local disk times out again and again, and whose GPUs wait for it.

For runs in which no pause shows, since steps carry no times or a line stands for many of them:
the kernel, the tasks of the host and its GPUs must all say so, and those of the other hosts not.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import median

from flatline.facts import Facts
from flatline.judging.claims import claim
from flatline.judging.crashes import Failure
from flatline.judging.launches import RAN
from flatline.judging.pauses import COST, SILENT_S, events, kernel_lines, moment
from flatline.judging.timeline import ByHost, by_host, instant
from flatline.model import Claim

EVENTS = 5
"""Fewer are a hiccup. A judgement."""
BLOCKED, TIMES = 1.0, 3.0
"""Tasks in uninterruptible sleep on average, and times those of any other host, from which a host
waits for its storage: as long as a task stands there it counts one."""
STARVED = 0.9
"""Of the time something ran on the GPUs of the median of the other hosts, as `D5` has it: they
spin in a collective meanwhile."""
PROCS = "host_procs_blocked"


@dataclass(frozen=True, slots=True)
class Blocked:
    """The host, its kernel's lines, how many events they tell of, and what shows its waits."""

    host: str
    told: tuple[Failure, ...]
    events: int
    shows: tuple[Claim, ...]


def blocked(facts: Facts, code: str) -> Blocked | None:
    """None where no host stands apart, or less than COST of the run's time can have gone."""
    by: dict[str, list[Failure]] = defaultdict(list)
    for line in kernel_lines(facts, code):
        if line.place.host and line.match is not None and "peer" not in line.match.groups:
            by[facts.node_of(line.place.host)].append(line)
    if len(by) != 1 or facts.window is None:
        return None
    ((host, lines),) = by.items()
    start, end = (at.timestamp() for at in facts.window)
    start, end = (known.timestamp() if known else own for known, own in (
        (facts.last.started_at, start), (facts.last.ended_at, end)))  # fmt: skip
    lines = [line for line in lines if start <= moment(line) <= end]
    times = events(lines)
    if len(times) < EVENTS or len(times) * SILENT_S < COST * (end - start):
        return None
    last_s = float(int(times[-1]))
    window = f"[{max(1, int(last_s - times[0] + SILENT_S))}s]"
    tasks, ran = _tasks(facts, host, window, last_s), _ran(facts, host, window, last_s)
    if tasks is None or ran is None:
        return None
    return Blocked(host, tuple(lines), len(times), (tasks, ran))


def _read(facts: Facts, signal: str, window: str, time: float) -> ByHost | None:
    query = f"avg by (host) (avg_over_time({signal}{window}))"
    return by_host(instant(facts, query, time)) if facts.measured(signal) else None


def _tasks(facts: Facts, host: str, window: str, time: float) -> Claim | None:
    read = _read(facts, PROCS, window, time)
    now = {} if read is None else dict(read.at(time))
    own = now.pop(next((h for h in now if facts.node_of(h) == host), ""), 0.0)
    if read is None or not now or own < BLOCKED or own < TIMES * max(now.values()):
        return None
    other = max(now, key=lambda name: now[name])
    cites = [read.cite(name, time, f"tasks in uninterruptible sleep on {name}")
             for name in (*(h for h in read.rows if facts.node_of(h) == host), other)]  # fmt: skip
    text = (
        f"From the first of them to the last {own:.1f} tasks stood in uninterruptible sleep on"
        f" {host}, on no other host more than {now[other]:.1f}"
    )
    return claim(text, *cites)


def _ran(facts: Facts, host: str, window: str, time: float) -> Claim | None:
    read = _read(facts, next(filter(facts.measured, RAN), ""), window, time)
    now = {} if read is None else dict(read.at(time))
    own = now.pop(next((h for h in now if facts.node_of(h) == host), ""), None)
    if read is None or not now or own is None or own >= STARVED * median(now.values()):
        return None
    least = min(now, key=lambda name: now[name])
    cites = [read.cite(name, time, f"share of time in which something ran on {name}")
             for name in (*(h for h in read.rows if facts.node_of(h) == host), least)]  # fmt: skip
    text = (
        f"Something ran on the GPUs of {host} {own:.0%} of that time, on those of no other host"
        f" less than {now[least]:.0%}"
    )
    return claim(text, *cites)
