"""The one rank that those which waited in a collective name as the one that did not come."""

from __future__ import annotations

import re

from flatline.facts import Facts
from flatline.judging.claims import number
from flatline.model import LogCite

SEVERAL = 2
"""Who report it: in a ring each waits for the one before, so that one alone names a victim."""
DOUBT = (
    "Whether it is that rank of the run: the number is the one within the group of that"
    " collective, which may be of other ranks."
)
_NAMED = re.compile(r"(?i)\bremote rank ?:? ?\[(\d{1,6})\]")
_PROCESS = re.compile(r"\[PID: (\d{1,10})\]")
_RANK_ABOVE = re.compile(r"^\[rank(\d{1,6})\]:")


def said_missing(facts: Facts, attempt: int) -> tuple[int, list[LogCite]] | None:
    """Its number, and the lines; None where fewer than two name one, they name several, or the one
    that is named reports a wait itself."""
    named: dict[int, list[LogCite]] = {}
    told: set[str] = set()
    waited: set[int | None] = set()
    for match in facts.tagged("timeout"):
        if match.attempt != attempt or match.signature.origin != "ascend":
            continue
        text = facts.text(match.cite.source, match.cite.line)
        if (found := _NAMED.search(text)) is None:
            continue
        process = _PROCESS.search(text)
        told.add(process[1] if process else str(match.cite.place))
        named.setdefault(int(found[1]), []).append(match.cite)
        above = facts.lines(match.cite.source, match.cite.line - 1, 1)
        own = next(filter(None, map(_RANK_ABOVE.search, above)), None)
        waited |= {number(match.cite.place), int(own[1]) if own else None}
    if len(named) != 1 or len(told) < SEVERAL:
        return None
    ((rank, cites),) = named.items()
    return None if rank in waited else (rank, cites)
