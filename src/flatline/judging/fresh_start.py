"""
A run that finds no checkpoint: the first of a chain, as far as is known, or one that was to go on
from what the job before it saved.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from flatline.facts import Facts, Marker

LOOKED_BACK = 400
"""Lines before a checkpoint is looked for in which settings are printed."""
_EARLIER = re.compile(
    r"(?i)\bresum(?:e|es|ed|ing)\b(?!\W{1,60}(?:none|false|auto)\b)|RESTART_COUNT[=: ]+[1-9]"
    r"|\bprevious(?:ly)?\b|\bcontinu(?:ing|es|ation of) (?:\w+ )?(?:job|run)\b"
    r"|consumed_(?:train_)?samples[ .:=]+[1-9]|\biter_\d{5,}\b"
    r"|(?:pretrained|finetune|exit_on_missing)\w*[ .:=]+(?:True|/)"
)
"""What tells of an earlier run."""
_LATER = re.compile(
    r"(?i)(?:part|chunk|seg|cont|resume|restart|run)[-_.]?(?:[2-9]|\d\d)\b|-r[2-9]\b"
)
_LOAD = re.compile(r"\s{0,4}load \.{5,80} (/\S{1,400})")
"""Where Megatron looks for a checkpoint, as it prints its settings."""


def begins_where_it_saves(facts: Facts) -> bool:
    """Whether the run found no checkpoint in the very folder it saves to, as the first of jobs
    that go on from one another does, and none is known before it."""
    job = facts.job
    if (
        facts.last.n > 0
        or len(facts.jobs) > 1
        or facts.parent is not None
        or (job and (job.dependency or job.restarts))
    ):
        return False
    if job and job.name and _LATER.search(job.name):
        return False
    fresh = [m for m in facts.markers_of("fresh") if m.progress.step is None]
    if any(_EARLIER.search(text) for marker in fresh for text in _above(facts, marker)):
        return False
    saved = facts.markers_of("checkpoint_saved")
    places = [_looked_in(facts, marker) for marker in fresh]
    return bool(places) and all(
        place and any(_names(marker, place) for marker in saved) for place in places
    )


def left_by_parent(facts: Facts) -> Marker | None:
    """
    The checkpoint that an unfinished job before this one saved, where this one is to do the same
    steps and looked for one.

    Who ended a run, or mended it, may well begin anew, in another folder: then it counts only
    where this one looked in the very folder it was saved to.
    """
    parent = facts.parent
    fresh = [m for m in facts.markers_of("fresh") if m.progress.step is None]
    if parent is None or not fresh:
        return None
    saved = [m for m in parent.markers_of("checkpoint_saved") if (m.progress.step or 0) > 0]
    plans = {parent.planned_steps, facts.planned_steps} - {None}
    if not saved or len(plans) > 1:
        return None
    places = [place for marker in fresh if (place := _looked_in(facts, marker))]
    there = any(_names(saved[-1], place) for place in places)
    return saved[-1] if there or parent.disposition not in ("failed", "cancelled") else None


def _names(saved: Marker, place: str) -> bool:
    return re.search(rf"(?<![\w./-]){re.escape(place)}(?![\w.-])", saved.cite.text) is not None


def _looked_in(facts: Facts, marker: Marker) -> str | None:
    """The folder that the settings printed before it say it looks in."""
    named = [found[1] for line in _above(facts, marker) if (found := _LOAD.match(line))]
    return named[-1].rstrip("/") if named else None


def _above(facts: Facts, marker: Marker) -> Sequence[str]:
    first = max(1, marker.cite.line - LOOKED_BACK)
    return facts.lines(marker.cite.source, first, marker.cite.line - first)
