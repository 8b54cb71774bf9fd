"""
Which run this one is compared with: the one that is named, else the last that completed.

Without a name it is the last completed run of the same job name, with as many nodes and GPUs,
that ended before this one began: of the records that lie there, or of Slurm's accounting where the
target is a job id.  The verdict says so; nothing is compared silently.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from flatline.collect.live import JOB_ID
from flatline.collect.parent import Other, Span
from flatline.errors import FlatlineError, FormatError, ManyJobs, SourceError, UsageError
from flatline.facts import Facts
from flatline.model import Gap, Job
from flatline.parsers import parsed, record_format_of
from flatline.redact import mask
from flatline.signals import PACE
from flatline.sources import slurm
from flatline.tracks import BASELINE

BACK = timedelta(days=14)
"""How far back accounting is asked for an earlier run: beyond it software and nodes are others."""
FOUND = "found by itself in accounting"


@dataclass(frozen=True, slots=True)
class Chosen:
    """The run to compare with, and how it came to be that one."""

    targets: tuple[str, ...]
    job: str | None
    how: str
    said: str
    """What a person calls it."""
    within: Span = (None, None)
    """When it ran, where accounting tells: one folder of metrics may hold both."""


def named_baseline(target: str) -> Chosen:
    """The one the caller names."""
    return Chosen((target,), None, "named with --baseline", mask(target))


def sought(targets: Sequence[str], job: Job | None, known: Iterable[Job]) -> Chosen | None:
    """The last completed run of the same name and shape; None where the records know of none."""
    if job is None or not job.name:
        return None
    live = bool(targets) and not _has_files(targets)
    earlier = earlier_run(job, _accounted(job) if live else known)
    if earlier is None:
        return None
    shape = f"{earlier.node_count} nodes" if earlier.node_count != 1 else "1 node"
    gpus = f" and {earlier.gpus} GPUs" if earlier.gpus else ""
    how = (
        f"{FOUND}: job {earlier.id} is the last completed run called"
        f" {mask(earlier.name or '')!r} on {shape}{gpus} before this one"
    )
    named = (earlier.id,) if live else tuple(targets)
    within = earlier.started_at, earlier.ended_at
    return Chosen(named, earlier.id, how, f"job {earlier.id}", within)


def earlier_run(job: Job, known: Iterable[Job]) -> Job | None:
    """
    The last run of the same name, nodes and GPUs that completed before this job began.

    A shape that is not known is no shape: nothing is compared by a guess.
    """
    began = job.started_at or job.submitted_at
    if began is None or not job.name or job.node_count is None:
        return None
    alike = [
        other
        for other in known
        if other.id != job.id
        and other.disposition == "completed"
        and (other.name, other.node_count, other.gpus) == (job.name, job.node_count, job.gpus)
        and other.ended_at is not None
        and other.ended_at <= began
        and other.user in (None, job.user)
    ]
    return max(alike, key=lambda other: str(other.ended_at), default=None)


def _has_files(targets: Sequence[str]) -> bool:
    return any(JOB_ID.fullmatch(name) is None or Path(name).exists() for name in targets)


def _accounted(job: Job) -> tuple[Job, ...]:
    """The user's jobs of the days before, as accounting has them; none where it does not say."""
    began = job.started_at or job.submitted_at
    if began is None or not job.user or not slurm.available():
        return ()
    try:
        told = slurm.fetch_window(began - BACK, began, (job.user,))
        form = record_format_of(told.name, told.data)
        return parsed(form, told.data, told.name).jobs if form is not None else ()
    except (SourceError, FormatError):
        return ()


def lay_beside(facts: Facts, chosen: Chosen, other: Other, *, named: bool) -> None:
    """The run that is compared with, collected as any other; its gaps stay its own.  Raises
    `UsageError` where the caller `named` one that cannot be told."""
    try:
        facts.baseline = other(chosen.targets, chosen.job, chosen.within, BASELINE)
    except ManyJobs as fault:
        ids = ", ".join(job for job, _, _ in fault.jobs[:8])
        raise UsageError(
            f"--baseline: it holds records of {len(fault.jobs)} jobs ({ids}); name the log or the"
            " folder of one of them, or its job id where Slurm is"
        ) from fault
    except FlatlineError as fault:
        if named and isinstance(fault, UsageError):
            raise UsageError(f"--baseline: {fault}") from fault
        facts.missed.append(Gap("a comparison with a baseline", str(fault), chosen.said))
        return
    facts.baseline.chosen = chosen.how
    lacking = _lacking(facts.baseline, chosen.said)
    if len(lacking) > 1 and not named:  # a record of it, and nothing else
        facts.baseline = None
        return
    facts.missed += lacking


def _lacking(baseline: Facts, said: str) -> list[Gap]:
    """What the baseline lacks as a whole: nothing is told apart, or cleared, by its silence."""
    need = "a comparison with a baseline"
    lacking = []
    if not baseline.has_progress and not any(map(baseline.measured, PACE)):
        lacking.append(Gap(need, "the baseline prints no training progress", said))
    if baseline.window is None:
        lacking.append(Gap(need, "the baseline holds no metrics", said))
    return lacking
