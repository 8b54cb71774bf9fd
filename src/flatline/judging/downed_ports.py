"""
Ports that went down, or began to err, as the network failed under a run.

A transport that gives up names two ends of a path, and both are told of by whoever waits.  The
port of the end at fault says so itself: it goes down, trains anew, or receives symbols in error.
Counters run since boot and adapters flap for years, so only what rose in the minutes before the
failure counts, and only more than in any minutes of the run.  One that fell while steps were
still made did not stop them.  Ports of several hosts at once have a switch or its line card in
common.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from flatline.facts import Facts
from flatline.judging.bursts import APART_RATIO, LEAST_COUNT
from flatline.judging.claims import claim, distinct
from flatline.judging.counters import counted
from flatline.judging.crashes import Failure
from flatline.judging.pace import pace
from flatline.model import Claim, Finding, Place, QueryCite

BEFORE = timedelta(minutes=5)
"""An adapter sends again for up to two minutes and a half (InfiniBand's timeout 22, 17 s, eight
times; NCCL's defaults take 34 s), and the job's log tells of it some time after."""
AFTER = timedelta(minutes=1)
"""Counters are read twice a minute or so."""
DOWNED, TRAINED, SYMBOLS = (
    "rdma_link_downed_total",
    "rdma_link_recoveries_total",
    "rdma_symbol_errors_total",
)
UP = "rdma_port_up"
_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Downed:
    """The ports, as places with their adapter, and what shows that they failed then."""

    places: tuple[Place, ...]
    shows: tuple[Claim, ...]

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts they are of."""
        return tuple(sorted({place.host for place in self.places if place.host}))


def downed(facts: Facts, found: Finding) -> Downed | None:
    """The ports that failed about when a finding began; those that went down before those that
    trained anew, and these before one that alone received errors. None where no port did."""
    span = _about(facts, found)
    if span is None:
        return None
    said, cites = "went down", [*_rose(facts, DOWNED, span), *_fell(facts, span)]
    if not cites:
        said, cites = "trained anew", _rose(facts, TRAINED, span)
    if not cites:
        said, cites = "received symbols in error, as no other host's did,", _burst(facts, span)
    if not cites:
        return None
    places = distinct(cite.place for cite in cites)
    ports = ", ".join(map(str, places[:_SHOWN])) + (" and more" if len(places) > _SHOWN else "")
    text = f"{ports}: the port {said} as the network failed"
    return Downed(places, (claim(text, *cites[:_SHOWN]),))


def lost_its_link(facts: Facts, found: Finding, failed: Sequence[Failure]) -> Failure | None:
    """The line in which the kernel of one host of the run says, as the traffic stopped, that a
    port lost its link; None where those of several hosts did, which share what failed."""
    span, seen = _about(facts, found), pace(facts)
    if span is None:
        return None
    start, end = span
    if seen is not None:
        still_s = 2 * (seen.interval_s or 0.0)
        end = min(end, seen.at + max(BEFORE, timedelta(seconds=still_s)))
    lost = [
        f for f in failed
        if f.cite.at is not None and not f.cite.at_assumed and start <= f.cite.at <= end
    ]  # fmt: skip
    hosts = {facts.node_of(f.place.host or "") for f in lost}.intersection(facts.hosts)
    own = [f for f in lost if facts.node_of(f.place.host or "") in hosts]
    return own[0] if len(hosts) == 1 else None


def _about(facts: Facts, found: Finding) -> tuple[datetime, datetime] | None:
    """From before what the log dates, to after it: a line without a time of its own is later than
    the one it was dated by, at most as late as the end of the run."""
    began, ended = facts.last.started_at, facts.last.ended_at
    first, last = found.onset or ended, found.onset
    dated = all(not getattr(cite, "at_assumed", False) for cite in found.cites)
    if first is None or facts.window is None:
        return None
    if last is None or (not dated and ended is not None and ended > last):
        last = ended
    start = max(first - BEFORE, began or first - BEFORE, _went_on_until(facts) or first - BEFORE)
    return (start, (last or first) + AFTER) if start < first else None


def _went_on_until(facts: Facts) -> datetime | None:
    """When the run still made steps, so that nothing before had stopped it; None where its log
    does not date them. A counter is read, and a step printed, some time after."""
    seen = pace(facts)
    if seen is None:
        return None
    return seen.at - max(AFTER, timedelta(seconds=2 * (seen.interval_s or 0.0)))


def _rose(facts: Facts, signal: str, span: tuple[datetime, datetime]) -> list[QueryCite]:
    now = [one for one in counted(facts, signal, *span) if one.rose and not one.began_late]
    usual = _usual(facts, signal, span) if now else {}
    return [one.cite for one in now if one.rose >= APART_RATIO * usual.get(one.place, 0.0)]


def _usual(facts: Facts, signal: str, span: tuple[datetime, datetime]) -> Mapping[Place, float]:
    """What each port counted in as long a time before, in the mean over the run."""
    start, end = span
    began = facts.last.started_at or (facts.window or span)[0]
    if began >= start:
        return {}
    part = (end - start) / max(start - began, end - start)
    total: dict[Place, float] = {}
    for one in counted(facts, signal, began, start):
        total[one.place] = total.get(one.place, 0.0) + part * one.rose * (not one.began_late)
    return total


def _fell(facts: Facts, span: tuple[datetime, datetime]) -> list[QueryCite]:
    """Ports that were up at the beginning and down later."""
    if not facts.measured(UP):
        return []
    start, end = span
    answer = facts.series(UP, start=start, end=end, step_s=15.0)
    cites = []
    for row in () if answer is None else answer.rows:
        points = list(row.points())
        down = next((at for at, value in points if value == 0), None)
        if points and points[0][1] == 1 and down is not None:
            cites.append(answer.cite(row, f"{row.place} was down", at=down))
    return cites


def _burst(facts: Facts, span: tuple[datetime, datetime]) -> list[QueryCite]:
    """The ports of the one host that received errors then, if it had received few before."""
    now = [one for one in counted(facts, SYMBOLS, *span) if one.rose and not one.began_late]
    by_host = _sums([(one.place.host, one.rose) for one in now])
    host = max(by_host, key=lambda name: by_host[name], default=None)
    others = max((count for name, count in by_host.items() if name != host), default=0.0)
    if host is None or by_host[host] < max(LEAST_COUNT, APART_RATIO * others):
        return []
    usual = _sums([(port.host, count) for port, count in _usual(facts, SYMBOLS, span).items()])
    if by_host[host] < APART_RATIO * usual.get(host, 0.0):
        return []
    return [one.cite for one in now if one.place.host == host]


def _sums(counts: Sequence[tuple[str | None, float]]) -> Mapping[str, float]:
    total: dict[str, float] = {}
    for host, count in counts:
        if host is not None:
            total[host] = total.get(host, 0.0) + count
    return total
