"""
Whose card an error of the driver's is of, where the line that tells it bears no place.

A driver reports a card's fault to the process that uses it.  A line of the same fault that a rank
labels, though it stands amid the traceback of another process, names that rank; what Ray raises
again in the driver's process bears the address of the worker in which it was raised, in the head
of the frames right above it.
"""

from __future__ import annotations

import re

from flatline.facts import Facts
from flatline.judging.claims import claim, number
from flatline.judging.leads import as_rank
from flatline.model import Claim, LogCite, Match, Place

FRAMES = 120
"""Lines of a traceback between the head of the task and what it raised."""
_TASK = re.compile(r"\bray::\S.{0,200}?\(pid=\d{1,10}, ip=(?P<ip>[\w.:-]{1,64})[,)]")
_OF_A_TRACEBACK = re.compile(r"(?:\([^()]{1,120}\) )?(?: {2}|\t)")


def told_within(facts: Facts, code: str, attempt: int) -> tuple[Place | None, Claim | None]:
    """The one rank that says so itself, else the one host on which Ray's task raised it."""
    lines = [m for m in facts.matches if m.signature.family == code and m.attempt == attempt]
    own = {number(m.cite.place): m for m in lines if number(m.cite.place) is not None}
    if own:
        return _rank(facts, own)
    heads = [head for m in lines if (head := _task_of(facts, m.cite)) is not None]
    hosts = {facts.node_of(ip) for ip, _ in heads}
    if len(hosts) != 1 or len(heads) != len(lines):
        return None, None
    place = Place(host=hosts.pop())
    return place, claim(f"The task that raised it ran on {place.host}", heads[0][1])


def _rank(facts: Facts, own: dict[int | None, Match]) -> tuple[Place | None, Claim | None]:
    if len(own) != 1:
        return None, None
    ((_, match),) = own.items()
    place = as_rank(facts, facts.on_host(match.cite.place))
    return place, claim(f"The process of {place} says so itself", match.cite)


def _task_of(facts: Facts, cite: LogCite) -> tuple[str, LogCite] | None:
    """The address of the task in whose frames an exception's line stands, with its head."""
    first = max(1, cite.line - FRAMES)
    above = facts.lines(cite.source, first, cite.line - first)
    for line, text in zip(range(cite.line - 1, 0, -1), reversed(above), strict=False):
        if found := _TASK.search(text):
            return found["ip"], LogCite(cite.source, line, facts.text(cite.source, line))
        if not _OF_A_TRACEBACK.match(text):
            return None
    return None
