"""What a program printed right above an exception that it raised without a word."""

from __future__ import annotations

import re

from flatline.facts import Facts
from flatline.judging.uncaught import late_class
from flatline.model import Crash, Match

SAID = "said-of-the-next"
ABOVE, READ = 3, 400
"""Lines of no traceback between the word and what is raised on it; lines that are looked through:
each rank of a host prints its own traceback in between."""
_RAISES = re.compile(r"\braise\b|\bassert\b")


def said_above(facts: Facts, crash: Crash) -> Match | None:
    """The line that says why, where the training program itself raised an exception without a
    message: what a data set raises so is of its samples."""
    if crash.message.strip() or not crash.complete or not crash.frames:
        return None
    if not _RAISES.search(crash.frames[-1].code or "") or late_class(crash) != "code":
        return None
    source, head = crash.head.source, crash.head.line
    told = {m.cite.line: m for m in facts.tagged(SAID)
            if m.cite.source == source and head - READ <= m.cite.line < head}  # fmt: skip
    if not told:
        return None
    inside = [range(c.head.line, c.end_line + 1) for c in facts.crashes
              if c.cite.source == source]  # fmt: skip
    left = ABOVE
    for line in range(head - 1, max(0, head - READ), -1):
        if any(line in block for block in inside) or not facts.text(source, line).strip():
            continue
        if line in told:
            return told[line]
        left -= 1
        if not left:
            return None
    return None
