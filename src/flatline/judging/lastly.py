"""What the log says last, for a verdict that can say no more."""

from __future__ import annotations

import re

from flatline.facts import LOG, Facts, FileRead
from flatline.judging.claims import claim
from flatline.model import Claim, LogCite

_WORD = re.compile(r"\w")
LINES, LOOKED_AT = 3, 40
"""Lines that are shown, and how far back they are looked for behind blank ones."""


def speaking(facts: Facts) -> FileRead | None:
    """The log of the stream that speaks for the run, or the longest without one."""
    track = facts.main_track()
    logs = [file for file in facts.files if file.kind == LOG]
    spoken = [file for file in logs if track is not None and file.source == track.source]
    return max(spoken or logs, key=lambda file: file.lines, default=None)


def lastly(facts: Facts) -> tuple[Claim, ...]:
    """The last lines of the stream that speaks for the run."""
    chosen = speaking(facts)
    if chosen is None:
        return ()
    first = max(1, chosen.lines + 2 - LOOKED_AT)
    numbered = enumerate(facts.lines(chosen.source, first, LOOKED_AT), first)
    last = [number for number, text in numbered if _WORD.search(text)][-LINES:]
    cites = [LogCite(chosen.source, n, text) for n in last
             if (text := facts.text(chosen.source, n)).strip()]  # fmt: skip
    return (claim("The log ends so; nothing in it was decisive", *cites),) if cites else ()
