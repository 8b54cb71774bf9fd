"""A target that is a job id: what a live Slurm says of it, and where its logs lie."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from flatline.errors import FormatError, SourceError, UsageError
from flatline.facts import LOG, SCHEDULER
from flatline.model import Gap, Job
from flatline.parsers import parsed, record_format_of
from flatline.sources import slurm

JOB_ID = re.compile(r"\d+(_\d+)?(\+\d+)?")


@dataclass(slots=True)
class Resolved:
    """Targets as paths, the job that is meant, and the records that were fetched live."""

    paths: list[str] = field(default_factory=list)
    job: str | None = None
    records: list[tuple[str, bytes]] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)


def resolve(targets: Sequence[str], job: str | None = None) -> Resolved:
    """Paths stay paths; a job id is asked of Slurm. Raises `UsageError` for what is neither."""
    found = Resolved(job=job)
    for target in targets:
        if not JOB_ID.fullmatch(target) or Path(target).exists():
            found.paths.append(target)
            continue
        if not slurm.available():
            raise UsageError(
                f"{target!r} is no file or folder here, and no Slurm is installed to ask about a"
                " job of that id; name the folder or the log the job left behind"
            )
        found.job = target
        _look_up(target, found)
    return found


def _look_up(job_id: str, found: Resolved) -> None:
    failures: list[SourceError] = []
    try:
        fetched = slurm.fetch(job_id, failures=failures)
    except SourceError as fault:
        found.gaps.append(Gap(SCHEDULER, str(fault), f"job {job_id}"))
        return
    found.gaps += [Gap(SCHEDULER, str(fault), f"job {job_id}") for fault in failures]
    found.records += [(item.name, item.data) for item in fetched]
    jobs = [job for item in fetched for job in _jobs(item.name, item.data)]
    own = [job for job in jobs if job.id == job_id]
    if not own:
        return
    logs, looked = slurm.find_logs(_fullest(own), [Path.cwd()])
    found.paths += [str(path) for path in logs]
    if not logs:
        where = "; ".join(looked[:8])
        found.gaps.append(Gap(LOG, f"no log of job {job_id} was found; looked at: {where}"))


def _fullest(jobs: Sequence[Job]) -> Job:
    """The row that knows most about where its output went."""
    return max(jobs, key=lambda job: sum(map(bool, (job.std_out, job.work_dir, job.submit_line))))


def _jobs(name: str, data: bytes) -> tuple[Job, ...]:
    form = record_format_of(name, data)
    try:
        return parsed(form, data, name).jobs if form is not None else ()
    except FormatError:
        return ()
