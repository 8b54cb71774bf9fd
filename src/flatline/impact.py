"""What a fault cost, as far as records and logs tell."""

from __future__ import annotations

from flatline.facts import Facts
from flatline.judging.comparison import comparison
from flatline.judging.throughput import course
from flatline.model import Finding, Impact

SPOILS = ("E1",)
"""Families from whose onset on what is saved is spoilt."""


def impact(facts: Facts, finding: Finding | None) -> Impact | None:
    """
    Steps since the last checkpoint and GPU-hours since it, and how much slower than its baseline
    or its own best.  A checkpoint that was saved once the training had gone wrong is none to go
    back to; where no line tells of a checkpoint, what was saved is unknown, and so is what was
    lost, unless no step was made.  A slow run loses what is blamed took of it, or its slow phases
    beyond its best pace; a sound one nothing.

    GPU-hours need the job's GPUs and its times on record; without them they are not said.  None
    where nothing can be said.
    """
    spoilt = finding.onset_step if finding is not None and finding.code in SPOILS else None
    told = [m.progress.step for m in facts.markers_of("checkpoint_saved")]
    sound = [step for step in told if step is not None and (spoilt is None or step < spoilt)]
    checkpoint = max(sound, default=None)
    known = bool(told)
    lost = None
    wrong = finding is not None and (finding.severity == "fatal" or spoilt is not None)
    if wrong and facts.last_step is not None and known:
        lost = max(0, facts.last_step - (checkpoint or 0))
    slow = finding is not None and finding.severity == "degraded" and spoilt is None
    whole = known or not facts.has_progress
    hours = None
    lost_s = _lost_s(facts, finding) if finding is not None and slow else None
    if slow:
        hours = _slow_hours(facts, lost_s)
    elif wrong and whole:
        hours = _gpu_hours(facts, checkpoint)
    slowed = (_slowed(facts) or _slowed_by_itself(lost_s)) if slow else None
    if checkpoint is None and lost is None and hours is None and slowed is None:
        return None
    return Impact(hours, lost, checkpoint, slowed)


def _slowed(facts: Facts) -> float | None:
    """How many times as long the run takes as its baseline; None where their speeds do not differ
    or may not be compared."""
    compared = comparison(facts) if facts.baseline is not None else None
    pace = compared.pace if compared is not None else None
    if compared is None or pace is None or compared.alike is False or not pace.differs:
        return None
    return round(1 / (1 - pace.loss_ratio), 4) if 0 < pace.loss_ratio < 1 else None


def _lost_s(facts: Facts, finding: Finding) -> tuple[float, float] | None:
    """Seconds that what is blamed took, or the slow phases beyond the best pace, and all of the
    run's."""
    if finding.took_s is not None:
        return finding.took_s
    run = course(facts)
    if run is None or not run.slow:
        return None
    lost = sum((phase.ends - phase.begins) * (1 - phase.part) for phase in run.slow)
    return lost, run.pace.times[-1] - run.pace.times[0]


def _slowed_by_itself(found: tuple[float, float] | None) -> float | None:
    if found is None or not 0 < found[0] < found[1]:
        return None
    return round(found[1] / (found[1] - found[0]), 4)


def _slow_hours(facts: Facts, found: tuple[float, float] | None) -> float | None:
    if found is None or facts.job is None or not facts.job.gpus:
        return None
    return round(found[0] * facts.job.gpus / 3600, 3)


def _gpu_hours(facts: Facts, checkpoint: int | None) -> float | None:
    job = facts.job
    if job is None or not job.gpus or job.started_at is None or job.ended_at is None:
        return None
    since = job.started_at
    for marker in facts.markers_of("checkpoint_saved"):
        if marker.progress.step == checkpoint and marker.cite.at is not None:
            since = max(since, marker.cite.at)
    return round(max(0.0, (job.ended_at - since).total_seconds()) * job.gpus / 3600, 3)
