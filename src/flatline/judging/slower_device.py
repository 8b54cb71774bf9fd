"""
Collectives by sockets that fill one network device of every host, beside a faster one that idles.

`NCCL_SOCKET_IFNAME` that names the device for logins, or one that comes first by its name, is all
that it takes.  A device that is full throughout the run, on every host alike, is waited for.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from flatline.facts import Facts
from flatline.judging.bypassed import ALIKE, FULL, PLAIN, SPEED, span
from flatline.judging.claims import claim
from flatline.judging.losses import on_sockets
from flatline.judging.throughput import pace
from flatline.judging.timeline import instant
from flatline.model import Action, Claim, Finding, QueryCite

FASTER, IDLE = 4.0, 0.1
"""How many times as fast the other device is at least, and how much of it may be in use."""
SURE, MOST = 0.75, 0.79
"""A judgement: full all through the run tells that it is waited for; nothing measures how long."""


@dataclass(frozen=True, slots=True)
class _Device:
    name: str
    sent: QueryCite
    speed: QueryCite

    @property
    def used(self) -> float:
        return self.sent.value / self.speed.value


def slower_device(facts: Facts, code: str) -> Finding | None:
    """None where NCCL says nothing of sockets, or on one host of the run no device is full or
    none that is faster idles."""
    said = on_sockets(facts)
    hosts = _devices(facts) if said is not None and len(facts.hosts) > 1 else {}
    if said is None or not {facts.node_of(host) for host in hosts} >= set(facts.hosts):
        return None
    pairs = [_pair(devices) for devices in hosts.values()]
    known = [pair for pair in pairs if pair is not None]
    rates = [full.sent.value for full, _ in known]
    if len(known) < len(hosts) or min(rates) < ALIKE * max(rates):
        return None
    full, idle = min(known, key=lambda pair: pair[0].sent.value)
    return _finding(facts, code, (claim("NCCL says that it uses sockets", said.cite),
                                  _told(full, idle, len(hosts))), (full, idle))  # fmt: skip


def _devices(facts: Facts) -> dict[str, list[_Device]]:
    """The devices of every host with what they sent a second over the run, and can."""
    known = pace(facts)
    if known is None or not facts.measured(PLAIN[0]) or not facts.measured(SPEED):
        return {}
    begins, ends = span(facts, known)
    sent = instant(facts, f"rate({PLAIN[0]}[{max(1, ends - begins)}s])", ends)
    speed = instant(facts, SPEED, ends)
    if sent is None or speed is None:
        return {}
    rows = {(row.place.host, row.place.device): row for row in speed.rows if row.last > 0}
    found: dict[str, list[_Device]] = defaultdict(list)
    for row in sent.rows:
        host, name = row.place.host, row.place.device
        other = rows.get((host, name))
        if host is None or name is None or other is None:
            continue
        cites = (sent.cite(row, f"sent over {name}"), speed.cite(other, f"{name} can carry"))
        found[host].append(_Device(name, *cites))
    return dict(found)


def _pair(devices: list[_Device]) -> tuple[_Device, _Device] | None:
    """The one that is full, and a faster one that idles."""
    full = max(devices, key=lambda device: device.used)
    idle = max(devices, key=lambda device: device.speed.value)
    if full.used < FULL or idle.used > IDLE:
        return None
    return (full, idle) if idle.speed.value >= FASTER * full.speed.value else None


def _told(full: _Device, idle: _Device, count: int) -> Claim:
    text = (
        f"Each of {count} hosts sent {full.sent.value / 1e6:,.0f} MB/s or more all the time"
        f" over {full.name}, which carries {full.speed.value / 1e6:,.0f};"
        f" {idle.name} carries {idle.speed.value / 1e6:,.0f} and sent {idle.sent.value / 1e6:.2f}"
    )
    return claim(text, full.sent, full.speed, idle.speed, idle.sent)


def _finding(
    facts: Facts, code: str, shows: tuple[Claim, ...], pair: tuple[_Device, _Device]
) -> Finding:
    full, idle = pair
    return Finding(
        code=code,
        summary=f"Collectives filled {full.name} on every host while {idle.name}, which is"
        f" {idle.speed.value / full.speed.value:.0f} times as fast, lay idle",
        fault_class="slow-interconnect",
        attribution="job",
        shows=shows,
        implies=(claim("Steps take as long as what their collectives send does.", full.sent),),
        strength=SURE,
        most=MOST,
        severity="degraded",
        scope="all",
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=("What it costs: nothing that was read shows that the GPUs wait.",
                       f"Whether {idle.name} reaches the other hosts: it may be storage's."),
        actions=(
            Action("fix", f"Let NCCL use {idle.name}, or the adapter behind it.",
                   f"NCCL_SOCKET_IFNAME={idle.name} NCCL_DEBUG=INFO"),
        ),
        resubmit="fix_first",
    )  # fmt: skip
