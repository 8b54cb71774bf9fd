"""
The step of a job that trained, and ended well, where the job as a whole did not.

A job has the state of its script, whose last command may be a copy or a clean-up, and of any step
that ran beside the training: a monitor, a log shipper.  A step that began when training was over
is another part of the work, and nothing is said of it here.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import isfinite

from flatline.facts import Facts
from flatline.judging.claims import claim
from flatline.model import Claim, Job, RecordCite, Step

ENDED_BADLY = ("failed", "out_of_memory")
SLACK = timedelta(minutes=2)
"""By which clocks of hosts and of the controller differ."""
MOST_OF_IT = 0.9
"""Of the job, what the step that trained must have lasted where its log bears no times."""


@dataclass(frozen=True, slots=True)
class Trained:
    """The step that trained, what failed, and what of it cannot be decided."""

    shows: Claim
    what: str
    question: str | None


def trained_well(facts: Facts) -> Trained | None:
    """None unless the record says that this step completed, and the program that it was done."""
    job = facts.job
    if job is None or facts.disposition not in ENDED_BADLY or not _said_done(facts):
        return None
    step = _that_trained(facts, job)
    if step is None or step.ended_at is None:
        return None
    others = [one for one in job.steps if one.id.isdigit() and one is not step]
    if any(one.started_at is None or one.started_at >= step.ended_at for one in others):
        return None
    failed = [one for one in others if one.disposition not in ("completed", "running")]
    batch = [one for one in job.steps if one.id == "batch" and one.disposition in ENDED_BADLY]
    if not failed and not batch:
        return None
    text = f"Step {step.id} ({step.name}), which trained, is {step.state} on record"
    return Trained(
        claim(text, step.cite, *_cites(failed or batch), job.cite),
        f"step {failed[0].id} ({failed[0].name}) failed beside it" if failed
        else "its script failed behind it",
        None if failed else "What failed in its script once training was done.",
    )  # fmt: skip


def _cites(steps: list[Step]) -> tuple[RecordCite, ...]:
    return tuple(step.cite for step in steps[:1])


def _said_done(facts: Facts) -> bool:
    n = facts.last.n
    said = (*(m.attempt for m in facts.tagged("end-ok")),
            *(m.attempt for m in facts.markers_of("finished")))  # fmt: skip
    return n in said and not facts.stops_short


def _that_trained(facts: Facts, job: Job) -> Step | None:
    """The one completed step in whose time all dated training points lie, or, of a log without
    times, the one that lasted nearly all of the job."""
    sound = [step for step in job.steps
             if step.id.isdigit() and step.disposition == "completed" and not step.exit_code
             and step.started_at is not None and step.ended_at is not None]  # fmt: skip
    track = facts.main_track(facts.last.n)
    if track is None:
        return None
    times = [at for i in track.of_attempt(facts.last.n) if isfinite(at := track.at[i])]
    if times:
        first, last = (datetime.fromtimestamp(edge(times), UTC) for edge in (min, max))
        fits = [step for step in sound if _within(step, first, last)]
    elif job.started_at is not None and job.ended_at is not None:
        least = MOST_OF_IT * (job.ended_at - job.started_at)
        fits = [step for step in sound if _length(step) >= least]
    else:
        return None
    return max(fits, key=_length, default=None)


def _within(step: Step, first: datetime, last: datetime) -> bool:
    if step.started_at is None or step.ended_at is None:
        return False
    return step.started_at - SLACK <= first and last <= step.ended_at + SLACK


def _length(step: Step) -> timedelta:
    if step.started_at is None or step.ended_at is None:
        return timedelta(0)
    return step.ended_at - step.started_at
