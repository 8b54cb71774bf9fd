"""
The run that this one may go on from: an earlier job of the same name that was not done, but for
an end that says that it goes on.

Jobs that need longer than a time limit are run as a chain: each goes on from the checkpoint that
the one before it saved.  It is read only where this run says that it found no checkpoint, or that
it goes on from that job.  One on record as completed may have left of itself, in time for the
limit: what it printed tells.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta

from flatline.errors import FlatlineError
from flatline.facts import Facts
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
_GOES_ON = re.compile(
    r"(?i)[-_.](?:cont(?:inue[ds]?|inuation)?|resume[ds]?|restart(?:ed)?|(?:part|chunk|seg)[-_.]?\d{1,3})$"
)
"""What is put behind the name of the job that one goes on from."""
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
        and other.name in (job.name, _GOES_ON.sub("", job.name))
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
    return None


def lay_before(facts: Facts, targets: Sequence[str], parent: Job, other: Other) -> None:
    """The earlier run, collected as any other of the same targets; its gaps stay its own."""
    span = parent.started_at, parent.ended_at
    try:
        run = other(tuple(targets), parent.id, span, "")
    except FlatlineError as fault:
        if parent.disposition != "completed":
            facts.missed.append(Gap(EARLIER, str(fault), f"job {parent.id}"))
        return
    if parent.disposition != "completed" or parent.ran_to_its_limit or _left_of_itself(run):
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
