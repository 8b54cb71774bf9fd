"""A rerun whose lines count epochs and no steps, behind one that the scheduler took back."""

from __future__ import annotations

from bisect import bisect_left
from math import isfinite

from flatline.facts import Facts, Marker, Point

FIRST, FAR = 1, 2
"""Epochs are counted from 0 or 1: a run that begins there has gone on from none of `FAR`."""
TAKEN = ("preempted", "requeued", "timeout", "node_fail")
"""What ends a try that is to go on; folds and stages end of themselves and begin at their first
epoch as well, and whoever mends a run may begin it anew."""


def left_behind(facts: Facts, first: Point) -> Marker | None:
    """The last checkpoint of the try before this one, saved behind an epoch that it had come to
    without a new beginning, where this one begins with its first."""
    epoch = first.track.epoch[first.index]
    anew = first.step is None and epoch <= FIRST
    tries = {a.n: a for a in facts.attempts}
    before = tries.get(facts.last.n - 1)
    if not anew or before is None or before.disposition not in TAKEN:
        return None
    if any(m.attempt == facts.last.n for m in facts.markers_of("resume", "checkpoint_loaded")):
        return None
    saved = [m for m in facts.markers_of("checkpoint_saved") if m.attempt == before.n]
    return next((m for m in reversed(saved) if _of_a_late_epoch(facts, m)), None)


def _of_a_late_epoch(facts: Facts, saved: Marker) -> bool:
    for track in facts.tracks:
        if track.source != saved.cite.source or any(step >= 0 for step in track.steps):
            continue
        span = track.of_attempt(saved.attempt)
        made = [track.epoch[i] for i in span if isfinite(track.epoch[i])]
        above = [track.epoch[i] for i in span
                 if track.lines[i] < saved.cite.line and isfinite(track.epoch[i])]  # fmt: skip
        if above and FAR <= above[-1] <= made[-1]:
            return True
    return False


def goes_back(facts: Facts, looked: Marker) -> bool:
    """Whether the first count behind the line that none was found is below one above it."""
    for track in facts.tracks:
        at = bisect_left(track.lines, looked.cite.line)
        if track.source != looked.cite.source or not 0 < at < len(track):
            continue
        steps = any(step >= 0 for step in track.steps)
        counts = track.steps if steps else track.epoch
        above = max((n for n in counts[:at] if n >= 0), default=-1)
        below = next((n for n in counts[at:] if n >= 0), above)
        if below < above:
            return True
    return False
