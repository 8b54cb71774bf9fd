"""What a fault cost, as far as records and logs tell."""

from __future__ import annotations

from flatline.facts import Facts
from flatline.judging.comparison import comparison
from flatline.model import Finding, Impact


def impact(facts: Facts, finding: Finding | None) -> Impact | None:
    """
    Steps since the last checkpoint, GPU-hours since it (or since the start), and how much slower
    than its baseline.

    GPU-hours need the job's GPUs and its times on record; without them they are not said.  None
    where nothing can be said.
    """
    saved = [
        m.progress.step
        for m in facts.markers_of("checkpoint_saved")
        if m.progress.step is not None
    ]
    checkpoint = max(saved, default=None)
    lost = None
    if finding is not None and finding.severity == "fatal" and facts.last_step is not None:
        lost = facts.last_step - (checkpoint if checkpoint is not None else 0)
        lost = max(0, lost)
    hours = _gpu_hours(facts, checkpoint) if finding is not None else None
    slowed = _slowed(facts) if finding is not None and finding.severity == "degraded" else None
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


def _gpu_hours(facts: Facts, checkpoint: int | None) -> float | None:
    job = facts.job
    if job is None or not job.gpus or job.started_at is None or job.ended_at is None:
        return None
    since = job.started_at
    for marker in facts.markers_of("checkpoint_saved"):
        if marker.progress.step == checkpoint and marker.cite.at is not None:
            since = max(since, marker.cite.at)
    return round(max(0.0, (job.ended_at - since).total_seconds()) * job.gpus / 3600, 3)
