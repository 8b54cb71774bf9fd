"""What each host of a run lost of its traffic, by stretches, and the pace meanwhile."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp
from statistics import median

from flatline.facts import Facts
from flatline.judging.anchored import EFFECT, anchored, finest, stretch_levels
from flatline.judging.bursts import APART_RATIO, CHANCE, LEAST_COUNT, Aligned, Bar, align, bursts
from flatline.judging.throughput import FEW_STRETCHES, Course
from flatline.judging.timeline import ByHost, Timeline, timeline
from flatline.model import Match
from flatline.signals import LINK, LOSS

COUNTERS = (*LOSS, *(name for name in LINK if name.endswith("_total")),
            "rdma_symbol_errors_total", "rdma_retries_exceeded_total")  # fmt: skip
CARRIED = "transport-of-nccl"
DISABLED = "transport-ib-disabled"
SOCKETS = "Socket"
FELL_BACK = "The communication library fell back to sockets, which it does without an error"
WHY_NOT = (
    "Why the fast network was not used: another image or module without its plugin, or adapters"
    " that were not there."
)
RESENT, SENT = "tcp_retransmits_total", "network_transmit_bytes_total"
FRAMES = "network_receive_errors_total"
RDMA, TCP, SYMBOLS = "RDMA traffic", "TCP segments", "words on its links"
PACKETS = "packets on its links"
RARE = (RDMA, SYMBOLS)
"""Of which a sound link has none for minutes; TCP sends again wherever a queue is full."""
NEAR_LINES = 6
_USING = re.compile(r"\[\d{1,2}\]([A-Za-z][\w.-]{0,30}):")
AS_WELL = 0.9
"""Of the slow time that what is sent again covers, packets received in error must cover so much to
tell of whose link it is: who sends again may be any of its peers."""
USUAL = 1.0
"""TCP segments sent again in a second: a handful is usual on any network."""
OWN_TRAFFIC = 1.2
"""Times what a host sends otherwise: more while it loses is traffic of another kind, which is
what is lost.  The collectives' is no more in slow steps than in fast ones."""
ECHO = 0.1
"""Of what the host that lost most counts in the same signal: its peers see some of its losses, as
packets that come out of order or are late.  A judgement; where hosts lose by their own links they
are within a few times of one another."""
ONCE, BEFORE = 0.15, 3
"""How often chance may cover a phase as well where hosts lost nothing in so many stretches before
it: what begins with the run's fall is seldom there at all.  A judgement."""
AT_THE_LINK = ("rdma_symbol_errors_total", "rdma_receive_errors_total")
"""Counted where they come in; who sends through that link counts what got lost on it."""
FEWER_SAMPLES = 2
"""A stretch may hold where it is only asked which hosts lost something: one that came late hides
a burst and makes none."""
NOISE = 0.01
"""Of the greatest burst.  A judgement: a link that fails loses thousands, others some."""
LEAST_SHARE = 0.1
"""Of the run's time: what bursts less costs it little, however slow it is then."""


@dataclass(frozen=True, slots=True)
class Network:
    """Every counter that was measured, by host, over the stretches of the run."""

    cut: Timeline
    read: dict[str, ByHost]
    lit: dict[str, list[bool]]
    what: str = RDMA
    doubted: tuple[str, ...] = ()
    """Hosts left out of `lit`, whose losses may be of other traffic."""


def on_sockets(facts: Facts) -> Match | None:
    """The line by which NCCL says that it uses sockets, where none of the attempt says another; or
    by which it is told to leave InfiniBand alone, where it says nothing."""
    said, disabled = ([match for match in facts.matches
                       if match.signature.id == which and match.attempt == facts.last.n]
                      for which in (CARRIED, DISABLED))  # fmt: skip
    if not said and disabled:
        return disabled[0]
    return said[0] if said and {m.groups["transport"] for m in said} == {SOCKETS} else None


def fabric(said: Iterable[Match]) -> Match | None:
    """The first of these by which NCCL names a network, where none says that it is sockets."""
    named = [match for match in said if match.signature.id == CARRIED]
    return named[0] if named and SOCKETS not in {m.groups["transport"] for m in named} else None


def network(facts: Facts, run: Course) -> Network | None:
    """None where no counter of what carries the collectives was measured on several hosts: of
    lost RDMA traffic or of errors of its links, or of TCP segments sent again where NCCL says that
    it uses sockets.  Packets that hosts received in error come first where they meet the slow
    phases as well: on a network that has no counters of RDMA nothing else tells."""
    sent_again, frames = _carried(facts, run), _frames(facts, run)
    if frames is None:
        return sent_again
    of_frames = align(frames.lit, run.low(frames.cut))
    if of_frames is None:
        at = anchored(run.pace, frames.cut, frames.lit) if sent_again is None else None
        return sent_again if at is None else frames
    other = None if sent_again is None else align(sent_again.lit, run.low(sent_again.cut))
    met = other is None or of_frames.recall >= AS_WELL * other.recall
    return frames if met else sent_again


def _frames(facts: Facts, run: Course) -> Network | None:
    """Of the devices that NCCL names where it uses sockets, or of all where no counter of RDMA
    was read and NCCL says nothing of its adapters: others carry something else."""
    if not facts.measured(FRAMES):
        return None
    said = on_sockets(facts)
    carried = any(m.signature.id == CARRIED and m.groups.get("transport") != SOCKETS
                  for m in facts.matches)  # fmt: skip
    if said is None and (carried or any(map(facts.measured, COUNTERS))):
        return None
    cut = timeline(facts, [FRAMES], run.pace.span, run.stretch_s)
    found = None if cut is None else _read(facts, [FRAMES], cut, _devices(facts, said))
    return None if found is None or not found.lit else replace(found, what=PACKETS)


def _devices(facts: Facts, said: Match | None) -> str:
    """A selector of the devices that NCCL says it uses; of bonds, and of those that are not
    named, all."""
    if said is None:
        return ""
    first = max(1, said.cite.line - NEAR_LINES)
    near = facts.lines(said.cite.source, first, 2 * NEAR_LINES)
    named = {name for text in near if "NET/Socket" in text for name in _USING.findall(text)}
    if not named or any(name.startswith(("bond", "br", "team")) for name in named):
        return ""
    return '{device=~"' + "|".join(sorted(named)) + '"}'


def _carried(facts: Facts, run: Course) -> Network | None:
    if on_sockets(facts) is not None:
        signals = [signal for signal in (RESENT,) if facts.measured(signal)]
        cut = timeline(facts, signals, run.pace.span, run.stretch_s)
        return None if cut is None else _resent(facts, cut)
    known = [signal for signal in COUNTERS if facts.measured(signal)]
    if not known:
        return None
    cut = timeline(facts, known, run.pace.span, run.stretch_s)
    return None if cut is None else _read(facts, known, cut)


def closely(facts: Facts, run: Course, whole: Network) -> Network | None:
    """The same on a finer cut, for bursts that follow one another too closely for that one."""
    known = [*whole.read]
    cut = finest(facts, known, run.pace, whole.cut) if whole.lit else None
    if cut is not None and whole.what == TCP:
        return _resent(facts, cut)
    return None if cut is None else _read(facts, known, cut)


def _read(facts: Facts, known: Sequence[str], cut: Timeline, devices: str = "") -> Network | None:
    read: dict[str, ByHost] = {}
    for signal in known:
        rows = cut.hosts(facts, f"sum by (host) (increase({signal}{devices}[w]))")
        if rows is not None and len(rows.rows) > 1:
            read[signal] = rows
    what = RDMA if any(signal in LOSS for signal in read) else SYMBOLS
    lit = bursts(tuple(read.values()), cut)
    return Network(cut, read, _heard(read, lit, cut), what) if read else None


def _heard(
    read: Mapping[str, ByHost], lit: Mapping[str, list[bool]], cut: Timeline
) -> dict[str, list[bool]]:
    """Without bursts that are next to nothing beside the greatest any host had: a few packets lost
    here and there would meet any phase."""
    most = {signal: max((v for row in rows.rows.values() for _, v in row.points()), default=0.0)
            for signal, rows in read.items()}  # fmt: skip

    def loud(host: str, end: float) -> bool:
        told = ((rows.value(host, end) or 0.0, most[signal]) for signal, rows in read.items()
                if host in rows.rows)  # fmt: skip
        return any(own >= NOISE * top > 0 for own, top in told)

    kept = {
        host: [mark and loud(host, end) for mark, end in zip(marks, cut.ends, strict=True)]
        for host, marks in lit.items()
    }
    return {host: marks for host, marks in kept.items() if any(marks)}


def _resent(facts: Facts, cut: Timeline) -> Network | None:
    """TCP segments sent again. Hosts that send more meanwhile, or whose sending was not read, are
    doubted: storage, too, is reached by TCP."""
    lost, sent = (cut.hosts(facts, f"sum by (host) (increase({signal}[w]))")
                  for signal in (RESENT, SENT))  # fmt: skip
    if lost is None or len(lost.rows) < 2:
        return None
    least = USUAL * cut.length_s
    lit = bursts((lost,), cut, Bar(least=least, alone=LEAST_COUNT * least))
    own = [h for h, marks in lit.items() if sent is None or _sends_more(cut, sent, h, marks)]
    kept = {host: marks for host, marks in lit.items() if host not in own}
    return Network(cut, {RESENT: lost}, kept, TCP, tuple(own))


def _sends_more(cut: Timeline, sent: ByHost, host: str, marks: Sequence[bool]) -> bool:
    """Whether a host sends more in its bursts than outside them; so where that was not read."""
    known = [(v, lit) for end, lit in zip(cut.ends, marks, strict=True)
             if (v := sent.value(host, end)) is not None]  # fmt: skip
    inside, outside = ([v for v, lit in known if lit is wanted] for wanted in (True, False))
    if not inside or not outside:
        return not known
    return median(inside) > OWN_TRAFFIC * median(outside)


def aligned(facts: Facts, run: Course, whole: Network) -> tuple[Network, Aligned | None]:
    """The hosts whose bursts of these make up the slow phases, and the cut that shows it: of
    fewer samples a stretch where the usual one has so few that any bursts may meet any phases.
    That is a second try, so it must be rarer by chance where one phase alone is met."""
    rare = whole.what in RARE
    met = align(whole.lit, run.low(whole.cut), rare=rare)
    if met or not rare or not whole.lit or len(whole.cut.ends) >= FEW_STRETCHES:
        return whole, met
    known = [*whole.read]
    cut = timeline(facts, known, run.pace.span, run.pace.interval_s, samples=FEWER_SAMPLES)
    fine = _read(facts, known, cut) if cut and len(cut.ends) > len(whole.cut.ends) else None
    if fine is None:
        return whole, None
    chance = CHANCE if len(run.slow) > 1 else CHANCE / 2
    met = align(fine.lit, run.low(fine.cut), rare=True, chance=chance)
    return (fine if met else whole), met


def once(found: Network, low: Sequence[bool | None]) -> Aligned | None:
    """The same where one phase of few stretches may meet anything by chance, of hosts that lost
    nothing before it."""
    if found.what not in RARE:
        return None
    met = align(found.lit, low, rare=True, chance=ONCE)
    before = next((at for at, slow in enumerate(low) if slow), 0)
    calm = max(0, before - 1)
    quiet = met is not None and not any(any(found.lit[host][:calm]) for host in met.hosts)
    return met if quiet and calm >= BEFORE else None


def without_echoes(found: Network, known: Aligned, low: Sequence[bool | None]) -> Aligned:
    """The same without hosts that count a small part of what another does in the signal that each
    counts most in, or hardly more than the usual host, where the others cover as much of the slow
    time: all peers of a failing link count what it loses."""
    counted = {
        signal: {host: sum(v for _, v in row.points() if v > 0) for host, row in read.rows.items()}
        for signal, read in found.read.items()
    }

    def part(host: str) -> float:
        own, most, usual = max(
            ((of.get(host, 0.0), max(of.values()), median(of.values()))
             for of in counted.values() if of), default=(0.0, 0.0, 0.0)
        )  # fmt: skip
        return own / most if most and own >= APART_RATIO * usual else 0.0

    kept = {host: found.lit[host] for host in known.hosts if part(host) >= ECHO}
    here = [read for signal, read in found.read.items() if signal in AT_THE_LINK]
    at_the_link = {
        host: found.lit[host] for host in bursts(here, found.cut) if host in known.hosts
    }
    for fewer in (at_the_link, kept):
        alone = (
            align(fewer, low, rare=found.what in RARE, chance=max(known.chance, CHANCE))
            if 0 < len(fewer) < len(known.hosts)
            else None
        )
        if alone is not None and alone.recall >= known.recall:
            return alone
    return known


def slower(run: Course, found: Network) -> dict[str, float]:
    """By what part the pace was lower while a host lost more than the others, of those that did
    for a good part of the time and not always: chance or not."""
    here = stretch_levels(run.pace, found.cut)
    out = {}
    for host, marks in found.lit.items():
        known = [(v, lit) for v, lit in zip(here, marks, strict=True) if v is not None]
        inside, outside = ([v for v, lit in known if lit is wanted] for wanted in (True, False))
        if outside and len(inside) >= max(1.0, LEAST_SHARE * len(known)):
            lower = 1 - exp(median(inside) - median(outside))
            if lower >= EFFECT:
                out[host] = lower
    return out
