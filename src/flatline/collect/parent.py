"""
The run that this one may go on from: an earlier job of the same name that was not done, but for
an end that says that it goes on.

Jobs that need longer than a time limit are run as a chain: each goes on from the checkpoint that
the one before it saved.  It is read where this run says that it found no checkpoint, or that it
goes on from that job, and where it may have been left for this one, of the same shape and soon
behind it, to go on with.  One on record as completed may have left of itself, in time for the
limit: what it printed tells.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta

from flatline.errors import FlatlineError
from flatline.facts import Facts
from flatline.judging.begun_alike import ALONE, GOES_ON, may_follow
from flatline.judging.fresh_start import goes_on_from, handed_on
from flatline.model import Gap, Job
from flatline.tracks import EARLIER

BACK = timedelta(days=14)
"""How long before: beyond it a run of the same name is another experiment's."""
UNFINISHED = frozenset(
    ("timeout", "deadline", "preempted", "node_fail", "out_of_memory", "failed", "cancelled")
)
NO_NAMES = frozenset(("bash", "sh", "zsh", "interactive", "wrap", "python", "test", "debug"))
"""What jobs are called that nobody named."""
_DONE = re.compile(r"(?i)\b(?:completed?|finished|done|early)\b")
Span = tuple[datetime | None, datetime | None]
Other = Callable[[tuple[str, ...], str | None, Span, str], Facts]
"""Collects another run: of these targets, this job, in that span, under that origin."""


def left_unfinished(job: Job | None, known: Iterable[Job]) -> Job | None:
    """The last job of the same name and user before this one, where it may have been left
    unfinished; None where no record tells."""
    began = None if job is None else job.started_at or job.submitted_at
    if job is None or began is None or not job.name or job.name.lower() in NO_NAMES:
        return None
    before = [
        other
        for other in known
        if other.id != job.id
        and other.user == job.user
        and other.name in (job.name, GOES_ON.sub("", job.name))
        and other.ended_at is not None
        and other.ended_at <= began
        and began - other.ended_at <= BACK
    ]
    last = max(before, key=lambda other: str(other.ended_at), default=None)
    return last if last is not None and last.disposition in (*UNFINISHED, "completed") else None


def to_be_read(facts: Facts, known: Iterable[Job]) -> Job | None:
    """The job that this one goes on from, where there is a reason to read it."""
    parent = left_unfinished(facts.job, known)
    if parent is None or facts.markers_of("fresh") or goes_on_from(facts, parent.id):
        return parent
    told = facts.markers_of("resume", "checkpoint_loaded")
    silent = not told and facts.has_progress and _followed(facts, parent, known)
    return parent if silent else None


def _followed(facts: Facts, parent: Job, known: Iterable[Job]) -> bool:
    """Whether this run is what came next behind that job, and no other of the name, of a sweep,
    ran at the time of either."""
    job = facts.job
    if job is None or not may_follow(job, parent):
        return False
    others = (one for one in known if one.id not in (job.id, parent.id)
              and one.user == job.user and one.name in (job.name, parent.name))  # fmt: skip
    return not any(_beside(one, run) for one in others for run in (job, parent))


def _beside(one: Job, other: Job) -> bool:
    if one.started_at is None or other.started_at is None:
        return False
    ended = one.ended_at if one.started_at <= other.started_at else other.ended_at
    return ended is None or ended > max(one.started_at, other.started_at)


def lay_before(
    facts: Facts, targets: Sequence[str], parent: Job, known: Iterable[Job], other: Other
) -> None:
    """The earlier run, collected as any other of the same targets; its gaps stay its own."""
    span = parent.started_at, parent.ended_at
    try:
        run = other(tuple(targets), parent.id, span, "")
    except FlatlineError as fault:
        if parent.disposition != "completed":
            facts.missed.append(Gap(EARLIER, str(fault), f"job {parent.id}"))
        return
    if parent.disposition != "completed" or parent.ran_to_its_limit or _left_of_itself(run):
        run.chosen = ALONE if _followed(facts, parent, known) else ""
        facts.parent = run


def _left_of_itself(run: Facts) -> bool:
    """Whether it said that the next job goes on, or saved its last step, short of its plan, and
    said no more of its end than at which step it left: a loop that stops early, as it learns no
    more, says that it is done."""
    if handed_on(run):
        return True
    saved, ends = run.markers_of("checkpoint_saved"), run.markers_of("finished")
    plan, kept = run.planned_steps, max((m.progress.step or 0 for m in saved), default=0)
    if plan is None or run.last_step is None or not run.last_step <= kept < plan:
        return False
    left = all(m.progress.step and not _DONE.search(m.cite.text) for m in ends)
    return run.stops_short or (bool(ends) and left)
