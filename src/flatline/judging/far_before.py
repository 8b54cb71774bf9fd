"""How far the try had come that was before one which looked for a checkpoint in vain."""

from __future__ import annotations

import re
from math import isfinite
from pathlib import PurePosixPath
from statistics import median

from flatline.facts import Facts, Marker, Point
from flatline.judging.begun_alike import ALONE, FALL, LEFT, as_a_new_model
from flatline.judging.begun_alike import LAST as AT_ITS_END
from flatline.judging.fresh_start import AT_STEP, FILE, saved_steps
from flatline.judging.newly_asked import set_otherwise
from flatline.tracks import Track

FAR_EPOCHS = 2
"""An epoch before which no checkpoint need have been written: most programs write one an epoch."""
FAR_S = 12 * 3600.0
"""By the times of its steps: who saves anything has saved by then.  A judgement, for what may be
lost is seldom more than some hours."""
ANEW = 0.5
"""Of the step that a save was begun at: a first one below it goes on from no such save."""
BEGINS = 0.05
"""Of the steps that it made: what begins later has gone on itself, or its log is cut."""


def far_before(
    facts: Facts, first: Point, left: frozenset[int], fresh: list[Marker]
) -> Point | None:
    """The last point of a try that had not begun by looking for a checkpoint in vain, where this
    one did and is in its first epoch: the same log shows that one epochs into its training, or it
    went on behind a save, in whatever log, with as many steps to an epoch, or the scheduler ended
    it epochs after its beginning; or it began a save at a step that it had made, far beyond the
    first of this one; or it had half a day's steps of the same plan behind it.  Whether it had
    looked in vain as well is all one where it ended with a save in the very folder."""
    track, looked = first.track, [m for m in fresh if m.progress.step is None]
    tried = left - {m.attempt for m in facts.markers_of("fresh")}
    if not looked:
        return None
    if (far := _saved_there_as_it_ended(facts, first, left, looked)) is not None:
        return far
    saving = (_began_a_save(facts, first, n) for n in sorted(tried, reverse=True))
    if (far := next(filter(None, saving), None)) is not None:
        return far
    worked = (_worked_long(facts, first, n) for n in sorted(tried, reverse=True))
    if (far := next(filter(None, worked), None)) is not None:
        return far
    if not isfinite(track.epoch[first.index]) or track.epoch[first.index] > 1:
        return None
    before = [i for n in sorted(tried) for i in track.of_attempt(n) if isfinite(track.epoch[i])]
    if before and track.epoch[before[0]] >= FAR_EPOCHS:
        return facts.point(track, before[-1])
    if (far := _begun_again_by_scheduler(facts, first, tried)) is not None:
        return far
    alike = [t for t in facts.tracks if (t.format, t.per_epoch) == (track.format, track.per_epoch)]
    saved = (_behind_a_save(facts, t, n) for n in sorted(tried, reverse=True) for t in alike)
    return next(filter(None, saved), None) if track.per_epoch else None


def far_before_it(facts: Facts, first: Point, fresh: list[Marker]) -> Point | None:
    """The last point of the job before this one, which began at its own beginning, looked for
    nothing and was ended by its limit epochs into its training, where this one looked for a
    checkpoint in vain and began with the loss of a new model."""
    parent = facts.parent
    track = None if parent is None else parent.main_track(parent.last.n)
    looked = [m for m in fresh if m.progress.step is None]
    if parent is None or track is None or parent.chosen != ALONE or not looked:
        return None
    if parent.reached_plan or facts.reached_plan or parent.disposition not in LEFT - {"completed"}:
        return None
    if parent.markers_of("fresh", "resume", "checkpoint_loaded") or len(parent.attempts) > 1:
        return None
    span = track.of_attempt(parent.last.n)
    epochs = max((one.epoch[i] for one in parent.tracks for i in one.of_attempt(parent.last.n)
                  if isfinite(one.epoch[i])), default=0.0)  # fmt: skip
    begins = track.steps[span[0]] <= BEGINS * track.steps[span[-1]]
    if epochs < FAR_EPOCHS or not begins or saved_steps(parent):
        return None
    far = parent.point(track, span[-1])
    if first.step is None or first.step >= ANEW * (far.step or 0):
        return None
    anew = as_a_new_model(parent, looked[0], first)
    return None if anew is None or set_otherwise(facts, parent) else far


def _begun_again_by_scheduler(facts: Facts, first: Point, tried: frozenset[int]) -> Point | None:
    """Where the try before this one came to, whole epochs after its own beginning, where the
    record of the job says that it was queued again, so that nobody meant a new beginning, and the
    same log begins again with the loss of a new model."""
    track, before = first.track, facts.last.n - 1
    if before not in tried or facts.job is None or not facts.job.restarts:
        return None
    made = [i for i in track.of_attempt(before) if isfinite(track.epoch[i])]
    epochs = track.epoch[made[-1]] - track.epoch[made[0]] if made else 0.0
    steps = [track.loss[i] for i in made if isfinite(track.loss[i])]
    if epochs < FAR_EPOCHS or len(steps) <= AT_ITS_END:
        return None
    came_to, loss = median(steps[-AT_ITS_END:]), first.loss
    far_above = ANEW * max(steps[0] - came_to, FALL * abs(came_to))
    return facts.point(track, made[-1]) if loss - came_to > far_above else None


def _behind_a_save(facts: Facts, track: Track, attempt: int) -> Point | None:
    """Where a try came to that went on when a save had begun in its log: that one was whole."""
    begun = [m.cite.line for m in facts.tagged("save-begun")
             if m.attempt == attempt and m.cite.source == track.source]  # fmt: skip
    made = [i for i in track.of_attempt(attempt) if isfinite(track.epoch[i])]
    if not begun or not made or not begun[0] < track.lines[made[-1]]:
        return None
    return facts.point(track, made[-1])


def _saved_there_as_it_ended(
    facts: Facts, first: Point, left: frozenset[int], looked: list[Marker]
) -> Point | None:
    """The last point of the try before this one, epochs into its training, where the last it does
    is to begin a save in the folder that this one, in the same log, finds none in."""
    track, before = first.track, facts.last.n - 1
    made = [i for i in track.of_attempt(before) if isfinite(track.epoch[i])]
    begins = isfinite(track.epoch[first.index]) and track.epoch[first.index] <= 1
    if before not in left or not made or not begins or track.epoch[made[-1]] < FAR_EPOCHS:
        return None
    sought = {path.rstrip("/:,;") for m in looked for path in FILE.findall(m.cite.text)}
    for begun in facts.tagged("save-begun"):
        here = begun.attempt == before and begun.cite.source == track.source
        folders = {str(PurePosixPath(path).parent) for path in FILE.findall(begun.cite.text)}
        if here and begun.cite.line > track.lines[made[-1]] and folders & sought:
            return facts.point(track, made[-1])
    return None


def _began_a_save(facts: Facts, first: Point, attempt: int) -> Point | None:
    """The last step of a try in the same log before it began to save, where it names that step."""
    track = first.track
    for begun in facts.tagged("save-begun"):
        named = AT_STEP.search(begun.cite.text)
        if named is None or begun.attempt != attempt or begun.cite.source != track.source:
            continue
        made = [i for i in track.of_attempt(attempt) if track.lines[i] < begun.cite.line]
        far = made and track.steps[made[-1]] >= ANEW * int(named[1])
        if far and 0 <= track.steps[first.index] < ANEW * int(named[1]):
            return facts.point(track, made[-1])
    return None


def _worked_long(facts: Facts, first: Point, attempt: int) -> Point | None:
    """The last step of a try in the same log, whose line names the plan of this one, behind
    so much work: it went on from one before, or its beginning was cut off."""
    track, plan = first.track, first.track.planned
    made = track.of_attempt(attempt)
    took = [track.step_s[i] for i in made if isfinite(track.step_s[i])]
    if not plan or not took or first.step is None:
        return None
    begun, last = track.steps[made[0]], facts.point(track, made[-1])
    alike = re.search(rf"(?<![\d.]){plan}(?![\d.])", facts.text(track.source, last.cite.line))
    far = begun * median(took) >= FAR_S and ANEW * begun > first.step
    return last if far and alike else None
