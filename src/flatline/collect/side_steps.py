"""
What is told of a step that ran beside the one that trained: a monitor, a log shipper.

Slurm's daemons name the step they speak of, and the records say what became of each.  A step that
failed while another went on, with training steps dated behind its end, did not end the training.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from math import inf, isfinite

from flatline.collect.events import LogEvents
from flatline.model import Gap, Job, Step
from flatline.tracks import LOG

SOUND = ("completed", "running")
SLACK = timedelta(minutes=2)
"""By which clocks of hosts and of the controller differ."""
BEHIND = 2
"""Lines: srun says right behind it which task that was."""
_STEP = re.compile(r"\bStepId=(\d{1,12})\.(\d{1,6})\b")


def without_side_steps(logs: Sequence[LogEvents], rows: Sequence[Job]) -> list[Gap]:
    """Takes from each log what is said of such steps, and says so."""
    if not rows:
        return []
    job, gaps = rows[-1], []
    made = [
        track.at[i] for one in logs for track in one.tracks.values() for i in range(len(track))
    ]
    side = _side(job, max(filter(isfinite, made), default=-inf))
    for events in logs if side else ():
        told = {
            (found[2], cite.line)
            for cite in (*(m.cite for m in events.matches), *(e.cite for e in events.exits))
            if (found := _STEP.search(cite.text)) and found[1] == job.id and found[2] in side
        }
        about = {line + n for _, line in told for n in range(BEHIND + 1)}
        if not about:
            continue
        events.matches = [m for m in events.matches if m.cite.line not in about]
        events.exits = [
            e for e in events.exits if e.cite.line not in about or e.reporter != "srun"
        ]
        names = ", ".join(f"{n} ({side[n]})" for n in sorted({step for step, _ in told}))
        reason = f"what it says of step {names} is not of the step that trained, which went on"
        gaps.append(Gap(LOG, reason, events.source))
    return gaps


def _side(job: Job, stepped: float) -> dict[str, str]:
    """Name by number of each step that failed while another of the job went on and completed, or
    still runs, and the training went on as well: until `stepped` (POSIX seconds)."""
    steps = [step for step in job.steps if step.id.isdigit() and step.started_at]
    return {
        step.id: step.name
        for step in steps
        if step.disposition not in SOUND and step.ended_at is not None
        and stepped > step.ended_at.timestamp() + SLACK.total_seconds()
        and any(_went_on(other, step.ended_at) for other in steps)
    }  # fmt: skip


def _went_on(step: Step, at: datetime) -> bool:
    if step.disposition not in SOUND or step.started_at is None or step.started_at > at:
        return False
    return step.ended_at is None or step.ended_at > at
