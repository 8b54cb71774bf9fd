"""
Whose a traceback without a label is, where torchrun tells of one process alone that failed.

Its agent ends the others once one has failed, and lists in its summary each that had failed by
itself.  Where that is one, with the status of an uncaught exception, and the agent had to end
others, which were alive until then, the one traceback above is of this process.
"""

from __future__ import annotations

from dataclasses import replace

from flatline.facts import Facts
from flatline.judging.classing import communicates
from flatline.judging.wrappers import is_interrupt, is_wrapper
from flatline.model import Crash, Place
from flatline.rank_hosts import TORCHRUN

UNCAUGHT = 1
"""The status with which Python ends on an exception that nothing caught."""
CLOSING, MOST_LINES = " closing signal SIG", 2_000
"""What the agent says of each process that it ends."""


def of_the_sole_failure(facts: Facts, crash: Crash, place: Place) -> Place:
    """With its rank and host; as it is where another may have raised it, or lost a peer."""
    if place.rank is not None or place.task is not None or communicates(crash):
        return place
    raised = {one.head for one in facts.crashes if one.attempt == crash.attempt
              and not (is_wrapper(one) or communicates(one))}  # fmt: skip
    ended = [e for e in facts.exits if e.attempt == crash.attempt]
    told = {e.place for e in ended if e.reporter == TORCHRUN and e.place.rank is not None}
    alone = len(told) == 1 and all(
        e.exit_code == UNCAUGHT for e in ended if e.reporter == TORCHRUN
    )
    if raised != {crash.head} or is_interrupt(crash) or not alone:
        return place
    lines = [e.cite.line for e in ended
             if e.reporter == TORCHRUN and e.cite.source == crash.cite.source]  # fmt: skip
    first = min(lines, default=0)
    between = facts.lines(crash.cite.source, crash.end_line, max(0, first - crash.end_line))
    if first > crash.end_line + MOST_LINES or not any(CLOSING in text for text in between):
        return place
    (sole,) = told
    if place.host is not None and facts.node_of(place.host) != facts.node_of(sole.host or ""):
        return place
    return replace(place, rank=sole.rank, host=place.host or sole.host)
