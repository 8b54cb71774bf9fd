"""
Some hosts lose traffic, and the run slows with them.

Symptom:
    Throughput falls in phases; link errors or RDMA retransmits on a few hosts rise in the same
    phases.

Mechanism:
    A link that loses packets makes every collective through it wait for retransmission.

Told apart from:
    C5 network-failure: the link is gone, not slow.
    D2 throughput-bound (slow-interconnect): uniform, without link errors.
    TCP retransmits alone do not slow collectives that run over RDMA: they count where NCCL says
    that it uses sockets, on hosts that do not send more of something else meanwhile.
    A host that loses as much while the run is fast, and losses at a pace that never changes: the
    bursts must make up the slow phases, or the run be slower just inside them than just outside.
    Loss on most hosts alike: that is the fabric or its congestion, and no host's.

Do:
    Exclude the hosts in the order of their errors and resubmit; have their links checked.

References:
    InfiniBand port and hardware counters (Linux RDMA documentation); TcpRetransSegs (RFC 4022).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from flatline.facts import Facts
from flatline.judging import losses
from flatline.judging.anchored import UNPROVEN, Anchored, anchored
from flatline.judging.bursts import Aligned
from flatline.judging.claims import claim
from flatline.judging.losses import PACKETS, RESENT, SYMBOLS, TCP, Network, on_sockets
from flatline.judging.port_rates import Lowered, lowered
from flatline.judging.quiet import NETWORK, SOCKETS, quiet
from flatline.judging.steering import leave_out
from flatline.judging.throughput import Course, Slow, course, shown, step_at
from flatline.judging.timeline import by_host, instant, usual
from flatline.model import Action, Cite, Claim, Cleared, Finding, Judgement, Place
from flatline.signals import LOSS

CODE = "D4"
NAME = "network-degradation"
NEEDS = ("RDMA and link counters per host", "training throughput over time")
DECIDED_BY = (
    "RDMA and link counters of each host whose bursts meet the slow phases and are absent "
    "from the fast ones"
)
EXPLAINS = {
    "F3": "a slowed run does not reach its plan in time",
    "D3": "the rank behind a losing link is the one the others wait for",
    "D2/slow-interconnect": "collectives over a link that loses packets wait for what is resent",
}

MOST_HOSTS = 0.5
"""More than this share of the hosts is the fabric, not some hosts."""
CONSTANT = 0.9
"""Bursting in so much of the time leaves nothing to compare with."""
OPEN = "Which end of the link is at fault: the switch's own counters would tell."
ONCE = 0.65
"""One phase of a short run: other things may have begun with it."""
UNSURE = 0.79
"""Just short of confident: nothing says that the collectives cross the device."""
_SHOWN = 4


def judge(facts: Facts) -> Judgement:
    """Lay each host's bursts of loss beside the phases of the run's throughput."""
    run = course(facts)
    fallen = lowered(facts, run) if run is not None else None
    if run is not None and fallen is not None:
        return _slower_link(facts, run, fallen)
    network = losses.network(facts, run) if run is not None else None
    if run is None or network is None:
        return None
    hosts = {host for read in network.read.values() for host in read.rows}
    network, sure = losses.aligned(facts, run, network)
    low = run.low(network.cut)
    found = sure or losses.once(network, low)
    if found is not None:
        found = losses.without_echoes(network, found, low)
        few = len(found.hosts) <= MOST_HOSTS * len(hosts)
        told = _finding(facts, run, network, found) if few else None
        return told if sure or told is None else replace(told, strength=ONCE, most=UNSURE)
    at = anchored(run.pace, network.cut, network.lit)
    fine = losses.closely(facts, run, network) if at is None else None
    if fine is not None:
        at = anchored(run.pace, fine.cut, fine.lit, cuts=2)
    if at is not None and len(at.places) <= MOST_HOSTS * len(hosts):
        return _by_the_counters(facts, network, at)
    lasting = [h for h, lit in network.lit.items() if sum(lit) >= CONSTANT * len(lit)]
    if lasting:
        return _constant(facts, network, lasting) if not run.slow else None
    if any(losses.slower(run, one) for one in (network, fine) if one is not None):
        return None
    watched = (SOCKETS,) if network.what == TCP else NETWORK
    if network.doubted or network.what in (SYMBOLS, PACKETS):
        return None
    if run.slow and (network.lit or any(one.worse for one in quiet(facts, run, watched))):
        return None
    return _cleared(facts, run, network, hosts)


# --- the finding --------------------------------------------------------------------------------


def _finding(facts: Facts, run: Course, network: Network, found: Aligned) -> Finding:
    slow = run.slow
    worst = min(slow, key=lambda phase: phase.part)
    totals = {host: _lost(network, host) for host in found.hosts}
    hosts = tuple(sorted(totals, key=lambda host: (-totals[host], host)))
    phases = [shown(facts, run, phase) for phase in slow[:_SHOWN]]
    losses = [claim_ for host in hosts[:_SHOWN]
              if (claim_ := _loss(facts, network, host, slow)) is not None]  # fmt: skip
    more = f" and {len(hosts) - 1} more" if len(hosts) > 1 else ""
    onset = slow[0].begins
    return Finding(
        code=CODE,
        summary=f"{hosts[0]}{more} lost {network.what} while throughput was {1 - worst.part:.0%}"
        " down",
        fault_class=_kind(network, hosts),
        attribution="infrastructure",
        shows=(*losses, *phases, *_sockets(facts)),
        implies=(
            claim(
                "Their bursts cover"
                f" {found.recall:.0%} of the slow time and stand apart from the other hosts';"
                f" by chance phases meet so well in {found.chance:.1%} of random cuts.",
                *(cite for one in losses for cite in one.cites),
            ),
        ),
        strength=0.9 if len(slow) > 1 else 0.8,
        most=UNSURE if network.what == PACKETS and on_sockets(facts) is None else 1.0,
        severity="degraded",
        culprits=tuple(Place(host=host) for host in hosts),
        onset=datetime.fromtimestamp(onset, UTC),
        onset_step=step_at(facts, onset),
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=(OPEN,),
        actions=_actions(facts, hosts, network.what),
        resubmit="exclude",
    )


def _by_the_counters(facts: Facts, network: Network, found: Anchored) -> Finding | None:
    """Where the pace alone shows no phase, or others: asked at the moments of the losses."""
    hosts = found.places
    asked = (_loss(facts, network, host, found.longest[host][:_SHOWN], "one burst")
             for host in hosts[:_SHOWN])  # fmt: skip
    losses = tuple(one for one in asked if one is not None)
    if not losses:
        return None
    shows = (*losses, found.shown(facts), *_sockets(facts))
    more = f" and {len(hosts) - 1} more" if len(hosts) > 1 else ""
    return Finding(
        code=CODE,
        summary=f"{hosts[0]}{more} lost {network.what} while throughput was {found.lower:.0%}"
        " down",
        fault_class=_kind(network, hosts),
        attribution="infrastructure",
        shows=shows,
        implies=(found.told(shows),),
        strength=found.strength,
        most=found.most,
        severity="degraded",
        culprits=tuple(Place(host=host) for host in hosts),
        onset=datetime.fromtimestamp(found.begins, UTC),
        onset_step=step_at(facts, found.begins),
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=(OPEN, UNPROVEN),
        actions=_actions(facts, hosts, network.what),
        resubmit="exclude",
    )


def _actions(facts: Facts, hosts: Sequence[str], what: str) -> tuple[Action, ...]:
    look = "nstat -az TcpRetransSegs; ethtool -S IFACE" if what in (TCP, PACKETS) else (
        "rdma statistic show link")  # fmt: skip
    return (
        leave_out(facts, tuple(hosts)),
        Action("escalate", "Have cables, optics and adapters of these hosts checked.",
               look, tuple(hosts)),
    )  # fmt: skip


def _slower_link(facts: Facts, run: Course, fallen: Lowered) -> Finding:
    """A link that came back at a lower rate."""
    hosts, slow = fallen.hosts, fallen.slow
    more = f" and {len(hosts) - 1} more" if len(hosts) > 1 else ""
    return Finding(
        code=CODE,
        summary=f"A link of {hosts[0]}{more} fell to a lower rate and throughput with it, by"
        f" {1 - slow.part:.0%}",
        fault_class="link",
        attribution="infrastructure",
        shows=(*fallen.shows, shown(facts, run, slow)),
        implies=(
            claim("Every collective that crosses this link takes as long as it does.",
                  *fallen.shows[0].cites),
        ),
        strength=0.85,
        severity="degraded",
        culprits=tuple(Place(host=host) for host in hosts),
        onset=datetime.fromtimestamp(slow.begins, UTC),
        onset_step=step_at(facts, slow.begins),
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=("Which end of the link is at fault: the switch's own log would tell.",),
        actions=(
            leave_out(facts, hosts),
            Action("escalate", "Have cables, optics and adapters of these hosts checked.",
                   "ibstat", hosts),
        ),
        resubmit="exclude",
    )  # fmt: skip


def _lost(network: Network, host: str) -> float:
    return sum(value for read in network.read.values() if host in read.rows
               for _, value in read.rows[host].points() if value > 0)  # fmt: skip


def _kind(network: Network, hosts: Sequence[str]) -> str:
    """`link` where the link itself erred, else `retransmits`."""
    for signal, read in network.read.items():
        if signal not in (*LOSS, RESENT) and any(v > 0 for h in hosts if h in read.rows
                                      for _, v in read.rows[h].points()):  # fmt: skip
            return "link"
    return "retransmits"


def _loss(
    facts: Facts, network: Network, host: str, slow: Sequence[Slow], when: str = "a slow phase"
) -> Claim | None:
    """What a host lost in the phase it lost most in, beside the median host then."""
    best: tuple[float, str, Slow] | None = None
    for signal in network.read:
        for phase in slow:
            value = _within(facts, signal, phase).get(host, 0.0)
            if value > 0 and (best is None or value > best[0]):
                best = value, signal, phase
    if best is None:
        return None
    _, signal, phase = best
    query, end = _query(signal, phase)
    read = by_host(instant(facts, query, end))
    own = None if read is None else read.cite(host, end, f"{signal} in {when}")
    others = usual(facts, query, end, "the median host")
    name = (
        signal.removesuffix("_total")
        .replace("rdma", "RDMA")
        .replace("tcp", "TCP")
        .replace("_", " ")
    )
    beside = f", the median host {others.value:,.0f}" if others is not None else ""
    if own is None:
        return None
    return claim(f"{host} counted {own.value:,.0f} {name} in {when}{beside}", own, others)


def _sockets(facts: Facts) -> tuple[Claim, ...]:
    """What makes TCP's losses those of the collectives."""
    said = on_sockets(facts)
    return () if said is None else (claim("NCCL uses sockets between the hosts", said.cite),)


def _query(signal: str, phase: Slow) -> tuple[str, float]:
    length_s = max(1, int(phase.ends - phase.begins))
    return f"sum by (host) (increase({signal}[{length_s}s]))", float(int(phase.ends))


def _within(facts: Facts, signal: str, phase: Slow) -> dict[str, float]:
    query, end = _query(signal, phase)
    read = by_host(instant(facts, query, end))
    return {} if read is None else read.at(end)


def _constant(facts: Facts, network: Network, hosts: Sequence[str]) -> Finding | None:
    """Loss all the time, at a pace that never changed: nothing shows what it costs."""
    signal, read = next((s, r) for s, r in network.read.items() if set(hosts) & r.rows.keys())
    end = network.cut.ends[-1]
    cites = [read.cite(host, end, signal) for host in hosts[:_SHOWN]]
    if not any(cites):
        return None
    return Finding(
        code=CODE,
        summary=f"{', '.join(hosts[:_SHOWN])} lost {network.what} all the time, at a steady pace",
        attribution="infrastructure",
        shows=(claim("It resends more than its peers in every stretch of the run.", *cites),),
        implies=(),
        strength=0.4,
        role="warning",
        severity="warning",
        culprits=tuple(Place(host=host) for host in sorted(hosts)),
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=("What it costs: a run without these hosts would tell.",),
        actions=(Action("rerun", "Run once without these hosts and compare the pace."),),
    )


# --- cleared ------------------------------------------------------------------------------------


def _cleared(facts: Facts, run: Course, network: Network, hosts: set[str]) -> Cleared | None:
    """Cleared where every host was read and none stood apart, or the pace never fell."""
    short = {host.partition(".")[0] for host in hosts}
    if {host.partition(".")[0] for host in facts.hosts} - short:
        return None
    if not all(read.covers(network.cut) for read in network.read.values()):
        return None
    length_s = max(1, int(network.cut.ends[-1] - network.cut.start.timestamp()))
    cites: list[Cite] = []
    for signal in network.read:
        query = f"max(sum by (host) (increase({signal}[{length_s}s])))"
        cite = usual(facts, query, network.cut.ends[-1], f"most {signal} of any host", "{}")
        cites += [] if cite is None else [cite]
    if not cites:
        return None
    if not network.lit:
        return Cleared(CODE, f"no host lost more {network.what} than the others", tuple(cites))
    pace = shown(facts, run, run.best).cites
    return Cleared(CODE, "losses were short and throughput did not fall", (*cites, *pace))
