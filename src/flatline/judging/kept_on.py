"""The one GPU that draws as much as before in a slow phase, while all others of the run wait."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from flatline.facts import Facts
from flatline.judging.claims import claim
from flatline.judging.gpus import Readings, readings
from flatline.judging.throughput import Course, Slow
from flatline.judging.timeline import instant
from flatline.model import Claim, LogCite, Place

POWER = "gpu_power_watts"
LOST = 0.12
"""Of the pace: a smaller loss leaves the others too little time to draw less."""
FELL, HELD, APART = 0.94, 0.9, 0.6
"""Of what a GPU drew while the run was fast: one that waits spins at a part of its power, and the
one that is waited for computes all the time, if at less than before, and lost so much less than
any other.  A judgement; means over minutes scatter by 1 %."""
USUAL, WORKS = 0.15, 0.5
"""How near the card must have been to the median of the others while the run was fast, and how
busy: a spare, a capped one and one of another part of the work change otherwise."""
BUSY = ("gpu_engine_active_ratio", "gpu_utilization_ratio")
TOGETHER = 0.03
"""Cards of one run fall as far: of another's, within this by chance."""
LEAST = 4
"""GPUs of the run: of two either may be the one that changed."""
LINES, SAME, BEFORE = 10, 0.9, 0.5
"""Lines of the slow phase that name the slowest rank, the part of them that name one and the same,
and of those of the fast phase no more may: a rank that always has most to do slows nothing."""
MOST_LINES = 400
_NAMED = re.compile(
    r"(?i)\b(?:(?:step|iter|comp(?:ute)?|fwd|bwd|forward|backward)_(?:\w{1,12}_)?max_rank"
    r"|slowest_rank|straggler_rank)[\"']?\s{0,2}[=:]\s{0,2}(\d{1,6})\b"
    r"|\b(?:slowest|straggler)(?: rank)?\s{0,2}[=:]\s{0,2}(?:rank[ =]?)?(\d{1,6})\b"
    r"|\bslowest rank (?:is )?(\d{1,6})\b"
)


@dataclass(frozen=True, slots=True)
class KeptOn:
    """The card, the rank or both, the phase, and what shows it."""

    place: Place
    phase: Slow
    shows: tuple[Claim, ...]

    @property
    def twice(self) -> bool:
        """Whether the program's own word and the card's power are both there."""
        return len(self.shows) > 1


def kept_on(facts: Facts, run: Course) -> KeptOn | None:
    """By the power of the cards, and by what the steps' lines say of the slowest rank."""
    later = [p for p in run.slow if p.begins >= run.best.ends and p.part <= 1 - LOST]
    if not later:
        return None
    phase = max(later, key=lambda p: (1 - p.part) * (p.ends - p.begins))
    card, named = _card(facts, run, phase), _named(facts, run, phase)
    if card is None and named is None:
        return None
    place, shows = card if card is not None else (Place(), None)
    if named is not None:
        rank = facts.on_host(named[0])
        if place.host and rank.host and facts.node_of(place.host) != rank.host:
            return None
        if place.gpu is not None and not _may_be(named[0], place, facts, run):
            return None
        place = replace(place, rank=rank.rank, host=place.host or rank.host)
    claims = (shows, None if named is None else named[1])
    return KeptOn(place, phase, tuple(one for one in claims if one is not None))


def _may_be(rank: Place, card: Place, facts: Facts, run: Course) -> bool:
    """Whether a rank may run on a card: the one of its host that its number counts to."""
    read = _means(facts, run.best)
    here = 0 if read is None else sum(place.host == card.host for place in read.rows)
    number, gpu = rank.rank, card.gpu or ""
    return number is not None and gpu.isdecimal() and bool(here) and int(gpu) == number % here


def _card(facts: Facts, run: Course, phase: Slow) -> tuple[Place, Claim] | None:
    """The run's hosts are those of which the others fell, and must hold as many cards as the run
    has ranks, where that is known."""
    fast, slow = (_means(facts, one) for one in (run.best, phase))
    world = facts.world_size or 0
    if fast is None or slow is None or 0 < world < LEAST:
        return None
    parts = {place: row.last / fast.rows[place].last for place, row in slow.rows.items()
             if place in fast.rows and fast.rows[place].last > 0}  # fmt: skip
    hosts: dict[str, list[Place]] = defaultdict(list)
    for place in parts:
        hosts[facts.node_of(place.host or "")].append(place)
    own = {host: cards for host, cards in hosts.items()
           if 2 * sum(parts[card] <= FELL for card in cards) > len(cards)
           and (not facts.hosts or host in facts.hosts)}  # fmt: skip
    if not world:
        own = _as_one(own, parts, fast)
    cards = [card for some in own.values() for card in some]
    if len(cards) != (world or len(cards)) or len(cards) < LEAST:
        return None
    first, most = sorted(cards, key=lambda card: -parts[card])[:2]
    if (
        parts[most] > FELL
        or parts[first] < HELD
        or parts[first] - parts[most] < APART * (1 - parts[most])
    ):
        return None
    if not _alike(first, cards, fast) or not _works(facts, run.best, first):
        return None
    both = (slow, "power while it was slow"), (fast, "power before")
    cites = [read.cite(card, read.rows[card].times[-1], text)
             for card in (first, most) for read, text in both]  # fmt: skip
    text = (
        f"{first} drew {parts[first]:.0%} of what it did before; the {len(cards) - 1} others of"
        f" the run fell to {parts[most]:.0%} and less"
    )
    return first, claim(text, *(cite for cite in cites if cite is not None))


def _as_one(
    own: Mapping[str, list[Place]], parts: Mapping[Place, float], fast: Readings
) -> dict[str, list[Place]]:
    """Where nobody counts the ranks: the hosts, two or more, whose cards fell as far as those of
    the one host on which a single card, that had drawn what they did, kept its power."""
    low = {host: median(p for card in cards if (p := parts[card]) <= FELL)
           for host, cards in own.items()}  # fmt: skip
    at = {
        host
        for host, cards in own.items()
        for kept in ([card for card in cards if parts[card] > FELL],)
        if len(kept) == 1 and _alike(kept[0], cards, fast)
    }
    if len(at) != 1:
        return {}
    level = low[next(iter(at))]
    found = {host: cards for host, cards in own.items() if abs(low[host] - level) <= TOGETHER}
    return found if len(found) > 1 else {}


def _alike(card: Place, cards: Sequence[Place], fast: Readings) -> bool:
    usual = median(fast.rows[one].last for one in cards)
    return abs(fast.rows[card].last - usual) <= USUAL * usual


def _works(facts: Facts, phase: Slow, card: Place) -> bool:
    """Whether something ran on it most of the time, as far as that was measured."""
    signal = next(filter(facts.measured, BUSY), None)
    if signal is None:
        return True
    length = max(1, int(phase.ends - phase.begins))
    read = readings(instant(facts, f"avg_over_time({signal}[{length}s])", int(phase.ends)))
    row = None if read is None else read.rows.get(card)
    return row is not None and row.last >= WORKS


def _means(facts: Facts, phase: Slow) -> Readings | None:
    length = max(1, int(phase.ends - phase.begins))
    return readings(instant(facts, f"avg_over_time({POWER}[{length}s])", int(phase.ends)))


def _named(facts: Facts, run: Course, phase: Slow) -> tuple[Place, Claim] | None:
    """The rank that nearly all lines of the phase call the slowest, and few of those before."""
    now, before = _told(facts, run, phase), _told(facts, run, run.best)
    if len(now) < LINES or len(before) < LINES:
        return None
    rank, count = Counter(rank for rank, _ in now).most_common(1)[0]
    earlier = sum(one == rank for one, _ in before)
    if count < SAME * len(now) or earlier > BEFORE * len(before):
        return None
    own = [cite for one, cite in now if one == rank]
    text = (
        f"{count} of {len(now)} lines of the slow phase name rank {rank} as the slowest, of"
        f" {len(before)} before {earlier}"
    )
    return Place(rank=rank), claim(text, own[0], own[-1], before[0][1])


def _told(facts: Facts, run: Course, phase: Slow) -> list[tuple[int, LogCite]]:
    track, indexes = run.pace.track, run.pace.indexes
    if track is None:
        return []
    first, last = phase.points
    stride = max(1, (last - first + 1) // MOST_LINES)
    found = []
    for at in range(first, last + 1, stride):
        cite = facts.point(track, indexes[at]).cite
        if told := _NAMED.search(cite.text):
            found.append((int(next(filter(None, told.groups()))), cite))
    return found
