"""A communicator that NCCL could not set up: a connection that broke meanwhile, by the trace that
this leaves, or a check of NCCL's own that failed before any step."""

from __future__ import annotations

import re

from flatline.facts import Facts
from flatline.judging.begun import within_the_loop
from flatline.judging.both_ends import BY_SCHEDULER, VAGUE, closed_at_the_end
from flatline.judging.crashes import failures
from flatline.model import LogCite

BELOW = 60
"""Lines: the traces of other ranks, and what a launcher prints of them."""
CHECK = "nccl-internal-error"
TRACE = 24
"""Lines below: a failed call says so in each of its callers, and several processes at once."""
BEFORE, AT_WORK = 200, 60
"""Of so many lines above, as many that are none of NCCL's tell of a program that is at work."""
_INIT = re.compile(
    r"\binit\.c[cu]:\d{1,5} -> [1-9]\b|\bbootstrap\.c[cu]:\d{1,5} -> [1-9]\b"
    r"|\bTCP client failed to connect/validate to host\b"
)
"""`NCCLCHECK` in src/init.cc and src/bootstrap.cc (init.cu before NCCL 2.4); and torch's store,
to which a process connects once, before its group is made (TCPStore.cpp)."""


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


def _followed(facts: Facts, cite: LogCite) -> bool:
    """Whether a program had much to say after it."""
    last = facts.last_lines.get(cite.source)
    return last is not None and last.line > cite.line + BELOW


def checked_in_vain(facts: Facts) -> tuple[LogCite, ...]:
    """The lines in which NCCL says that an internal check failed, where no step was made and
    nothing else says what did: NCCL checks the links, rings and settings of a group as it makes
    it (src/init.cc `initTransportsRank`), often in its first collective.  A peer that went makes
    such a check fail as well."""
    attempt = facts.last.n
    said = [m for m in facts.matches if m.signature.id == CHECK and m.attempt == attempt]
    if (
        not said
        or _followed(facts, said[-1].cite)
        or facts.has_progress
        or facts.disposition in (*BY_SCHEDULER, "completed")
    ):
        return ()
    failed = [f for f in failures(facts) if f.attempt == attempt and f.fatal]
    if any(f.strength >= VAGUE for f in failed) or facts.tagged("lost-peer"):
        return ()
    raised = [crash for crash in facts.crashes if crash.attempt == attempt]
    if any(event.signal for event in facts.exits) or any(map(within_the_loop, raised)):
        return ()
    return tuple(m.cite for m in said)
