"""How far an earlier run had come, by the tracker of experiments that this one logs on to."""

from __future__ import annotations

import re

from flatline.facts import Facts, Point
from flatline.model import LogCite

LEAST, SHARE = 1000, 0.5
"""Steps that it had come to: fewer are another counter's, as are those that this run is near."""
ABOVE, BELOW = 400, 40
"""Lines before and behind the first step in which it tells."""
UNSAVED = "Whether the earlier run had saved anything to go on from: its own log would tell."
_TOLD = (
    re.compile(r"\bwandb: Resuming run \S{1,120} .{0,40}\bstep:? (\d{4,12})\b"),
    re.compile(
        r"\bwandb: WARNING .{0,60}\b[Ss]tep:? \d{1,12} (?:is less than current step:|that is less"
        r" than the current step|<) (\d{4,12})\b"
    ),
)
"""Weights & Biases: as it is told to resume, and where a step is logged that it had before."""


def tracked_before(facts: Facts, first: Point) -> LogCite | None:
    """The line that tells so, where this run begins far below."""
    track = first.track
    start = max(1, first.cite.line - ABOVE)
    if first.step is None:
        return None
    count = first.cite.line + BELOW - start
    for line, text in enumerate(facts.lines(track.source, start, count), start):
        found = next(filter(None, (one.search(text) for one in _TOLD)), None)
        if found is not None and int(found[1]) >= max(LEAST, first.step / SHARE):
            return LogCite(track.source, line, text, track.place)
    return None
