"""A connection that broke while NCCL set a communicator up, by the trace that this leaves."""

from __future__ import annotations

import re

from flatline.facts import Facts
from flatline.judging.both_ends import closed_at_the_end
from flatline.model import LogCite

TRACE = 24
"""Lines below: a failed call says so in each of its callers, and several processes at once."""
BEFORE, AT_WORK = 200, 60
"""Of so many lines above, as many that are none of NCCL's tell of a program that is at work."""
_INIT = re.compile(r"\binit\.c[cu]:\d{1,5} -> [1-9]\b|\bbootstrap\.c[cu]:\d{1,5} -> [1-9]\b")
"""`NCCLCHECK` in src/init.cc and src/bootstrap.cc (init.cu before NCCL 2.4)."""


def lost_in_the_making(facts: Facts) -> tuple[LogCite, LogCite] | None:
    """The line of the loss and that of the trace; None where steps were made, or anything else
    tells how the run ended."""
    line = None if facts.has_progress else closed_at_the_end(facts)
    if line is None:
        return None
    above = facts.lines(line.source, max(1, line.line - BEFORE), min(BEFORE, line.line - 1))
    if sum("NCCL" not in text and bool(text.strip()) for text in above) >= AT_WORK:
        return None
    below = facts.lines(line.source, line.line + 1, TRACE)
    at = next((n for n, text in enumerate(below, line.line + 1) if _INIT.search(text)), None)
    if at is None:
        return None
    return line, LogCite(line.source, at, facts.text(line.source, at), line.place, line.at)
