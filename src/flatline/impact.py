"""What a fault cost, as far as records and logs tell."""

from __future__ import annotations

from flatline.facts import Facts
from flatline.model import Finding, Impact


def impact(facts: Facts, finding: Finding | None) -> Impact | None:
    """
    Steps since the last checkpoint and GPU-hours since it (or since the start).

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
    if checkpoint is None and lost is None and hours is None:
        return None
    return Impact(gpu_hours_lost=hours, steps_lost=lost, last_checkpoint_step=checkpoint)


def _gpu_hours(facts: Facts, checkpoint: int | None) -> float | None:
    job = facts.job
    if job is None or not job.gpus or job.started_at is None or job.ended_at is None:
        return None
    since = job.started_at
    for marker in facts.markers_of("checkpoint_saved"):
        if marker.progress.step == checkpoint and marker.cite.at is not None:
            since = max(since, marker.cite.at)
    return round(max(0.0, (job.ended_at - since).total_seconds()) * job.gpus / 3600, 3)
