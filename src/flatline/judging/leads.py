"""
From many failures of one family to one finding: the first, its kind, and where it stands.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from flatline.facts import LOG, Facts
from flatline.judging.claims import claim, distinct, name_places, number
from flatline.judging.crashes import LOOP_DOUBT, WEAK_ROOT, Failure, of_family
from flatline.judging.first_unread import ASKED, first_unread
from flatline.judging.uncaught import shares_memory
from flatline.laid_ranks import a_task_each
from flatline.model import (
    AbsenceCite,
    Action,
    Claim,
    Cleared,
    Place,
    Scope,
    Signature,
)
from flatline.rank_hosts import TORCHRUN

EVERYWHERE = 0.9
"""Share of the ranks heard of that must show a failure before it counts as everywhere alike:
a rank or two is usually torn down before it prints."""
LOOKED_BACK = 200
"""Lines before a failure in which a step of a form that is not known is looked for."""
STEP_LIKE = re.compile(
    r"\b(?:loss|ppl|perplexity)\b[^\w\n]{0,4}\d|"
    r"\b(?:steps?|it|iter|iterations?|batch|epoch)\b[^\w\n]{0,3}\d{1,9} ?(?:/|of|\]|:|,)|"
    r"^\W{0,3}\d{2,9}\W{1,3}(?:[a-z][\w ]{0,24}: ?-?\d[\w.+-]{0,16}[;,|] ?){3}",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Lead:
    """The first failure of a family in an attempt, with those of the same kind."""

    first: Failure
    group: tuple[Failure, ...]
    scope: Scope
    culprits: tuple[Place, ...]
    others: tuple[Failure, ...]
    """Failures of the same family of another kind: later, or not in order with the first."""
    everyone: bool = False
    """Whether the group holds every rank of a world whose size is known."""

    @property
    def where(self) -> str:
        return name_places(distinct(f.place for f in self.group))


def lead(facts: Facts, code: str) -> Lead | None:
    """The lead of the last attempt that has a fatal failure of this family."""
    found = of_family(facts, code)
    if not found:
        return None
    attempt = max(f.attempt for f in found)
    return lead_of(facts, tuple(f for f in found if f.attempt == attempt))


def lead_of(facts: Facts, found: Sequence[Failure]) -> Lead:
    """Group by kind; the kind of the earliest failure leads, the stronger where order is
    unknown or both stand in one traceback."""
    found = [f for f in found if f.strength >= WEAK_ROOT] or list(found)
    first_cite = facts.earliest(f.cite for f in found)
    first = next(f for f in found if f.cite == first_cite)
    rivals = [f for f in found if facts.after(f.cite, first.cite) is not True]
    first = max(rivals, key=lambda f: f.strength, default=first)
    group = tuple(f for f in found if f.key == first.key)
    earliest = facts.earliest(f.cite for f in group)
    first = next(f for f in group if f.cite == earliest)
    scope, culprits = spread(facts, [f.place for f in group])
    heard = {number(f.place) for f in group} - {None}
    everyone = facts.world_size is not None and heard == set(range(facts.world_size))
    others = tuple(f for f in found if f.key != first.key)
    return Lead(first, group, scope, culprits, others, everyone)


def of_the_one_that_told(facts: Facts, found: Lead) -> Lead:
    """Failures without a rank, as a kernel's own words have none, are those of the one rank that
    raised the error which they lead to, on that host where they have one.  As its process ends,
    C++ may say the same once more, without a label; said twice, or before it was raised, it is
    another's."""
    own = {f.place for f in (*found.group, found.first)}
    if len(own) != 1 or any(place != Place(host=place.host) for place in own):
        return found
    again = [f for f in found.others if f.crash is None and f.place in own]
    ranks = {number(f.place) for f in found.others if f not in again}
    rank = ranks.pop() if len(ranks) == 1 else None
    if rank is None or len(again) > 1:
        return found
    told = next(f for f in found.others if number(f.place) == rank)
    if any(facts.after(f.cite, told.cite) is not True for f in again):
        return found
    hosts = {e.place.host for e in facts.exits
             if e.attempt == found.first.attempt and number(e.place) == rank}  # fmt: skip
    place = facts.on_host(told.place)
    if place.host is None and len(hosts) == 1:
        place = replace(place, host=hosts.pop())
    here = own.pop().host
    if here is not None and place.host not in (None, here):
        return found
    place = replace(place, host=place.host or here)
    first = replace(found.first, place=place)
    group = tuple(first if f is found.first else f for f in found.group)
    return replace(found, first=first, group=group, scope="place", culprits=(place,))


def spread(facts: Facts, places: Sequence[Place]) -> tuple[Scope, tuple[Place, ...]]:
    """
    Where something stands: everywhere alike (no culprits), at named places, or unknown.

    One rank of a run of which only one rank was ever heard is not "everywhere": it is where the
    one log was.  Nor are all that were heard of on half of the run's hosts or fewer: the ranks of
    the others had nothing to tell; nor several in a row of a host with no fewer ranks before them.
    """
    named = distinct(as_rank(facts, facts.on_host(place)) for place in distinct(places))
    if not named:
        return "none", ()
    ranks = {n for n in map(number, named) if n is not None}
    known = facts.world_size or len(facts.ranks)
    on = {place.host for place in named}
    elsewhere = None not in on and 2 * len(on) <= len(facts.hosts)
    elsewhere |= facts.world_size is None and len(on - {None}) == 1 and (
        _in_a_row(ranks) and min(ranks) >= len(ranks))  # fmt: skip
    if known > 1 and ranks and len(ranks) >= EVERYWHERE * known and not elsewhere:
        return "all", ()
    if known <= 1 and len(ranks) <= 1 and not any(place.host for place in named):
        return "place", named
    return "place", named


def as_rank(facts: Facts, place: Place) -> Place:
    """With the rank that a launcher's task is, where tasks are the ranks."""
    if place.rank is not None or place.task is None:
        return place
    return replace(place, rank=place.task) if _is_rank(facts, place) else place


def _is_rank(facts: Facts, place: Place) -> bool:
    """Whether every task of which a rank was printed has that rank's number, and one a number that
    a task which starts all ranks of a host cannot have, or this stands where the record of a step
    with a task for each GPU lays it, or the one host has as many tasks as there are ranks."""
    told = [place for rank in facts.ranks for place in facts.places_of(rank)
            if place.rank is not None and place.task is not None]  # fmt: skip
    if any(place.rank != place.task for place in told):
        return False
    if max((p.task or 0 for p in told), default=0) >= max(1, len(facts.hosts)):
        return True
    agents = any(event.reporter == TORCHRUN for event in facts.exits)
    tasks = {e.place.task for e in facts.exits if e.place.task is not None}
    world = facts.world_size or 0
    if len(facts.hosts) == 1 and world > 1 and tasks == {*range(world)} and not agents:
        return True
    laid = facts.on_host(Place(rank=place.task)).host
    return laid is not None and laid == place.host and not agents and (
        a_task_each(facts.jobs, facts.hosts))  # fmt: skip


def _in_a_row(ranks: Collection[int]) -> bool:
    return len(ranks) > 1 and max(ranks) - min(ranks) + 1 == len(ranks)


def on_one_host(facts: Facts, found: Lead) -> Lead:
    """Ranks in a row, of which one is known to be on a host, are all on it where no more stand
    there by that host's place in the run, and no task of another ended with an error."""
    ranks = {n for place in found.culprits if (n := number(place)) is not None}
    hosts = {place.host for place in found.culprits if place.host is not None}
    ended = {facts.node_of(e.place.host) for e in facts.exits
             if e.place.host and e.exit_code and e.attempt == found.first.attempt}  # fmt: skip
    whole = len(ranks) == len(found.culprits) and _in_a_row(ranks)
    if not whole or len(hosts) != 1 or ended != hosts or not hosts <= set(facts.hosts):
        return found
    (host,) = hosts
    before, lowest = facts.hosts.index(host), min(ranks)
    if not before or lowest % before or len(ranks) > lowest // before:
        return found
    return replace(found, culprits=tuple(replace(place, host=host) for place in found.culprits))


def raised(lead: Lead) -> str:
    """`Rank 1 raised KeyError: 'x'`, `All 8 ranks raised ...`, or the meaning of a bare line."""
    crash = lead.first.crash
    if crash is None or not crash.exception:
        return lead.first.what.rstrip(".")
    message = " ".join(crash.message.split()).lstrip(": ")
    text = crash.exception + (f": {message[:160]}" if message else "")
    return f"{subject(lead)} raised {text}"


def subject(lead: Lead) -> str:
    ranks = {number(f.place) for f in lead.group} - {None}
    if lead.scope == "all" and lead.everyone:
        return f"All {len(ranks)} ranks"
    where = lead.where
    return where[:1].upper() + where[1:] if where else "The job"


def shows(lead: Lead, text: str | None = None, most: int = 6) -> Claim:
    """What the lead shows, citing the first lines of its group."""
    told = [lead.first, *lead.group]
    every = [c for f in told for c in (f.cite, f.match.cite if f.match else f.cite)]
    cites = {(c.source, c.line): c for c in reversed(every)}
    return claim(text or raised(lead), *list(reversed(cites.values()))[:most])


UNREAD = 0.79
"""Where the log that steps would stand in was not read: just short of confident."""


@dataclass(frozen=True, slots=True)
class Phase:
    """How a failure stands to the first step: the end of its headline, what stays open, the part
    of its strength that is left, and what it is worth at most."""

    told: str
    asked: str | None = None
    left: float = 1.0
    most: float = 1.0


def phase(facts: Facts, first: Failure) -> Phase:
    """That it came before any step, as far as steps were read: a form of step that is not known
    looks like no step."""
    if facts.has_progress and first.started is False:
        return Phase(" before the first training step")
    asked = "Whether a training step was made before: "
    if facts.has_progress:
        return Phase("", f"{asked}no step of its stream can be put in order with it.")
    told = "; no training step was read before it" if first.started is False else ""
    head = first.crash.head if first.crash else first.cite
    begin = max(head.line - LOOKED_BACK, 1)
    lines = facts.lines(head.source, begin, head.line - begin) if head.line > begin else ()
    like = [n for n, line in enumerate(lines, begin) if STEP_LIKE.search(line)]
    if like:
        asked += f"{head.source}:{like[-1]} may be one, in a form that is not known."
        return Phase(told, asked, LOOP_DOUBT if first.started is False else 1.0)
    if first.started is False and first_unread(facts, first.crash):
        return Phase(told, ASKED, LOOP_DOUBT, UNREAD)
    where = f"the {len(lines)} lines before it" if len(lines) > 1 else "the log before it"
    return Phase(
        told, f"{asked}nothing like one stands in {where}; a program that prints none looks alike."
    )


def meaning(signature: Signature | None) -> str | None:
    return signature.meaning if signature is not None else None


_ANYTHING = ("AssertionError", "AttributeError", "Exception", "IndexError", "RuntimeError",
             "TypeError", "ValueError")  # fmt: skip
"""Exceptions that do not say by themselves what is to be mended."""


def fix(lead: Lead, fallback: str) -> Action:
    """The signature's own advice, else what its frames point at, else the family's."""
    signature, crash = lead.first.signature, lead.first.crash
    if signature is not None and signature.action:
        return Action("fix", signature.action)
    if shares_memory(crash):
        return Action(
            "fix",
            "See what is in /dev/shm on its host: remove what earlier runs left there, give a"
            " container more (--shm-size, --ipc=host), then resubmit.",
        )
    if crash and crash.frames and crash.exception in _ANYTHING and signature is None:
        at = crash.frames[-1]
        line = f":{at.line}" if at.line else ""
        return Action(
            "fix", f"See what {at.function} was given at {at.file}{line}, where it was raised."
        )
    return Action("fix", fallback)


def not_found(facts: Facts, code: str, ids: Sequence[str], why: str) -> Cleared | None:
    """Cleared by absence: none of these signatures in any log that was read."""
    absent: AbsenceCite | None = facts.absence(ids, why, LOG)
    return None if absent is None else Cleared(code, why, (absent,))
