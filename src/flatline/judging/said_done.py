"""
Whether a program had said that it was done before something was told of it.

What fails while the result of a run is uploaded cost no training: the program said that it was
done, and the result was saved behind the last step.
"""

from __future__ import annotations

import re
from dataclasses import replace

from flatline.facts import Facts
from flatline.model import Crash, Finding, LogCite

SENDS = ("A3", "C5", "C6")
"""Families of what may fail while something is sent."""
OTHERS = ("A2", "B1", "B2", "C1", "C2", "E1", "E2", "F1", "F2", "F3")
"""Families of what is no failure of sending, whatever came before."""
_SENDING = re.compile(r"(?i)(?<![a-z])upload|push_to_hub|(?<![a-z])publish|\brsync\b")
"""In the failure's own words and frames: what is printed around it may be another's."""


def once_done(facts: Facts, cite: LogCite, attempt: int) -> LogCite | None:
    """The line by which the program, or its framework, had said before in the same file that it
    was done, where no further steps were made."""
    said = facts.memo("said done", _said_done).get((cite.source, attempt))
    return said if said is not None and said.line < cite.line else None


def sent_in_vain(facts: Facts) -> tuple[LogCite, LogCite] | None:
    """The word that it was done, and the first failure behind it, where all that is told of
    failures in the last attempt is that its saved result could not be sent."""
    return facts.memo("sent in vain", _sent_in_vain)


def once_sent(facts: Facts, finding: Finding) -> Finding:
    """The finding as a warning where it is of that alone."""
    known = sent_in_vain(facts) if finding.code in SENDS and finding.role == "cause" else None
    lines = [cite for cite in finding.cites if isinstance(cite, LogCite)]
    if known is None or not any(cite.line > known[0].line for cite in lines):
        return finding
    return replace(finding, role="warning", severity="warning", ended_run=False)


def _sent_in_vain(facts: Facts) -> tuple[LogCite, LogCite] | None:
    n, track = facts.last.n, facts.main_track(facts.last.n)
    roots = [m for m in facts.of_role("root") if m.attempt == n]
    crashes = [crash for crash in facts.crashes if crash.attempt == n and not crash.caught]
    told = [m.cite for m in roots] + [crash.cite for crash in crashes]
    if track is None or not told or (facts.stops_short and facts.last_step is not None):
        return None
    if any(m.signature.family in OTHERS for m in roots) or not all(map(_sends, crashes)):
        return None
    own = {(crash.cite.source, crash.cite.line) for crash in crashes}
    if any((c.source, c.line) not in own and not _SENDING.search(c.text) for c in told):
        return None
    done = [once_done(facts, cite, n) for cite in told]
    first = min((cite for cite in done if cite is not None), key=lambda c: c.line, default=None)
    if first is None or None in done:
        return None
    made, failed = track.lines[track.of_attempt(n)[-1]], min(told, key=lambda cite: cite.line)
    saved = (m.cite.line for m in facts.markers_of("checkpoint_saved")
             if m.attempt == n and m.cite.source == track.source == first.source)  # fmt: skip
    return (first, failed) if any(made <= line < failed.line for line in saved) else None


def _sends(crash: Crash) -> bool:
    """Whether a traceback is of something that was being sent, by its own words."""
    frames = (text for f in crash.frames for text in (f.file, f.function, f.code or ""))
    return any(map(_SENDING.search, (crash.exception, crash.message, *frames)))


def _said_done(facts: Facts) -> dict[tuple[str, int], LogCite]:
    """The first such line of each file and attempt."""
    said = [(m.cite, m.attempt) for m in facts.tagged("end-ok")]
    said += [(m.cite, m.attempt) for m in facts.markers_of("finished")]
    first: dict[tuple[str, int], LogCite] = {}
    for cite, attempt in sorted(said, key=lambda one: -one[0].line):
        if not facts.went_on(cite, attempt):
            first[cite.source, attempt] = cite
    return first
