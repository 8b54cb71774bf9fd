"""
Who waited for whom: the ranks that reported a wait in vain, and those that did not.

A rank that prints a collective timeout, or that its peer vanished, is a victim: it was in the
collective.  Where every rank but a few did so, the few are those the others waited for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from flatline.facts import Facts
from flatline.judging.claims import number
from flatline.judging.classing import resolve
from flatline.judging.crashes import started
from flatline.logs.labelling import STAMP
from flatline.model import DerivedCite, LogCite, Match, Place
from flatline.rank_hosts import named_after

FEW_RATIO = 0.25
"""The silent must be few against the victims before silence points at anyone: with more, the
launcher may simply have ended the others before their own timeout fired."""

TURNED_AWAY = 4
"""Lines: NCCL prints why, that the peer closed, and the calls it came out of."""
_TURNED = "foreign-connection"
_EITHER = "(either an error or timeout)"
"""ProcessGroupNCCL's words for both: of a rank that told of an error before, it was that."""
WRAPPED, WRAPPED_LINES = "nccl-watchdog-timeout-wrapped", 3
_GROUP = re.compile(r"\[PG (?:ID \d{1,6} PG GUID (\S{1,80})|(\d{1,6}))(?= Rank)")
"""Its own name of a process group, or its number before there were names."""
_SEQUENCE = re.compile(r"\bSeqNum=(\d{1,12})")
FIRST_ONE = 0.75
"""Ranks that never completed a collective may never have met (C1): not to be told surely."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Victims of a stalled or broken collective, one match per rank where ranks are known."""

    matches: tuple[Match, ...]
    first: Match

    @property
    def cites(self) -> tuple[LogCite, ...]:
        return tuple(match.cite for match in self.matches)

    def first_ever(self, facts: Facts) -> bool:
        """Whether it is the very first collective that was never completed, by its number."""
        told = {sequence(facts, match) for match in self.matches} - {None}
        return told == {"1"}


def sequence(facts: Facts, match: Match) -> str | None:
    """The number of the collective that a line tells of, or the rest of it where it is broken."""
    if (told := match.groups.get("seq")) or match.signature.id != WRAPPED:
        return told
    rest = facts.lines(match.cite.source, match.cite.line, WRAPPED_LINES)
    found = next(filter(None, map(_SEQUENCE.search, rest)), None)
    return found[1] if found else None


def waiting(facts: Facts, *tags: str) -> Waiting | None:
    """The victims in the last attempt that has any, by the tags of the lines they printed."""
    found = [m for tag in tags for m in facts.tagged(tag) if _waits(facts, m)]
    if any(_EITHER in m.cite.text for m in found):
        told = {(m.cite.source, number(m.cite.place)) for m in facts.tagged("lost-peer")}
        found = [
            m
            for m in found
            if _EITHER not in m.cite.text or (m.cite.source, number(m.cite.place)) not in told
        ]
    if not found:
        return None
    attempt = max(m.attempt for m in found)
    by_rank: dict[object, Match] = {}
    for match in sorted(
        (m for m in found if m.attempt == attempt), key=lambda m: (m.cite.source, m.cite.line)
    ):
        rank = number(match.cite.place)
        by_rank.setdefault(rank if rank is not None else match.cite.source, match)
    victims = tuple(by_rank.values())
    earliest = facts.earliest(m.cite for m in victims)
    return Waiting(victims, next(m for m in victims if m.cite == earliest))


def _waits(facts: Facts, match: Match) -> bool:
    """Whether a line tells of a wait in a collective: some do once steps were made."""
    if of_a_stranger(facts, match):
        return False
    if match.signature.late_family is None:
        return match.signature.family == "C2"
    family, _ = resolve(match.signature, started(facts, match.cite, match.attempt))
    return family == "C2"


def of_a_stranger(facts: Facts, match: Match) -> bool:
    """Whether a connection was closed that had just been turned away, or was not accepted yet:
    no rank had opened it."""
    near = [one for tag in (_TURNED, "not-accepted") for one in facts.tagged(tag)
            if one.cite.source == match.cite.source
            and 0 < abs(one.cite.line - match.cite.line) <= TURNED_AWAY
            and one.cite.place == match.cite.place]  # fmt: skip
    above = any(one.cite.line < match.cite.line for one in near if _TURNED in one.signature.tags)
    return above or any(
        one.cite.line > match.cite.line and _thread(one) == _thread(match)
        for one in near
        if _TURNED not in one.signature.tags
    )


def _thread(match: Match) -> str:
    """By whose name NCCL prints a line: host, process, thread and device."""
    return match.cite.text.partition("]")[0]


def silent(facts: Facts, victims: Waiting) -> tuple[tuple[Place, ...], DerivedCite | None]:
    """
    The ranks that did not report the wait though (nearly) all others did, with the derivation.

    Nothing where fewer than two ranks reported, where a rank was never heard of at all, or
    where the silent are too many to point at.  Ranks count from 0, so one below a rank that
    reported is there though it printed nothing with its number; that it did not time out is known
    where all the others did so in one and the same log, or those of its host in that host's.
    """
    heard = set(facts.ranks)
    world = facts.world_size or len(heard)
    reported = {n for m in victims.matches if (n := number(m.cite.place)) is not None}
    others = sorted(set(range(world)) - reported) if world else []
    waited = all("timeout" in m.signature.tags for m in victims.matches)
    together = waited and len({m.cite.source for m in victims.matches}) == 1
    beside = _beside(facts, victims, world) if waited else {}
    heard.update(beside)
    heard.update(_beside_by_host(facts, victims, others) if waited else ())
    if together and reported:
        heard.update(range(max(reported)))
        world = max(world, max(reported) + 1)
        others = sorted(set(range(world)) - reported)
    few = len(others) == 1 or 0 < len(others) <= FEW_RATIO * len(reported)
    if len(reported) < 2 or not few or not set(others) <= heard:
        return (), None
    places = tuple(_place_of(facts, rank, beside.get(rank)) for rank in others)
    cite = DerivedCite(
        method="ranks-not-among@1",
        inputs=victims.cites,
        params=(("world_size", world),),
        value=",".join(map(str, others)),
        text=f"of ranks 0-{world - 1} only {', '.join(map(str, others))} did not report it",
        place=places[0] if len(places) == 1 else Place(),
    )
    return places, cite


ACCUSED_LINES = 64
_LISTED = re.compile(r"/task:(\d{1,6})\b")
_ACCUSED = re.compile(
    rf"^\s*(?:(?:{STAMP.pattern}|\[pod/[\w./-]{{1,200}}\]\s+|[A-Z]?\d{{1,6}}:\s+)\s*){{0,3}}"
    r"(?:/job:\S{1,80}/task:)?(?P<task>\d{1,7})\s*$"
    r"|^\s*(?:[A-Z][a-z]{2} )?(?:[^\s\d:\[|]{0,40}[\d:\[|]\S{0,60}\s+){0,5}"
    r"/job:\S{1,80}/task:(?P<named>\d{1,7})\s*$"
)
"""A task behind what collectors and launchers put before each line of a message."""


def accused(facts: Facts, match: Match) -> tuple[int, ...]:
    """Tasks a heartbeat line declares dead: on the line, or one a line behind it."""
    named = match.groups.get("task", "")
    if named.isdigit():
        return (int(named),)
    tasks = [int(n) for n in _LISTED.findall(match.cite.text.partition("heartbeats)")[2])]
    if tasks:
        return tuple(tasks)
    for line in range(match.cite.line + 1, match.cite.line + 1 + ACCUSED_LINES):
        found = _ACCUSED.match(facts.text(match.cite.source, line))
        if found is None:
            break
        tasks.append(int(found["task"] or found["named"]))
    return tuple(tasks)


def _place_of(facts: Facts, rank: int, host: str | None = None) -> Place:
    for place in facts.places_of(rank):
        return place if place.host is not None else replace(place, host=host)
    return Place(host, rank=rank)


def _beside(facts: Facts, victims: Waiting, world: int) -> dict[int, str | None]:
    """Ranks that were started beside those which one log tells of, with the host of these.

    A launcher numbers the ranks of a host on and prints them into one log: those between two that
    reported are its own, and where every log has its block of as many, all of the block.
    """
    logs: dict[str, list[int]] = {}
    for match in victims.matches:
        rank = number(match.cite.place)
        if rank is not None:
            logs.setdefault(match.cite.source, []).append(rank)
    spans = sorted((min(ranks), max(ranks), source) for source, ranks in logs.items())
    if len(spans) < 2 or any(low <= high for (_, high, _), (low, _, _) in pairwise(spans)):
        return {}
    each, rest = divmod(world, len(spans))
    blocks = rest == 0 and [low // each for low, _, _ in spans] == [*range(len(spans))]
    whole = blocks and all(low // each == high // each for low, high, _ in spans)
    found: dict[int, str | None] = {}
    for low, high, source in spans:
        host = _host_of(facts, source, logs[source])
        first = low // each * each if whole else low
        found.update(dict.fromkeys(range(first, first + each if whole else high + 1), host))
    return found


def _beside_by_host(facts: Facts, victims: Waiting, ranks: Sequence[int]) -> Iterator[int]:
    """Those of these ranks that are known to be on a host of which all that reported, several, did
    so in one log."""
    logs: dict[str, list[str]] = {}
    for match in victims.matches:
        host = facts.on_host(Place(rank=match.cite.place.rank)).host
        if host is not None and match.cite.place.rank is not None:
            logs.setdefault(host, []).append(match.cite.source)
    for rank in ranks:
        told = logs.get(facts.on_host(Place(rank=rank)).host or "", [])
        if len(told) > 1 and len({*told}) == 1:
            yield rank


def _host_of(facts: Facts, source: str, ranks: Sequence[int]) -> str | None:
    """The host of the processes that printed into one log: as they, their launcher or its name
    say."""
    told = {facts.on_host(Place(rank=rank)).host for rank in ranks}
    told |= {end.place.host and facts.node_of(end.place.host) for end in facts.exits
             if end.cite.source == source and end.place.rank in ranks}  # fmt: skip
    told.discard(None)
    return told.pop() if len(told) == 1 else None if told else named_after(source, facts.hosts)


def lagging(facts: Facts, victims: Waiting) -> tuple[Match, ...]:
    """
    The lines by which ranks had not enqueued the collective that their peers wait in, or fewer
    where none says which that is; each rank by its first such line in one group.

    Such a rank never entered the collective the others wait in (training-time rule of NCCL users;
    `ProcessGroupNCCL` prints both numbers since torch 2.3, also as a rank learns of a time-out
    through the store).
    """
    groups: dict[str, dict[int | None, Match]] = {}
    for match in facts.matches:
        told = match.groups.get("last_enqueued", "")
        if match.attempt == victims.first.attempt and told.isdigit():
            named = _GROUP.search(match.cite.text)
            of = groups.setdefault((named[1] or named[2]) if named else "", {})
            of.setdefault(number(match.cite.place), match)
    if "" in groups and len(groups) == 2:
        alone = groups.pop("")
        (whole,) = groups.values()
        whole.update({rank: match for rank, match in alone.items() if rank not in whole})
    for ranks in groups.values():
        numbered = {match: int(match.groups["last_enqueued"]) for match in ranks.values()}
        stuck = [int(seq) for m in numbered if (seq := m.groups.get("seq", "")).isdigit()]
        least = min(stuck, default=max(numbered.values()))
        behind = [match for match, enqueued in numbered.items() if enqueued < least]
        if 0 < len(behind) <= len(numbered) / 2:
            return tuple(behind)
    return ()
