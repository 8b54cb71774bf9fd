"""
The host whose own counter of out-of-memory kills rose as a process was killed for memory.

A kernel log that was copied from a lone machine names no host, nor does a shell's word that a
process was killed; the exporter that ran there does.
"""

from __future__ import annotations

from datetime import datetime

from flatline.facts import Facts
from flatline.judging.claims import claim
from flatline.judging.timeline import by_host, instant
from flatline.model import Claim, Place

COUNTER = "host_oom_kills_total"
AROUND_S = 300
"""To either side of the kernel's line: a scrape comes up to minutes later, and what a kernel log
holds is dated from a boot time that drifts."""


def counted_kill(facts: Facts, at: datetime | None) -> tuple[Place, Claim] | None:
    """The one host of all that are counted where it rose then; None where it rose on several, or
    hosts of the run are known and it is none of them."""
    if at is None or facts.window is None or not facts.measured(COUNTER):
        return None
    end = float(int(at.timestamp()) + AROUND_S)
    read = by_host(instant(facts, f"increase({COUNTER}[{2 * AROUND_S}s])", end))
    rose = {} if read is None else {host: n for host, n in read.at(end).items() if n > 0}
    if read is None or len(rose) != 1:
        return None
    (host,) = rose
    cite = read.cite(host, end, f"processes that the kernel of {host} killed for memory then")
    if cite is None or (facts.hosts and facts.node_of(host) not in facts.hosts):
        return None
    text = f"Of the hosts that were measured {host} alone counted an out-of-memory kill then"
    return Place(host=facts.node_of(host)), claim(text, cite)
