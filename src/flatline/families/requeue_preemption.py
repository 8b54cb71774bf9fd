"""
The scheduler took the run back: it was requeued or preempted.

Symptom:
    The accounting holds several rows for one job id, or PREEMPTED or REQUEUED; the log says that
    the job was cancelled due to preemption, or starts again from the top.

Mechanism:
    A job of higher priority, an operator, or the requeue of a failed node sends the job back to
    the queue.  The tear-down of the first try is not a crash.

Told apart from:
    F1 node-down: the requeue follows a node that failed.
    E2 resume-from-scratch: the rerun did not go on from the last checkpoint.
    A2, A3, B1, B2: the try had failed before it was put back.

Do:
    Nothing where the rerun went on from a checkpoint; else resubmit.  Save checkpoints on the
    signal the scheduler sends before it takes the nodes (--signal).

References:
    Slurm documentation: preemption, scontrol requeue, JobRequeue.
"""

from __future__ import annotations

from flatline.facts import Facts
from flatline.judging.by_epochs import goes_back
from flatline.judging.claims import claim
from flatline.judging.crashes import Failure, failures
from flatline.judging.dated_beside import dated_beside
from flatline.model import Action, Cite, Cleared, Finding, Judgement, Match, Resubmit

CODE = "F2"
NAME = "requeue-preemption"
NEEDS = ("scheduler records",)
DECIDED_BY = "the record of the requeue or preemption (sacct --duplicates)"
EXPLAINS = {
    "A2": "the scheduler ends every task of a job it takes back",
    "C2": "tasks ended one after the other lose their peers",
    "A3": "a task that is being ended raises errors about its peers",
}


FAILED = 0.6
"""A weaker sign of a failure may be of the tear-down, as an exception that no signature knows: a
queue that ends raises as well."""
FOUND_NONE = 0.79
ANEW = "Whether a checkpoint was there: the rerun says that it found none, and began anew."


def judge(facts: Facts) -> Judgement:
    """Only the scheduler's own word counts: a record, or its line in the log."""
    job = facts.job
    lines = [*facts.standing("preempted"), *facts.standing("requeued")]
    lines += [m for m in dated_beside(facts, "preempted") if m not in lines]
    taken = [r for r in facts.jobs if r.disposition in ("preempted", "requeued")]
    again = len(facts.jobs) > 1 or bool(job and job.restarts)
    if not (lines or taken or again):
        if job is None:
            return None
        return Cleared(CODE, "one accounting row, no requeue and no preemption", (job.cite,))
    if (failed := _failed_first(facts, lines)) is not None:
        text = f"the try had failed before it was put back into the queue: {failed.what}"
        return Cleared(CODE, text, (failed.cite, *(m.cite for m in lines[:1])))
    cites: list[Cite] = [match.cite for match in lines[:3]]
    cites += [row.cite for row in (taken or list(facts.jobs))[:4]]
    preempted = any(r.disposition == "preempted" for r in taken) or bool(facts.tagged("preempted"))
    fate, resubmit = _fate(facts)
    word = "preempted" if preempted else "requeued"
    ended = facts.disposition in ("preempted", "requeued")
    rerun = not ended and facts.disposition != "pending" and len(facts.attempts) > 1
    doubts = (ANEW,) if _begun_anew(facts) else ()
    return Finding(
        code=CODE,
        summary=f"The scheduler {word} the run; {fate}",
        fault_class=word,
        attribution="scheduler",
        strength=0.9,
        most=FOUND_NONE if rerun and doubts else 1.0,
        severity="fatal" if ended else "warning",
        shows=(claim(f"The scheduler {word} the run", *cites),),
        implies=(claim("The tear-down of that try was the scheduler's doing, not a crash.",
                       *cites[:2]),),
        scope="none",
        onset=next((r.ended_at for r in (taken or list(facts.jobs)) if r.ended_at), None),
        order=(lines[0].cite.source, lines[0].cite.line) if lines else None,
        attempt=facts.last.n - rerun,  # what became of the rerun is its own doing
        ended_run=ended,
        cannot_decide=(
            "Why it was taken back: the controller's log would tell.",
            *(doubts if rerun else ()),
        ),
        actions=(Action("watch", "See whether the rerun went on from the last checkpoint."),),
        resubmit=resubmit,
    )  # fmt: skip


def _failed_first(facts: Facts, lines: list[Match]) -> Failure | None:
    """What ended a try, said above the line that puts the job back: `#SBATCH --requeue`, a script
    or a person does so with a run that failed.  One that is preempted is ended by that."""
    if not lines or any({"preempted", "node-failure"} & {*m.signature.tags} for m in lines):
        return None
    below = {(m.cite.source, m.attempt): m.cite.line for m in lines}
    return next(
        (
            f
            for f in failures(facts)
            if f.fatal and f.signature is not None and f.strength >= FAILED
            and f.cite.line < below.get((f.cite.source, f.attempt), 0)
        ),
        None,
    )  # fmt: skip


def _begun_anew(facts: Facts) -> bool:
    """Whether the rerun looked for a checkpoint in vain and stands below what was made before."""
    made = [a.last_step for a in facts.attempts[:-1] if a.last_step is not None]
    looked = [m for m in facts.markers_of("fresh")
              if m.attempt == facts.last.n and m.progress.step is None]  # fmt: skip
    first = facts.last.first_step
    back = bool(looked and made and first is not None and first < max(made))
    return back or any(goes_back(facts, marker) for marker in looked)


_FATES: dict[str, tuple[str, Resubmit]] = {
    "completed": ("the rerun completed", "unnecessary"),
    "running": ("the rerun is running", "wait"),
    "pending": ("the rerun is waiting in the queue", "wait"),
    "cancelled": ("the rerun was cancelled", "as_is"),
}


def _fate(facts: Facts) -> tuple[str, Resubmit]:
    last = facts.last
    if facts.disposition == "unknown" and len(facts.attempts) > 1 and last.last_step is not None:
        return f"the rerun came to step {last.last_step}", "unknown"
    return _FATES.get(facts.disposition, ("nothing read shows a rerun", "as_is"))
