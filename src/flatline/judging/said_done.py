"""
Whether a program had said that it was done before something was told of it.

What fails while the result of a run is uploaded cost no training: all planned steps were made, the
program said so, and the result lies where it was saved.
"""

from __future__ import annotations

import re
from dataclasses import replace

from flatline.facts import Facts
from flatline.model import Finding, LogCite

SENDS = ("A3", "C5", "C6")
"""Families of what may fail while something is sent."""
OTHERS = ("A2", "B1", "B2", "C1", "C2", "E1", "E2", "F1", "F2", "F3")
"""Families of what is no failure of sending, whatever came before."""
BETWEEN = 40
"""Lines behind the word that it is done, up to the failure, that are read for what it was at."""
_SENDING = re.compile(
    r"(?i)\bupload\w*|\bpush(?:ing|_to_hub|ed)?\b|\bpublish\w*|\bs3\b|\bgs://|\bs3://|artifacts?\b"
    r"|huggingface_hub|\brsync\b|\bcopying\b[^\n]{0,60}\bto\b"
)


def once_done(facts: Facts, cite: LogCite, attempt: int) -> LogCite | None:
    """The line by which the program, or its framework, had said before in the same file that it
    was done, where no further steps were made."""
    said = facts.memo("said done", _said_done).get((cite.source, attempt))
    return said if said is not None and said.line < cite.line else None


def sent_in_vain(facts: Facts) -> LogCite | None:
    """The word that it was done, where all that is told of failures in the last attempt is that
    its saved result could not be sent."""
    return facts.memo("sent in vain", _sent_in_vain)


def once_sent(facts: Facts, finding: Finding) -> Finding:
    """The finding as a warning where it is of that alone."""
    done = sent_in_vain(facts) if finding.code in SENDS and finding.role == "cause" else None
    lines = [cite for cite in finding.cites if isinstance(cite, LogCite)]
    if done is None or not any(cite.line > done.line for cite in lines):
        return finding
    return replace(finding, role="warning", severity="warning", ended_run=False)


def _sent_in_vain(facts: Facts) -> LogCite | None:
    n = facts.last.n
    roots = [m for m in facts.of_role("root") if m.attempt == n]
    told = [m.cite for m in roots]
    told += [crash.cite for crash in facts.crashes if crash.attempt == n and not crash.caught]
    if not told or any(m.signature.family in OTHERS for m in roots):
        return None
    if facts.stops_short and facts.last_step is not None:
        return None
    done = [once_done(facts, cite, n) for cite in told]
    first = min((cite for cite in done if cite is not None), key=lambda c: c.line, default=None)
    if first is None or None in done:
        return None
    failed = min(cite.line for cite in told if cite.source == first.source)
    count = min(failed - first.line + 1, BETWEEN)
    between = (*facts.lines(first.source, failed - count + 1, count), *(c.text for c in told))
    saved = any(m.attempt == n and m.cite.source == first.source and m.cite.line < failed
                for m in facts.markers_of("checkpoint_saved"))  # fmt: skip
    return first if saved and any(map(_SENDING.search, between)) else None


def _said_done(facts: Facts) -> dict[tuple[str, int], LogCite]:
    """The first such line of each file and attempt."""
    said = [(m.cite, m.attempt) for m in facts.tagged("end-ok")]
    said += [(m.cite, m.attempt) for m in facts.markers_of("finished")]
    first: dict[tuple[str, int], LogCite] = {}
    for cite, attempt in sorted(said, key=lambda one: -one[0].line):
        if not facts.went_on(cite, attempt):
            first[cite.source, attempt] = cite
    return first
