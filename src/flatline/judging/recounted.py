"""A resume that brought the weights, not the count of steps nor what hangs on it."""

from __future__ import annotations

import re

from flatline.facts import Facts, Marker, Point

_LAST_NUMBER = re.compile(r"[/\\_-]0*([1-9]\d{0,8})(?:\.\w{1,12})?[/\\]?['\"]?\s*$")
LEAST = 100
"""A step below which a number in a path may be an epoch."""
PART = 0.5
"""Of the step, and of the learning rate: one that goes on has about those it had."""


def recounted(facts: Facts, first: Point) -> tuple[Marker, Point] | None:
    """
    The line that names the checkpoint, and the last step before, where the same stream had come
    to about that step of as many, and now counts from the beginning in its warm-up.

    A bar of each epoch begins anew as well, at the learning rate it had.
    """
    track, at = first.track, first.index
    before = [i for n in range(facts.last.n) for i in track.of_attempt(n) if track.steps[i] > 0]
    if not before or first.step is None:
        return None
    far = before[-1]
    every = max(track.steps[far] - track.steps[before[-2]], 1) if len(before) > 1 else 1
    for marker in facts.markers_of("resume"):
        named = _LAST_NUMBER.search(marker.cite.text)
        step = int(named[1]) if named else marker.progress.step or 0
        if marker.attempt != facts.last.n or step < LEAST or first.step >= PART * step:
            continue
        near = PART * track.steps[far] <= step <= track.steps[far] + every
        if near and track.lr[at] < PART * track.lr[far]:
            return marker, facts.point(track, far)
    return None
