"""
Whom the others waited for: by what was recorded, what was reported, and who did not work.

The strongest sign names alone.  Its host and GPU are added where the ranks' own places or the one
card that was not in the collective tell them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from flatline.facts import Facts, Track
from flatline.judging.at_odds import at_odds, size_of
from flatline.judging.by_work import laid_by_work
from flatline.judging.claims import cap, claim, distinct, name_places, number
from flatline.judging.gaps import alone_with_gaps
from flatline.judging.heartbeats import declared_dead
from flatline.judging.held_up import held_up
from flatline.judging.idle_power import computing, idle
from flatline.judging.lately import last_counted
from flatline.judging.lone_power import drew_apart
from flatline.judging.lone_worker import lone_card, lone_worker
from flatline.judging.pcie import the_narrow
from flatline.judging.ras import behind
from flatline.judging.recorder import Kind, analyse
from flatline.judging.said_missing import DOUBT, said_missing
from flatline.judging.stalled import REPORT, stalled
from flatline.judging.stood_apart import stood_apart
from flatline.judging.throughput import Course, course
from flatline.judging.unheard_hosts import left_open
from flatline.judging.waiting import Waiting, accused, lagging, silent
from flatline.model import Claim, Finding, Match, Place

ACCUSED = 0.7
"""How sure a heartbeat that was missed makes of whom: no more than that."""
SILENT = 0.75
"""The same of one that alone did not report, or alone computed on."""
MANY = 8
"""Ranks of which one is the odd one: of four, three may have left a call out.  Where no line names
a group it may be another one of as many ranks; where some did not tell, most may be as it is."""
LOGS = 4
"""Ranks that print steps of their own; of fewer, one that is late is no exception."""
UNLIKE_MOST = 0.79
"""Just short of confident."""


@dataclass(frozen=True, slots=True)
class Suspect:
    places: tuple[Place, ...]
    why: Claim | None
    sure: float
    kind: Kind | None = None
    most: float = 1.0
    card: Claim | None = None
    """What tells which of its host's GPUs it is."""
    doubt: str | None = None
    """What speaks against it."""


def recorded(facts: Facts) -> Suspect | None:
    """What the flight recorder shows, where it names somebody."""
    seen = analyse(facts.dumps, facts.world_size)
    if seen is None or not seen.culprits:
        return None
    places = tuple(
        (facts.places_of(place.rank) or (place,))[0] if place.rank is not None else place
        for place in seen.culprits
    )
    return Suspect(places, claim(seen.text, *seen.cites[:6]), 0.95, seen.kind)


def by_stacks(facts: Facts) -> Suspect | None:
    """Whom the ranks' stacks show the others to wait for; nobody, where they leave it open."""
    stood = stood_apart(facts)
    if stood is None:
        return None
    kind: Kind | None = "mismatch" if stood.mismatch else None
    sure = 0.9 if stood.places else 0.0
    return Suspect(stood.places, stood.why, sure, kind, stood.most, doubt=stood.doubt)


def by_ras(facts: Facts) -> Suspect | None:
    """Whom NCCL's status service shows behind, or dead; one answer may be of another moment."""
    seen = behind(facts)
    most = 1.0 if seen is not None and seen.stuck else UNLIKE_MOST
    return None if seen is None else Suspect(seen.places, seen.why, 0.9, most=most)


def suspected(facts: Facts, victims: Waiting, everyone: Waiting) -> Suspect:
    named = recorded(facts)
    if named is not None:
        return named
    listed = stalled(facts, victims.first.attempt)
    if listed is not None:
        return Suspect(listed.places if listed.odd else (), listed.why, 0.9)
    stood = by_stacks(facts)
    if stood is not None and stood.places:
        return stood
    if (unlike := at_odds(facts, victims.matches)) is not None:
        odd, whole = unlike
        places = distinct(m.cite.place for m in odd)
        others = [m for m in victims.matches if m not in odd]
        own, theirs = odd[0].groups["op"], others[0].groups["op"]
        if own == theirs:
            own, theirs = f"{own} of {size_of(odd[0])}", f"one of {size_of(others[0])} elements"
        text = (
            f"Under one and the same number {name_places(places)}"
            f" {'was' if len(places) == 1 else 'were'} in {own},"
            f" all the others that told in {theirs}."
        )
        why = claim(text, *(m.cite for m in odd[:3]), *(m.cite for m in others[:3]))
        told = {number(m.cite.place) for m in victims.matches}
        most = 1.0 if whole and len(told) >= MANY else UNLIKE_MOST
        return Suspect(places, why, 0.9, "mismatch", most=most)
    if (behind := _behind(facts, victims)) is not None:
        return behind
    unpowered = idle(facts, *_waited(facts, victims))
    if unpowered is not None:
        idle_one = Suspect(unpowered.places, unpowered.why, 0.85, most=unpowered.most)
        return _with_rank(facts, idle_one, everyone)
    sound = declared_dead(facts).at_work
    tasks = {t for m in everyone.matches if _beat(m) for t in accused(facts, m)} - sound
    if tasks:
        places = distinct(Place(task=t) for t in sorted(tasks))
        cites = [m.cite for m in everyone.matches if _beat(m)]
        why = claim(f"{cap(name_places(places))} stopped sending heartbeats.", *cites[:3])
        return Suspect(places, why, ACCUSED)
    return _by_silence(facts, victims, everyone, sound)


def _by_silence(facts: Facts, victims: Waiting, everyone: Waiting, sound: set[int]) -> Suspect:
    """Who alone did not report, or computed on; nobody where `sound` ones worked on."""
    if (late := by_ras(facts)) is not None:
        return late
    places, derived = silent(facts, everyone)
    if places and derived is not None and sound.isdisjoint(map(number, places)):
        text = f"Only {name_places(places)} did not report the wait: the others waited for it."
        return Suspect(places, claim(text, derived, *everyone.cites[:3]), SILENT)
    alone = None if sound else computing(facts, *_waited(facts, victims))
    if alone:
        return Suspect(alone.places, alone.why, SILENT)
    asked = left_open(facts, victims)
    return Suspect((), None, 0.0, most=UNLIKE_MOST if asked else 1.0, doubt=asked)


def _behind(facts: Facts, victims: Waiting) -> Suspect | None:
    """Whom the lines of those that waited show to have come less far, or name."""
    if behind := lagging(facts, victims):
        places = distinct(m.cite.place for m in behind)
        why = claim(
            f"{cap(name_places(places))} had enqueued fewer collectives than the others.",
            *[m.cite for m in behind[:4]],
        )
        return Suspect(places, why, 0.9)
    if (missed := said_missing(facts, victims.first.attempt)) is None:
        return None
    rank, cites = missed
    why = claim(f"All that name whom they waited for name rank {rank}.", *cites[:3])
    return Suspect((Place(rank=rank),), why, SILENT, most=UNLIKE_MOST, doubt=DOUBT)


def _waited(facts: Facts, victims: Waiting) -> tuple[float | None, float | None]:
    """Until when the others waited, and since when where no step is dated: for as long as the
    timeout that the watchdog names, or since the step counter rose last in the metrics, or the
    last step where the GPUs' work tells when it was made.

    A report without a time of its own came no sooner than that timeout after the last step.
    Horovod reports a wait again and again while it lasts, and ends no process for it."""
    at = victims.first.cite.at
    if victims.first.signature.id == REPORT:
        again = (m.cite.at for m in facts.tagged("timeout")
                 if m.signature.id == REPORT and m.attempt == victims.first.attempt)  # fmt: skip
        at = max(filter(None, again), default=at)
    until = at.timestamp() if at else None
    track = facts.main_track(facts.last.n)
    stated = victims.first.groups.get("timeout_ms", "")
    if track is None or until is None:
        return until, None
    if dated := [at for at in track.at if at == at]:
        held = int(stated) / 1000 if stated.isdecimal() and victims.first.cite.at_assumed else 0.0
        return max(until, dated[-1] + held), None
    if victims.first.cite.at_assumed:
        return until, None
    if stated.isdecimal():
        return until, until - int(stated) / 1000
    worked = laid_by_work(facts)
    return until, last_counted(facts) or (worked.times[-1] if worked is not None else None)


def on_card(facts: Facts, suspect: Suspect, victims: Waiting) -> Suspect:
    """The one rank with its host and, where one GPU alone computed on or fell idle and may be that
    rank's, with that GPU."""
    if len(suspect.places) != 1:
        return suspect
    place = facts.on_host(suspect.places[0])
    suspect = replace(suspect, places=(place,))
    if place.rank is None or place.gpu is not None:
        return suspect
    for look in (computing, idle):
        alone = look(facts, *_waited(facts, victims))
        card = alone.places[0] if alone and len(alone.places) == 1 else Place()
        if alone is None or card.gpu is None or card.host is None:
            continue
        if not may_run_on(facts, place, card):
            return _doubted(suspect, place, card) if suspect.sure <= SILENT else suspect
        host = place.host or facts.node_of(card.host)
        return replace(suspect, places=(replace(place, host=host, gpu=card.gpu),), card=alone.why)
    return suspect


def _with_rank(facts: Facts, suspect: Suspect, everyone: Waiting) -> Suspect:
    """The one card that put its work down runs the one rank that did not report the wait."""
    quiet, _ = silent(facts, everyone)
    if len(suspect.places) != 1 or len(quiet) != 1 or suspect.places[0].gpu is None:
        return suspect
    (card,) = suspect.places
    if not may_run_on(facts, quiet[0], card):
        return _doubted(suspect, quiet[0], card)
    return replace(suspect, places=(replace(card, rank=quiet[0].rank),))


def of_its_rank(
    facts: Facts, places: tuple[Place, ...]
) -> tuple[tuple[Place, ...], tuple[Claim, ...]]:
    """The one card that was not in the collective with the rank that runs there, where that one
    alone of all ranks did not print the last step, and what shows that; else the places as they
    are."""
    ends: dict[int, tuple[Track, int]] = {}
    for track in facts.tracks:
        rank, points = number(track.place), track.of_attempt(facts.last.n)
        if rank is not None and len(points):
            ends.setdefault(rank, (track, points[-1]))
    reached = {rank: track.steps[at] for rank, (track, at) in ends.items()}
    last = max(reached.values(), default=0)
    late = [rank for rank, step in reached.items() if step < last]
    all_told = len(ends) >= max(LOGS, facts.world_size or 0)
    one = len(places) == 1 and places[0].gpu is not None and places[0].rank is None
    if not one or len(late) != 1 or not all_told:
        return places, ()
    if not runs_on(facts, Place(rank=late[0]), places[0]):
        return places, ()
    other = next(rank for rank in ends if rank != late[0])
    cites = (facts.point(*ends[rank]).cite for rank in (late[0], other))
    text = f"All ranks but rank {late[0]} printed step {last}"
    return (replace(places[0], rank=late[0]),), (claim(text, *cites),)


def may_run_on(facts: Facts, place: Place, card: Place) -> bool:
    """Whether nothing that is known speaks against it that a rank runs on a GPU."""
    return runs_on(facts, place, card) is not False


def runs_on(facts: Facts, place: Place, card: Place) -> bool | None:
    """
    Whether a rank runs on a GPU: one of its host or, where that is not known, the one that its
    number counts to.

    Launchers number the ranks of a host on, and a rank takes the GPU of its number there,
    whichever order the hosts are in; in turns, the first of every host come first.  None where
    ranks are not as many on every host, or GPUs have no numbers: it may be any.  The one host of a
    job leaves its number to tell.
    """
    host, own = facts.on_host(place).host, facts.node_of(card.host or "")
    if host is not None and (host != own or _on_several(facts)):
        return host == own
    world = facts.world_size or (facts.job.gpus if facts.job else None) or 0
    hosts = len(facts.hosts) or 1
    each, rest = divmod(world, hosts)
    if place.rank is None or card.gpu is None or not card.gpu.isdecimal() or rest or each < 2:
        return None
    index, gpu = facts.hosts.index(own) if own in facts.hosts else -1, int(card.gpu)
    in_turns = (place.rank % hosts, place.rank // hosts)
    return gpu == place.rank % each or (index, gpu) == in_turns


def _on_several(facts: Facts) -> bool:
    """Whether the run has several hosts, by its record or else by where its ranks are known."""
    if facts.hosts:
        return len(facts.hosts) > 1
    return len({facts.on_host(Place(rank=rank)).host for rank in facts.ranks} - {None}) > 1


def on_its_card(
    facts: Facts, places: tuple[Place, ...], measured: Callable[[Facts], Finding | None]
) -> tuple[tuple[Place, ...], tuple[Claim, ...]]:
    """The one rank that is late with the card that alone was `measured` to work apart from the
    others, or alone has a narrow link or another power, and what shows that, where that card is
    the rank's; else the places as they are."""
    if len(places) != 1 or places[0].rank is None or places[0].gpu is not None:
        return places, ()
    apart = measured(facts)
    card = apart.culprits[0] if apart and len(apart.culprits) == 1 else Place()
    shows = apart.shows[:1] if apart else ()
    run = course(facts) if not card.gpu else None
    alone = (lone_worker(facts, run, ends=True) or lone_card(facts, run)) if run else None
    if alone is not None:
        card, shows = alone.place, (alone.shows,)
    idled = alone_with_gaps(facts, run) if run is not None else None
    kept = held_up(facts, run) if run is not None and idled is None and alone is None else None
    if (told := idled or kept) is not None:
        card, shows = told[0], told[1:]
    if not card.gpu and (beside := _linked_or_powered(facts, run, places[0])) is not None:
        card, shows = beside
    if not card.host or not card.gpu or not runs_on(facts, places[0], card):
        return places, ()
    return (replace(places[0], host=facts.node_of(card.host), gpu=card.gpu),), shows


def _linked_or_powered(
    facts: Facts, run: Course | None, place: Place
) -> tuple[Place, tuple[Claim, ...]] | None:
    """The one card whose link is narrow, or whose power is unlike the others' and whose number
    that of the rank counts to."""
    if facts.window is not None:
        link = the_narrow(facts, *(moment.timestamp() for moment in facts.window))
        if link is not None:
            return link[0], link[1:]
    drew = drew_apart(facts, run) if run is not None else None
    return (drew.place, (drew.shows,)) if drew and _counts_to(facts, place, drew.place) else None


def _counts_to(facts: Facts, place: Place, card: Place) -> bool:
    """Whether a rank is the one of that GPU where each host of the run, in their order, has the
    next ones, as launchers lay them: of its host and of its number there."""
    own, hosts = facts.node_of(card.host or ""), facts.hosts
    world = facts.world_size or (facts.job.gpus if facts.job else None) or 0
    each, rest = divmod(world, len(hosts) or 1)
    if place.rank is None or own not in hosts or rest or each < 2:
        return False
    host, number = divmod(place.rank, each)
    told = facts.on_host(place).host
    return card.gpu == str(number) and own == (told or hosts[min(host, len(hosts) - 1)])


def _doubted(suspect: Suspect, place: Place, card: Place) -> Suspect:
    """What says who was not in the collective, and what says who did not speak, are of two."""
    doubt = (
        f"Whether it was {card} or {name_places((place,))}: the one was not in the collective, the"
        " other alone did not report the wait, and as far as is known they are not one process."
    )
    return replace(suspect, most=min(suspect.most, UNLIKE_MOST), doubt=doubt)


def _beat(match: Match) -> bool:
    return "heartbeat" in match.signature.tags
