"""
Collectives over sockets while the fast fabric lies idle, and what that costs.

A fallback alone is no fault: a small model on a plain network loses nothing by it.  What waits in
a collective keeps a kernel of few blocks running, so that its GPU looks busy while little of it
is, and draws little.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from flatline.facts import Facts
from flatline.judging.claims import claim
from flatline.judging.losses import on_sockets
from flatline.judging.throughput import Pace, pace
from flatline.judging.timeline import by_host, instant, usual
from flatline.model import Claim, LogCite, QueryCite

BYTES = 50e6
"""Bytes a second each host must send over its plain network: collectives fill a link, control
traffic and logging do not come near."""
FILLS = 1e9
"""Bytes a second, most of what 10 Gbit/s carry: collectives that need so much wait for sockets.  A
judgement: ports of a fabric carry ten times as much and more."""
SPEED, FULL, ALIKE = "network_speed_bytes", 0.8, 0.8
"""What a device can carry, and the part of it that collectives over TCP come to: its framing alone
takes a twentieth.  Hosts that send for one run send alike."""
UNUSED = 0.01
"""RDMA traffic below this part of the plain network's is none."""
PLAIN = ("network_transmit_bytes_total", "network_receive_bytes_total")
"""What is sent first: data sets and checkpoints are received as well, so that the second tells of
collectives only where NCCL says that it uses sockets."""
RUNS, WAITS, WORKS = 0.9, 0.5, 0.75
"""Of the time a kernel ran on the GPU that was least busy; and of its processors (or its power
limit) what the busiest GPU used at most where they wait, and the median one at least where they
work.  A judgement: generated runs and public profiles of large models at work show 0.7 to 0.9."""
RAN, ACTIVE = ("gpu_utilization_ratio", "gpu_engine_active_ratio"), "gpu_sm_active_ratio"
POWER, LIMIT = "gpu_power_watts", "gpu_power_limit_watts"
ADDRESS = re.compile(r"[\d.]+|.*:.*")
REASONS = "no-rdma"
"""The tag of lines by which NCCL says why it uses no adapter."""


@dataclass(frozen=True, slots=True)
class Bypassed:
    """What the hosts sent over each network, that a port is up where that was measured, and what
    NCCL says of it."""

    least: QueryCite
    most: QueryCite
    ready: QueryCite | None
    verb: str
    said: tuple[LogCite, ...]
    reasons: tuple[LogCite, ...]

    @property
    def fills(self) -> bool:
        return self.least.value >= FILLS


def bypassed(facts: Facts) -> Bypassed | None:
    """None where the fabric was used, is down or was not measured, or where little was sent."""
    known, said = pace(facts), on_sockets(facts)
    signal = next(filter(facts.measured, PLAIN if said is not None else PLAIN[:1]), None)
    needed = ("rdma_transmit_bytes_total", "rdma_port_up")
    seen = facts.measured(needed[0]) and (facts.measured(needed[1]) or said is not None)
    if known is None or signal is None or not seen:
        return None
    begins, ends = span(facts, known)
    own = _own(facts, needed[0], ends)
    sent = _sent(signal + _own(facts, signal, ends), begins, ends)
    fabric = f"sum by (host) (rate({needed[0]}{own}[{max(1, ends - begins)}s]))"
    plain = by_host(instant(facts, sent, ends))
    up = instant(facts, f"max({needed[1]}{own})", ends) if facts.measured(needed[1]) else None
    down = up is not None and (not up.rows or up.rows[0].last != 1)
    if plain is None or len(plain.rows) < 2 or down:
        return None
    verb = "sent" if signal == PLAIN[0] else "received"
    what = f"plain network, the host that {verb} least"
    least = usual(facts, sent, ends, what, "min({})")
    most = usual(facts, fabric, ends, "RDMA, the host that sends most", "max({})")
    if least is None or most is None or least.value < BYTES or most.value >= UNUSED * least.value:
        return None
    ready = None if up is None else up.cite(up.rows[0], "an RDMA port is up")
    reasons = tuple(m.cite for m in facts.tagged(REASONS) if m.attempt == facts.last.n)
    return Bypassed(least, most, ready, verb, (said.cite,) if said else (), reasons)


def filled(facts: Facts) -> tuple[QueryCite, LogCite] | None:
    """What the host that sent least sent over the plain network, where NCCL says that it uses it
    between several hosts and each fills it; and the line."""
    known, said = pace(facts), on_sockets(facts)
    if known is None or said is None or not facts.measured(PLAIN[0]):
        return None
    begins, ends = span(facts, known)
    sent = _sent(PLAIN[0] + _own(facts, PLAIN[0], ends), begins, ends)
    read = by_host(instant(facts, sent, ends))
    least = usual(facts, sent, ends, "plain network, the host that sent least", "min({})")
    if read is None or len(read.rows) < 2 or least is None:
        return None
    rates = [row.last for row in read.rows.values()]
    if len(facts.hosts) < 2 and min(rates) < ALIKE * max(rates):
        return None  # who took part is not known, and not all sent as much
    if least.value < FILLS and not _fills_its_link(facts, begins, ends):
        return None
    return least, said.cite


def span(facts: Facts, known: Pace) -> tuple[int, int]:
    """From the first step to the last, as far as the metrics reach: a rate over more than they do
    would be of a part of what was sent."""
    begins, ends = known.span
    if facts.window is not None:
        since, until = (moment.timestamp() for moment in facts.window)
        begins, ends = max(begins, since), max(begins, min(ends, until))
    return int(begins), int(ends)


def _fills_its_link(facts: Facts, begins: int, ends: int) -> bool:
    """Whether every host sends about as much as its busiest device can."""
    if not facts.measured(SPEED):
        return False
    own = _own(facts, PLAIN[0], ends)
    rate = f"rate({PLAIN[0]}{own}[{max(1, ends - begins)}s])"
    read = by_host(instant(facts, f"max by (host) ({rate} / ({SPEED}{own} > 0))", ends))
    return read is not None and all(row.last >= FULL for row in read.rows.values())


def _own(facts: Facts, signal: str, at: float) -> str:
    """What narrows a signal to the hosts that were heard of, where no record tells the run's: a
    site's metrics hold those of others.  Nothing where not each of them is found there, be it
    that the metrics know it by another name."""
    if len(facts.hosts) < 2 or (facts.job is not None and facts.job.nodes):
        return ""
    heard = {host if ADDRESS.fullmatch(host) else host.partition(".")[0] for host in facts.hosts}
    names = "|".join(name.replace(".", "[.]") for name in sorted(heard))
    narrowed = f'{{host=~"(?:{names})(?:[.].*)?"}}'
    read = by_host(instant(facts, f"sum by (host) ({signal}{narrowed})", at))
    return narrowed if read is not None and len(read.rows) == len(heard) else ""


def _sent(signal: str, begins: int, ends: int) -> str:
    """What the busiest device of each host moved a second: a bond counts again what its parts do,
    and a VLAN what its port does."""
    return f"max by (host) (rate({signal}[{max(1, ends - begins)}s]))"


@dataclass(frozen=True, slots=True)
class Used:
    """How much of its GPUs a run used while a kernel ran on all of them."""

    shows: Claim
    waits: bool
    works: bool


def used(facts: Facts) -> Used | None:
    """None where it was not measured, or nothing ran for some of the time: no collective is it
    that a GPU waits for then."""
    known, ran = pace(facts), next(filter(facts.measured, RAN), None)
    if known is None or ran is None:
        return None
    begins, ends = span(facts, known)
    window = f"[{max(1, int(ends - begins))}s]"
    own = _own(facts, ran, ends)
    mean = f"avg_over_time({ran}{own}{window})"
    runs = usual(facts, mean, ends, "a kernel ran, the least busy GPU", "min({})")
    for query, of in _shares(facts, own, window):
        most = usual(facts, query, ends, f"{of}, the GPU that used most", "max({})")
        middle = usual(facts, query, ends, f"{of}, the median GPU")
        if runs is None or most is None or middle is None or runs.value < RUNS:
            return None
        always = f"{runs.value:.0%} of the time" + (" or more" if runs.value < 0.995 else "")
        text = (
            f"A kernel ran on every GPU {always}, and yet none used"
            f" more than {most.value:.0%} of its {of}"
        )
        return Used(claim(text, runs, most), most.value < WAITS, middle.value >= WORKS)
    return None


def _shares(facts: Facts, own: str, window: str) -> Iterator[tuple[str, str]]:
    if facts.measured(ACTIVE):
        yield f"avg_over_time({ACTIVE}{own}{window})", "processors"
    if facts.measured(POWER) and facts.measured(LIMIT):
        drawn, limit = (f"avg_over_time({one}{own}{window})" for one in (POWER, LIMIT))
        yield f"{drawn} / ({limit} > 0)", "power limit"  # a second die is limited to 0 W


def waiting_on_sockets(facts: Facts) -> Claim | None:
    """That NCCL says it uses sockets between several hosts, and the GPUs looked busy at little."""
    said = on_sockets(facts) if len(facts.hosts) > 1 else None
    known = used(facts) if said is not None else None
    if said is None or known is None or not known.waits:
        return None
    return claim(f"NCCL uses sockets between the hosts; {known.shows.text}", said.cite,
                 *known.shows.cites)  # fmt: skip
