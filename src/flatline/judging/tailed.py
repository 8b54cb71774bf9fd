"""
Whether a run outlived the end of a process that its launcher told of.

PaddlePaddle's launcher prints the end of a trainer's log below the line that it failed: steps that
stand there were made before.  Its own last word, with the code it leaves with, tells that nothing
was begun again.
"""

from __future__ import annotations

from flatline.facts import Facts
from flatline.judging.crashes import survived
from flatline.model import LogCite, ProcessExit

TAILS, LEFT = "paddle", "launcher-left"


def outlived(facts: Facts, event: ProcessExit) -> bool:
    """Whether training is known to have gone on after it."""
    if not survived(facts, event.cite, event.attempt):
        return False
    return not (event.reporter == TAILS and _left(facts, event))


def _left(facts: Facts, event: ProcessExit) -> bool:
    cite = event.cite
    return isinstance(cite, LogCite) and any(
        m.cite.source == cite.source and m.cite.line > cite.line and m.attempt == event.attempt
        for m in facts.tagged(LEFT)
    )
