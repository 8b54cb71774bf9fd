"""Frames that a log ends in, of a traceback of which neither head nor end is there."""

from __future__ import annotations

import re

from flatline.facts import LOG, Facts
from flatline.judging.cut_off import RESTORES
from flatline.judging.frames import above
from flatline.model import NOWHERE, Crash, LogCite

TAIL = 120
"""Lines before the end of a log: thirty frames with their code and marks."""
MOST_LOGS = 64
_STOPPED = re.compile(r"\b(?:breakpoint|set_trace)\(")


def headless(facts: Facts) -> Crash | None:
    """The traceback in whose midst the earliest log ends, its head cut off as well; None where a
    log ends otherwise, or a traceback with a head reaches there."""
    if facts.disposition not in ("unknown", "failed") or facts.end_seen:
        return None
    cut = [crash for read in facts.log_files(LOG)[:MOST_LOGS]
           if (crash := _at_the_end(facts, read.source)) is not None]  # fmt: skip
    first = facts.earliest(crash.cite for crash in cut)
    return next((crash for crash in cut if crash.cite == first), None)


def _at_the_end(facts: Facts, source: str) -> Crash | None:
    last = facts.last_lines.get(source)
    if last is None:
        return None
    begin = max(1, last.line - TAIL + 1)
    lines = facts.lines(source, begin, last.line - begin + 1)
    frames = above(lines)
    if not frames:
        return None
    named = f'"{frames[0].file}", line {frames[0].line}'
    at = max((n for n, text in enumerate(lines, begin) if named in text), default=begin)
    # below any other line it may be a stack that was only listed, whose heads are of many kinds
    inside = at == 1 or (at == 2 and RESTORES.match(facts.text(source, 1)))
    if not inside or not all(f.function for f in frames) or _STOPPED.search(frames[-1].code or ""):
        return None
    if any(c.end_line >= at for c in facts.crashes if c.cite.source == source):
        return None
    head = LogCite(source, at, facts.text(source, at), last.place or NOWHERE, last.at)
    return Crash("", "", frames, last, head, (), False, last.line, attempt=facts.last.n)
