"""
Ranks that waited in vain in the first collective of all: they may never have met.

Until one collective was completed nothing shows that the ranks can reach each other, nor that all
of them came.  ProcessGroupNCCL numbers a group's collectives from 1; with Horovod the variables
are broadcast before anything else.  A rank that is seen to do something else meanwhile, such as to
prepare its data while the others wait at a barrier, did come: that is a collective that hangs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from flatline.facts import Facts
from flatline.judging.claims import claim, name_places, number
from flatline.judging.leads import LOOKED_BACK, STEP_LIKE
from flatline.judging.stalled import REPORT, stalled
from flatline.judging.waiting import Waiting, sequence, silent, waiting
from flatline.model import Claim, LogCite, Match, Place
from flatline.rank_hosts import COMMUNICATOR

BESIDE = 60
"""Lines before the report in which another rank's work is looked for: bars are drawn often."""
_GROUP = re.compile(r"\bPG (?:GUID |ID )?(?P<group>\d{1,6})\b")
_COMPLETED = re.compile(r"(?i)last completed (?:NCCL )?work: (?P<work>-?\d{1,12})\b")
LISTED = 8
"""Lines of a report in which the operations that stall are named."""
_OPERATIONS = re.compile(r"\bHorovod(Broadcast|Allreduce|Allgather|Reducescatter|Alltoall)")
_SIZES = re.compile(r"\b(?:OpType|NumelIn|NumelOut)=[\w]{1,40}")
_UNDER_WAY = re.compile(r"(?<!\d)(?P<percent>\d{1,3})%\|")


@dataclass(frozen=True, slots=True)
class Unmet:
    """The victims, and the ranks that they waited for with what tells these, if anything does."""

    victims: Waiting
    missing: tuple[Place, ...] = ()
    why: Claim | None = None


def never_met(facts: Facts) -> Unmet | None:
    """None where a step or a collective was completed, or a rank was at work meanwhile."""
    return facts.memo("ranks that never met", _never_met)


def _never_met(facts: Facts) -> Unmet | None:
    victims = waiting(facts, "timeout")
    if victims is None or facts.has_progress or facts.dumps or facts.disposition == "completed":
        return None
    attempt = victims.first.attempt
    told = [m for m in facts.tagged("timeout") if m.attempt == attempt]
    unmet = _of_horovod(facts, victims, told) or _of_a_group(facts, victims, told)
    if unmet is None or _stepped(facts, victims.first.cite) or _at_work(facts, unmet):
        return None
    return unmet


def _of_horovod(facts: Facts, victims: Waiting, told: Sequence[Match]) -> Unmet | None:
    """Where nothing but broadcasts was submitted, and some rank was there for all of them."""
    if any(m.signature.id != REPORT for m in told):
        return None
    listed = stalled(facts, victims.first.attempt)
    if listed is None:
        return Unmet(victims) if all(_broadcasts(facts, m.cite) for m in told) else None
    if not listed.opens:
        return None
    return Unmet(victims, listed.places, listed.why) if listed.odd else None


def _broadcasts(facts: Facts, report: LogCite) -> bool:
    """Whether a report whose ranks are cut off names broadcasts and nothing else."""
    named = _OPERATIONS.findall(" ".join(facts.lines(report.source, report.line, LISTED)))
    return set(named) == {"Broadcast"}


def _of_a_group(facts: Facts, victims: Waiting, told: Sequence[Match]) -> Unmet | None:
    """Where the first collective of the one group of all ranks timed out, and nothing else."""
    if not victims.first_ever(facts) or not all(_of_the_first(facts, m) for m in told):
        return None
    asked = {sizes for m in told if (sizes := tuple(_SIZES.findall(m.cite.text)))}
    if len(asked) > 1 or any(m.signature.id == COMMUNICATOR for m in facts.matches):
        return None  # they met, and asked for different things, or NCCL's own group was complete
    places, derived = silent(facts, victims)
    if derived is None:
        return Unmet(victims)
    text = f"Only {name_places(places)} did not report the wait"
    return Unmet(victims, places, claim(text, derived, *victims.cites[:3]))


def _of_the_first(facts: Facts, match: Match) -> bool:
    """Whether a line tells of no later collective, and of none of a part of the ranks: others
    may have been completed before that one."""
    text = match.cite.text
    completed = _COMPLETED.search(text)
    return (
        (sequence(facts, match) or "1") == "1"
        and (completed is None or int(completed["work"]) <= 0)
        and set(_GROUP.findall(text)) <= {"0"}
    )


def _stepped(facts: Facts, cite: LogCite) -> bool:
    """Whether something like a step stands above or below, in a form that is not known."""
    first = max(1, cite.line - LOOKED_BACK)
    return any(map(STEP_LIKE.search, facts.lines(cite.source, first, 2 * LOOKED_BACK)))


def _at_work(facts: Facts, unmet: Unmet) -> bool:
    """Whether a rank that was waited for wrote meanwhile, or a bar was being drawn."""
    first = unmet.victims.first
    missing = {n for n in map(number, unmet.missing) if n is not None}
    theirs = [read for read in facts.files if number(read.place) in missing]
    since = _since(first)
    for read in theirs:
        last = facts.last_lines.get(read.source)
        if last is not None and last.at is not None and since is not None and last.at > since:
            return True
    ends = [(read.source, read.lines + 1) for read in theirs]
    return any(_bar_drawn(facts, *end) for end in ((first.cite.source, first.cite.line), *ends))


def _since(first: Match) -> datetime | None:
    """When the wait began, by the timeout that the watchdog names."""
    stated = first.groups.get("timeout_ms") or ""
    if first.cite.at is None or not stated.isdecimal():
        return None
    return first.cite.at - timedelta(milliseconds=int(stated))


def _bar_drawn(facts: Facts, source: str, before: int) -> bool:
    """Whether the last bar above a line had begun and was not at its end."""
    first = max(1, before - BESIDE)
    drawn = [int(found["percent"]) for text in facts.lines(source, first, before - first)
             for found in _UNDER_WAY.finditer(text)]  # fmt: skip
    return bool(drawn) and 0 < drawn[-1] < 100
