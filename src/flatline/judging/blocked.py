"""
GPUs that wait while storage does not serve: one host's, for its own disk, or all, for a server.

For runs in which no pause shows, since steps carry no times or a line stands for many of them:
the kernel, the tasks of the hosts and the GPUs must all say so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from flatline.facts import Facts
from flatline.judging.claims import claim
from flatline.judging.crashes import Failure
from flatline.judging.launches import RAN
from flatline.judging.pauses import (
    COST,
    COST_S,
    ONCE,
    SILENT_S,
    events,
    kernel_lines,
    moment,
    silences,
)
from flatline.judging.timeline import ByHost, by_host, instant, usual
from flatline.model import Claim, QueryCite

EVENTS = 5
"""Fewer are a hiccup. A judgement."""
BLOCKED, TIMES = 1.0, 3.0
"""Tasks in uninterruptible sleep on average, and times those of any other host, from which a host
waits for its storage: as long as a task stands there it counts one."""
STARVED = 0.9
"""Of the time something ran on the GPUs of the median of the other hosts, as `D5` has it: they
spin in a collective meanwhile."""
PROCS = "host_procs_blocked"
DRAWN = 0.6
"""Of the power before: a GPU that waits draws less than that of what it draws at work (idle 0.12
of its limit, under load 0.9, as `judging.launches` has it; spinning in a wait stays between)."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """The host or the server, the kernels' lines, what happened in a sentence, and what shows
    the waits."""

    host: str | None
    server: str | None
    told: tuple[Failure, ...]
    summary: str
    shows: tuple[Claim, ...]
    got_over: bool = False
    """Whether it was one short wait of a run that is done."""


def blocked(facts: Facts, code: str) -> Blocked | None:
    """None where nobody is seen to wait, or less than COST of the run's time can have gone."""
    return _for_its_disk(facts, code) or _for_a_server(facts, code)


def _span(facts: Facts) -> tuple[float, float]:
    """The last attempt, by its record, else what was measured."""
    start, end = facts.window or (None, None)
    start, end = facts.last.started_at or start, facts.last.ended_at or end
    return (start.timestamp() if start else 0.0), (end.timestamp() if end else 0.0)


def _for_its_disk(facts: Facts, code: str) -> Blocked | None:
    by: dict[str, list[Failure]] = defaultdict(list)
    for line in kernel_lines(facts, code):
        if line.place.host and line.match is not None and "peer" not in line.match.groups:
            by[facts.node_of(line.place.host)].append(line)
    if len(by) != 1:
        return None
    ((host, lines),), (start, end) = by.items(), _span(facts)
    lines = [line for line in lines if start <= moment(line) <= end]
    times = events(lines)
    if len(times) < EVENTS or len(times) * SILENT_S < COST * (end - start):
        return None
    last_s = float(int(times[-1]))
    window = f"[{max(1, int(last_s - times[0] + SILENT_S))}s]"
    tasks, ran = _tasks(facts, host, window, last_s), _ran(facts, host, window, last_s)
    if tasks is None or ran is None:
        return None
    what = f"The GPUs of {host} waited while its disk did not answer, {len(times)} times"
    return Blocked(host, None, tuple(lines), what, (tasks, ran))


def _for_a_server(facts: Facts, code: str) -> Blocked | None:
    """The longest time for which kernels say that a server was silent, with most hosts' tasks
    asleep and the GPUs' power down."""
    start, end = _span(facts)
    silent = [
        (ended - at, at, ended, line)
        for at, ended, line in silences(facts, kernel_lines(facts, code))
        if ended is not None and start <= at < ended <= end
    ]
    if not silent:
        return None
    length_s, at, ended, line = max(silent, key=lambda one: one[0])
    if length_s < max(COST * (end - start), COST_S) or line.match is None:
        return None
    server = line.match.groups.get("peer")
    told = tuple(one for _, a, _, one in silent
                 if at - SILENT_S <= a < ended and one.match and
                 one.match.groups.get("peer") == server)  # fmt: skip
    window, time = f"[{max(1, int(ended - at))}s]", float(int(ended))
    read = _read(facts, PROCS, window, time)
    now = {} if read is None else read.at(time)
    order = sorted(now, key=lambda host: (now[host], host))
    low, usual_ = _power(facts, window, time), _power(facts, f"[{max(1, int(at - start))}s]", at)
    if read is None or not order or low is None or usual_ is None:
        return None
    median_host = order[len(order) // 2]
    if now[median_host] < BLOCKED or low.value >= DRAWN * usual_.value:
        return None
    asleep = claim(f"Meanwhile {now[median_host]:.1f} tasks stood in uninterruptible sleep on the"
                   " median host", read.cite(median_host, time, "tasks asleep"))  # fmt: skip
    fell = claim(f"The median GPU drew {low.value:.0f} W then and {usual_.value:.0f} W before",
                 low, usual_)  # fmt: skip
    what = f"The GPUs waited for {length_s / 60:.0f} min while {server} did not answer"
    again = any(b < at - SILENT_S or a > ended + SILENT_S for _, a, b, _ in silent)
    once = facts.disposition == "completed" and not again and length_s < ONCE * (end - start)
    return Blocked(None, server, told, what, (asleep, fell), once)


def _power(facts: Facts, window: str, time: float) -> QueryCite | None:
    if not facts.measured("gpu_power_watts"):
        return None
    query = f"avg_over_time(gpu_power_watts{window})"
    return usual(facts, query, float(int(time)), "power of the median GPU")


def _read(facts: Facts, signal: str, window: str, time: float) -> ByHost | None:
    query = f"avg by (host) (avg_over_time({signal}{window}))"
    return by_host(instant(facts, query, time)) if facts.measured(signal) else None


@dataclass(frozen=True, slots=True)
class _Beside:
    """What one host showed over a window, and what the others did."""

    read: ByHost
    name: str
    own: float
    others: Mapping[str, float]
    time: float

    def told(self, other: str, what: str, text: str) -> Claim:
        """The claim, with the host's own value and that of another."""
        cites = [self.read.cite(name, self.time, f"{what} on {name}")
                 for name in (self.name, other)]  # fmt: skip
        return claim(text, *cites)


def _beside(facts: Facts, signal: str, host: str, window: str, time: float) -> _Beside | None:
    read = _read(facts, signal, window, time)
    if read is None:
        return None
    name = next((one for one in read.rows if facts.node_of(one) == host), "")
    own, others = read.value(name, time), read.beside(name, time)
    return None if own is None or not others else _Beside(read, name, own, others, time)


def _tasks(facts: Facts, host: str, window: str, time: float) -> Claim | None:
    seen = _beside(facts, PROCS, host, window, time)
    most = max(seen.others.values()) if seen is not None else 0.0
    if seen is None or seen.own < BLOCKED or seen.own < TIMES * most:
        return None
    return seen.told(
        max(seen.others, key=lambda name: seen.others[name]),
        "tasks in uninterruptible sleep",
        f"From the first of them to the last {seen.own:.1f} tasks stood in uninterruptible sleep"
        f" on {host}, on no other host more than {most:.1f}",
    )


def _ran(facts: Facts, host: str, window: str, time: float) -> Claim | None:
    signal = next(filter(facts.measured, RAN), "")
    seen = _beside(facts, signal, host, window, time)
    if seen is None or seen.own >= STARVED * median(seen.others.values()):
        return None
    return seen.told(
        min(seen.others, key=lambda name: seen.others[name]),
        "share of time in which something ran",
        f"Something ran on the GPUs of {host} {seen.own:.0%} of that time, on those of no other"
        f" host less than {min(seen.others.values()):.0%}",
    )
