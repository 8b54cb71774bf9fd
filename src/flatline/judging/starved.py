"""Hosts whose tasks waited for a CPU most of the time from about when the pace fell, and whether
the GPUs of one paid for it."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from flatline.facts import Facts
from flatline.judging.apart import TAKES_PART
from flatline.judging.bursts import Aligned, align
from flatline.judging.claims import claim
from flatline.judging.host_loads import HostLoads
from flatline.judging.timeline import by_host, instant, usual
from flatline.model import Claim

KIND = "cpu-pressure"
STARVING = 0.5
"""Of the time in which tasks of a host waited for a CPU, in its bursts: no loader that is fed a
fair share of it does so for long.  A judgement, told below 0.8: one fall may be chance."""

STARVED = 0.9
"""A host whose GPUs are active less than this part of the others' pays for its queue."""


def starving(hosts: HostLoads, low: Sequence[bool | None]) -> Aligned | None:
    """None where their bursts reach into the fast time, or others' are as long by chance."""
    read, lit = hosts.read.get(KIND), hosts.lit.get(KIND, {})
    found = align(lit, low, rare=True) if read is not None else None
    if read is None or found is None:
        return None
    for host in found.hosts:
        waits = [read.value(host, end) or 0.0
                 for end, on in zip(hosts.cut.ends, lit[host], strict=True) if on]  # fmt: skip
        if median(waits) < STARVING:
            return None
    return found


def less_active(facts: Facts, hosts: HostLoads, host: str) -> Claim | None:
    signal = "gpu_sm_active_ratio"
    if not facts.measured(signal):
        return None
    span_s = max(1, int(hosts.cut.ends[-1] - hosts.cut.start.timestamp()))
    query, end = f"avg by (host) (avg_over_time({signal}[{span_s}s]))", hosts.cut.ends[-1]
    read = by_host(instant(facts, query, end))
    own = None if read is None else read.cite(host, end, "SM activity of its GPUs")
    if read is None or own is None:
        return None
    others = usual(facts, query, end, "SM activity of the median host",
                   exporter=read.rows[host].exporter)  # fmt: skip
    if others is None or not TAKES_PART * others.value <= own.value < STARVED * others.value:
        return None  # one that does next to nothing is another job's, or a spare
    return claim(f"The GPUs of {host} had their SMs active {own.value:.0%} of the time, those of"
                 f" the median host {others.value:.0%}", own, others)  # fmt: skip
