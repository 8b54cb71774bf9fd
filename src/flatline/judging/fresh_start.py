"""A run that finds no checkpoint where it saves: the first of a chain, as far as is known."""

from __future__ import annotations

import re

from flatline.facts import Facts, Marker

LOOKED_BACK = 400
"""Lines before a checkpoint is looked for in which settings are printed."""
_LOAD = re.compile(r"\s{0,4}load \.{5,80} (/\S{1,400})")
"""Where Megatron looks for a checkpoint, as it prints its settings."""


def begins_where_it_saves(facts: Facts) -> bool:
    """Whether the run found no checkpoint in the very folder it saves to, as the first of jobs
    that go on from one another does, and none is known before it."""
    job = facts.job
    if facts.last.n > 0 or len(facts.jobs) > 1 or (job and (job.dependency or job.restarts)):
        return False
    fresh = [m for m in facts.markers_of("fresh") if m.progress.step is None]
    saved = [m.cite.text for m in facts.markers_of("checkpoint_saved")]
    places = [_looked_in(facts, marker) for marker in fresh]
    return bool(places) and all(
        place and any(re.search(rf"(?<![\w./-]){re.escape(place)}(?![\w.-])", t) for t in saved)
        for place in places
    )


def _looked_in(facts: Facts, marker: Marker) -> str | None:
    """The folder that the settings printed before it say it looks in."""
    first = max(1, marker.cite.line - LOOKED_BACK)
    lines = facts.lines(marker.cite.source, first, marker.cite.line - first)
    named = [found[1] for line in lines if (found := _LOAD.match(line))]
    return named[-1].rstrip("/") if named else None
