"""
The network between ranks failed.

Symptom:
    Retries exceeded towards one peer, a link that went down, no route to a host, connections that
    are reset though both ends live.

Mechanism:
    A cable, optic, switch or adapter drops traffic until the transport gives up.  Several ranks
    that name one peer point at that peer's link.

Told apart from:
    A2, A3, B1, F1: the peer's process or node was gone; its sockets closed with it.
    C1 rendezvous-hang: the ranks never reached each other at all.
    D4 network-degradation: traffic still flows, slower.

Do:
    Exclude the host whose link failed and resubmit; have cable, optic and port checked at both
    ends.

References:
    InfiniBand work-completion status codes (12: retries exceeded, 13: receiver not ready);
    NCCL net_ib; Linux errno 101, 110, 113.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from flatline.facts import KERNEL, Facts
from flatline.judging.both_ends import broke, closed_at_the_end
from flatline.judging.bygone import over
from flatline.judging.claims import claim, distinct, name_places, number
from flatline.judging.crashes import Failure, of_family
from flatline.judging.downed_ports import BEFORE, Downed, downed, lost_its_link
from flatline.judging.group_setup import lost_in_the_making
from flatline.judging.signed import signed
from flatline.judging.steering import leave_out
from flatline.judging.used_port import UsedPort, used_port
from flatline.model import Action, Claim, Finding, Judgement, LogCite, Match, Place

CODE = "C5"
NAME = "network-failure"
NEEDS = ("kernel log", "network link and RDMA counters")
DECIDED_BY = (
    "an error or a drop of the link, at the time, with both peers alive (kernel log, ibstat, "
    "port counters)"
)
EXPLAINS = {
    "C2": "a collective cannot complete when the traffic of one rank does not arrive",
    "A3": "the transport's error surfaces as an exception in the program",
    "C1": "ranks that cannot reach each other never form their group",
    "C6/cut-off": "a file server cannot be reached over a link that is down",
    "F1": "a node the controller cannot reach is set DOWN",
    "A2": "the watchdog aborts the process whose communicator failed",
    "F3": "ranks left waiting hold the allocation to the wall",
}

PARTED = 0.65
"""All ends were alive; why the connections broke nothing says."""
CLOSED = 0.4
"""A process that ended is the commoner reason, but its own log, which is not there, would tell."""
BY_PORT = 0.88
"""Nothing else needs to agree: a port that fails with the traffic is why it stopped."""

OVER_IT, OVER_IT_MOST = 0.75, 0.79
"""A link that carries a run's sockets and is lost as these are; no line of the two is dated."""

FAR_END = "far-end"
"""Tag of lines by which a rank says that the other end does not answer."""
DOWN, ETHERNET = "kernel-link-down", "kernel-ethernet-link-down"
_RDMA = re.compile(r"NET/IB\b|\bIBV_WC_|\bhca \w")
_PEER = re.compile(r"(?:closed by remote peer|recv from|send to|[Cc]onnect to) ([\w.-]{1,253})")


def judge(facts: Facts) -> Judgement:
    """The network's failure at its port or host: the GPU in NCCL's line is the one whose process
    printed it, and none has failed."""
    found = _found(facts)
    if found is None:
        return _parted(facts)
    return replace(found, culprits=distinct(replace(p, gpu=None) for p in found.culprits))


def _parted(facts: Facts) -> Finding | None:
    """That every rank lost a peer and none had gone before."""
    lines = broke(facts)
    if not lines:
        return _lost(facts)
    text = f"All {len(lines)} ranks lost a connection to a peer, and none of them had gone before"
    return Finding(
        code=CODE,
        summary=text,
        attribution="infrastructure",
        strength=PARTED,
        shows=(claim(text, *lines[:6]),),
        implies=(claim("What is between the hosts broke while the program ran at both ends.",
                       *lines[:2]),),
        scope="none",
        onset=min((cite.at for cite in lines if cite.at is not None), default=None),
        order=(lines[0].source, lines[0].line),
        attempt=facts.last.n,
        cannot_decide=("Which end or what between them: kernel logs and link counters would tell.",
                       "Whether a firewall or a person closed the connections."),
        actions=(Action("watch", "Look at the links and switches between these hosts, and at"
                        " whether other jobs on them lost connections then."),),
        resubmit="unknown",
    )  # fmt: skip


def _lost(facts: Facts) -> Finding | None:
    """That the one log there is ends with a connection which the other end closed."""
    line = closed_at_the_end(facts)
    if line is None or lost_in_the_making(facts) is not None:
        return None
    text = "A connection to a peer was closed from the other end, and nothing else is told"
    return Finding(
        code=CODE,
        summary=text,
        attribution="unknown",
        strength=CLOSED,
        shows=(claim(text, line),),
        implies=(claim("The process that says so is a victim: its peer or the path to it went.",
                       line),),
        scope="none",
        onset=line.at,
        order=(line.source, line.line),
        attempt=facts.last.n,
        cannot_decide=("Whether the peer's process had ended before, which looks the same from"
                       " here: its log, its kernel's or the scheduler's record would show it.",),
        actions=(Action("watch", "Read the log of the process at the other end before the network"
                        " is looked at."),),
        resubmit="unknown",
    )  # fmt: skip


def _found(facts: Facts) -> Finding | None:
    """
    Blame the first line that says a transport gave up or a link went down.

    A rank that names its peer is at one end of the path: it is no culprit for having said so.
    The host whose own kernel lost a link or an adapter is, then the one whose port went down by
    its counters, and a peer that several name.
    """
    found = signed(
        facts,
        CODE,
        implies="Traffic between ranks stopped; the training program did not cause it.",
        cannot_decide=(
            "Which end or which switch is at fault: link counters of both ports would tell.",
            "Whether the peer's process had ended before: its own log and record would show it.",
        ),
        advice="Have cable, optic and port checked at both ends.",
    )
    if found is None:
        return None
    lines = [f for f in of_family(facts, CODE) if f.attempt == found.attempt]
    cut_off = _cut_off(facts, found, lines)
    if cut_off is not None:
        return cut_off
    port = used_port(facts, lines)
    if port is not None:
        return _over_it(facts, found, port)
    peers = [f for f in lines if f.match is not None and f.match.groups.get("peer")]
    own = [f for f in lines if f not in peers and f.place.host and not _beside(f, peers)]
    if peers and own:
        return _at_fault(facts, found, distinct(f.place for f in own), own, peers)
    ports = None if _of_kernel(facts, found) else downed(facts, found)
    if ports is not None and _of_an_end(facts, ports, peers):
        return _by_ports(facts, found, ports, lines[0].what.rstrip("."))
    if not peers:
        return _by_its_link(facts, found, lines) or _at_the_far_end(facts, found, lines)
    named = {f.match.groups["peer"] for f in peers if f.match is not None}
    tellers = {(f.place.host, number(f.place)) for f in peers}
    one = named.pop() if len(named) == 1 and len(tellers) > 1 else _named_by_others(peers)
    if one is not None:
        return _at_fault(facts, found, (Place(host=one),), peers, ())
    return _of_nobody(found, peers[0].what)


def _named_by_others(peers: Sequence[Failure]) -> str | None:
    """The one peer that all hosts but one name, and no other, where that one names several: it is
    that host itself, which loses all that it talks to."""
    by_host: dict[str, set[str]] = {}
    for failure in peers:
        if failure.match is not None and failure.place.host:
            by_host.setdefault(failure.place.host, set()).add(failure.match.groups["peer"])
    sole = [next(iter(told)) for told in by_host.values() if len(told) == 1]
    several = [told for told in by_host.values() if len(told) > 1]
    alike = len(sole) > 1 and len(set(sole)) == 1 and len(several) == 1
    return sole[0] if alike and sole[0] not in several[0] else None


def _by_its_link(facts: Facts, found: Finding, lines: Sequence[Failure]) -> Finding | None:
    """The finding with the host whose kernel lost a link as a transport gave up that names no
    peer, on whichever host: what is at the other end errs alike."""
    of_kernels = [f for f in lines if f.signature is not None and f.signature.id == DOWN]
    told = [f for f in lines if f.cite.source not in facts.kernel_files]
    lost = lost_its_link(facts, found, of_kernels) if told else None
    if lost is None:
        return None
    blamed = _at_fault(facts, found, (Place(host=lost.place.host),), [lost], told)
    order = (lost.cite.source, lost.cite.line)
    strength = max(blamed.strength, BY_PORT)
    return replace(blamed, strength=strength, onset=lost.cite.at, order=order)


def _at_the_far_end(facts: Facts, found: Finding, lines: Sequence[Failure]) -> Finding:
    """The finding without those that say that nobody answers them; with the other of the run's two
    hosts where several do, all on one, and none on it: of a path that broke both ends tell."""
    told = [f for f in lines if f.signature is not None and FAR_END in f.signature.tags]
    tellers = {facts.node_of(f.place.host) for f in told if f.place.host}
    own = [f for f in lines if f not in told and facts.node_of(f.place.host or "") not in tellers]
    if not told or own:
        return found
    others = set(facts.hosts) - tellers
    if len(tellers) == len(others) == 1 and len(distinct(f.place for f in told)) > 1:
        return _at_fault(facts, found, (Place(host=others.pop()),), told, ())
    return _of_nobody(found, told[0].what)


def _of_nobody(found: Finding, what: str) -> Finding:
    return replace(
        found,
        summary=what.rstrip("."),
        culprits=(),
        scope="none",
        resubmit="unknown",
        actions=found.actions[-1:],
    )


def _over_it(facts: Facts, found: Finding, port: UsedPort) -> Finding:
    """The finding with the port that NCCL says it uses, or that Gloo must have used."""
    places = () if port.place is None else (port.place,)
    blamed = _at_fault(facts, found, places, [port.failure], ()) if places else found
    used: tuple[Claim, ...] = ()
    if port.named:
        used = (claim("NCCL says that its sockets go over that port", port.uses),)
        strength, cannot = OVER_IT, blamed.cannot_decide
    else:
        strength = BY_PORT
        cannot = (*blamed.cannot_decide, "Whether Gloo's connections went over that port: none of"
                  " its lines names one.")  # fmt: skip
    lost = claim("Peers were lost in the same breath", *port.lost[:2])
    return replace(blamed, strength=max(blamed.strength, strength), most=OVER_IT_MOST,
                   shows=(*blamed.shows, *used, lost), cannot_decide=cannot)  # fmt: skip


def _beside(own: Failure, peers: Sequence[Failure]) -> bool:
    """Whether a link is of an adapter that carries no RDMA, where an RDMA transport gave up."""
    ethernet = own.signature is not None and own.signature.id == ETHERNET
    return ethernet and any(_RDMA.search(f.cite.text) for f in peers)


def _of_an_end(facts: Facts, ports: Downed, peers: Sequence[Failure]) -> bool:
    """Whether a port may be at an end of a path that failed: not where lines name both ends by
    hosts of the run, and none of them is the port's."""
    named = {facts.node_of(f.match.groups["peer"]) for f in peers if f.match is not None}
    if not named or not named <= set(facts.hosts):
        return True
    tellers = {facts.node_of(f.place.host) for f in peers if f.place.host}
    return not {facts.node_of(host) for host in ports.hosts}.isdisjoint(named | tellers)


def _cut_off(facts: Facts, found: Finding, lines: Sequence[Failure]) -> Finding | None:
    """The finding with the host whose link was down by its kernel's log as its peers lost it by
    name; None where no line of theirs names it, or the link had come back by then."""
    for failure in lines:
        if failure.match is None or failure.match.signature.id not in (DOWN, ETHERNET):
            continue
        lost = _lost_meanwhile(facts, failure.match)
        if lost:
            place = Place(host=failure.place.host)
            blamed = _at_fault(facts, found, (place,), [failure], ())
            text = f"Its peers lost {place.host} while that link was down"
            shows = (*blamed.shows, claim(text, *lost[:4]))
            return replace(blamed, strength=max(blamed.strength, BY_PORT), shows=shows)
    return None


def _lost_meanwhile(facts: Facts, down: Match) -> list[LogCite]:
    """Lines of peers that lost the host of a link, dated while it was down."""
    host, at = down.cite.place.host, down.cite.at
    if host is None or at is None:
        return []
    up = over(facts, down)
    until = up.cite.at if up is not None and up.cite.at is not None else at + BEFORE
    return [
        m.cite
        for m in (*facts.tagged("lost-peer"), *facts.tagged(FAR_END))
        if (told := m.groups.get("peer") or (_PEER.search(m.cite.text) or ("", ""))[1])
        and facts.node_of(told) == facts.node_of(host)
        and m.cite.at is not None
        and not m.cite.at_assumed
        and at <= m.cite.at < min(until, at + BEFORE)
    ]


def _of_kernel(facts: Facts, found: Finding) -> bool:
    """Whether a kernel's own log tells of a host's failed link: nothing else is needed."""
    kernels = {read.source for read in facts.log_files(KERNEL)}
    return any(isinstance(cite, LogCite) and cite.source in kernels for cite in found.cites)


def _by_ports(facts: Facts, found: Finding, ports: Downed, what: str) -> Finding:
    """The finding with the one host whose ports failed; with none where several did."""
    found = replace(found, shows=(*found.shows, *ports.shows))
    if len(ports.hosts) != 1:
        together = f"ports of {len(ports.hosts)} hosts failed together"
        return replace(
            found,
            summary=f"{what}; {together}",
            culprits=(),
            scope="none",
            resubmit="unknown",
            actions=found.actions[-1:],
            cannot_decide=(
                f"{together.capitalize()}: which switch or line card they share, the fabric's"
                " topology would tell.",
            ),
        )
    (host,) = ports.hosts
    places = ports.places if len(ports.places) == 1 else (Place(host=host),)
    return replace(
        found,
        summary=f"{what}; the port of {places[0]} failed",
        strength=max(found.strength, BY_PORT),
        culprits=places,
        scope="place",
        actions=(leave_out(facts, (host,)), found.actions[-1]),
        resubmit="exclude",
        cannot_decide=(
            "Whether the adapter, the cable or the switch's end failed: the switch's own counters"
            " would tell.",
        ),
    )


def _at_fault(
    facts: Facts,
    found: Finding,
    places: tuple[Place, ...],
    lines: Sequence[Failure],
    others: Sequence[Failure],
) -> Finding:
    """The finding with these culprits, each on the node that its host's name, which may be a
    pod's, stands for, and the lines that show them in front."""
    places = distinct(map(facts.on_host, places))
    hosts = tuple(sorted({place.host for place in places if place.host}))
    first = lines[0]
    shown = claim(f"{name_places(places)}: {first.what}", *(f.cite for f in lines[:4]))
    also = [claim(f"Peers: {f.what}", f.cite) for f in others[:1]]
    seen = [f.strength for f in others if _soon_behind(f, first)]
    return replace(
        found,
        summary=f"{first.what.rstrip('.')} ({name_places(places)})",
        strength=max(found.strength, first.strength, *seen),
        shows=(shown, *also),
        culprits=places,
        scope="place",
        actions=(leave_out(facts, hosts), found.actions[-1]),
        resubmit="exclude",
    )


def _soon_behind(peer: Failure, own: Failure) -> bool:
    """Whether a peer's transport gave up within minutes of what befell a host's own link."""
    one, other = own.cite.at, peer.cite.at
    return one is not None and other is not None and timedelta(0) <= other - one <= BEFORE
