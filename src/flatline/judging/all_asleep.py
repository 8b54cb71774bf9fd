"""
A run that stands still to its end while the tasks of most of its hosts wait for storage.

What waits in a collective spins or sleeps and can be woken; a task in uninterruptible sleep, on
host after host from the moment of the last step on, waits for a disk or a server that they share.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from flatline.facts import Facts
from flatline.judging.blocked import BLOCKED, PROCS, TIMES
from flatline.judging.claims import claim
from flatline.judging.idled_since import idled_since
from flatline.judging.pace import silent_while_it_runs, standstill
from flatline.judging.timeline import ByHost, by_host, instant
from flatline.model import Claim

PRESSURE = "host_io_pressure_seconds_total"
PRESSED = 0.2
"""Of the time in which some task of a host waited for storage; less is a save or a log."""
CALM = 0.5
"""Of that, at most, before the run stood still: hosts that always wait so tell nothing."""
SHOWN = 3


@dataclass(frozen=True, slots=True)
class AllAsleep:
    """How many of how many hosts, since when, and what shows it."""

    hosts: int
    of: int
    since: datetime
    still: Claim
    shows: Claim


def all_asleep(facts: Facts) -> AllAsleep | None:
    """None where both were not measured on most hosts, or did not rise as the steps ended."""
    stood = standstill(facts) or silent_while_it_runs(facts) or idled_since(facts)
    if stood is None or not (facts.measured(PROCS) and facts.measured(PRESSURE)):
        return None
    seen, seconds, derived, said = stood
    began = facts.lived[0] or (facts.window[0] if facts.window else None)
    if began is None or facts.window is None or (seen.at - began).total_seconds() < seconds / 10:
        return None
    until = min(seen.at.timestamp() + seconds, facts.window[1].timestamp())
    now = _read(facts, seen.at.timestamp(), until)
    before = _read(facts, began.timestamp(), seen.at.timestamp())
    if now is None or before is None:
        return None
    hosts = [host for host in now[0].rows if not facts.hosts or facts.node_of(host) in facts.hosts]
    at = float(int(until))
    asleep = [host for host in hosts if _fell_asleep(host, now, before, at, seen.at.timestamp())]
    if not asleep or 2 * len(asleep) <= max(len(hosts), len(facts.hosts)):
        return None
    texts = ("tasks asleep", "time under storage pressure")
    cites = [read.cite(host, at, f"{text} since the last step, {host}")
             for host in asleep[:SHOWN]
             for read, text in zip(now, texts, strict=True)]  # fmt: skip
    first = now[0].value(asleep[0], at) or 0.0
    text = (
        f"From then on {len(asleep)} of {len(hosts)} hosts had tasks in uninterruptible sleep"
        f" ({asleep[0]}: {first:.1f} on average) and waited for storage, which they had not before"
    )
    still = claim(f"The last step stands {seconds:.0f} s before the end", derived, seen.last, said)
    return AllAsleep(len(asleep), len(hosts), seen.at, still, claim(text, *filter(None, cites)))


def _read(facts: Facts, start: float, end: float) -> tuple[ByHost, ByHost] | None:
    window = f"[{max(1, int(end - start))}s]"
    asked = (f"avg by (host) (avg_over_time({PROCS}{window}))",
             f"max by (host) (rate({PRESSURE}{window}))")  # fmt: skip
    tasks, pressed = (by_host(instant(facts, query, float(int(end)))) for query in asked)
    return None if tasks is None or pressed is None else (tasks, pressed)


def _fell_asleep(
    host: str, now: tuple[ByHost, ByHost], before: tuple[ByHost, ByHost], end: float, began: float
) -> bool:
    (tasks, pressed), (had, was) = (
        [read.value(host, float(int(at))) for read in both]
        for both, at in ((now, end), (before, began))
    )
    if tasks is None or pressed is None or had is None or was is None:
        return False
    return tasks >= max(BLOCKED, TIMES * had) and pressed >= PRESSED and was <= CALM * pressed
