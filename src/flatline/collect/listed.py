"""
Jobs that a list shows as running, where no record of the run's own was kept.

`squeue` and `kubectl get pods` print what there was when they were asked: of a user, of a
namespace, of a whole cluster.  One of those jobs is taken for the run's where its logs are named
after it.  A list of squeue's that shows one job alone counts as well, where no log is named after
another: it was asked for that one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from flatline.collect.files import Found
from flatline.collect.merging import Records_
from flatline.collect.of_job import told_by_logs
from flatline.collect.pod_job import job_of, stem
from flatline.facts import EVENTS, LOG
from flatline.model import Job, Pod

_OF_SLURM = re.compile(r"(?i)(?:^|[._-])(?:slurm|job|jobid)[._-]?(\d{4,12})(?![0-9A-Za-z])")
_ENDING = re.compile(r"(?:\.(?:log|out|err|txt|stdout|stderr|\d{1,4}))+$", re.IGNORECASE)


def with_listed(records: Records_, found: Sequence[Found], asked: str | None) -> Records_:
    """The records, with the one job that a list shows to be the run's where nothing else is
    known of any; `asked` is the job that the caller names."""
    if records.jobs:
        return records
    logs = [file for file in found if file.kind in (LOG, EVENTS)]
    jobs = {job.id: job for job in (*records.listed, *_of_pods(records.pods))}
    chosen = jobs.get(asked) if asked else _shown(jobs.values(), logs)
    return records if chosen is None else replace(records, jobs=(chosen,))


def _of_pods(pods: Sequence[Pod]) -> list[Job]:
    """One each for the names of pods: a list of a namespace holds several."""
    names = dict.fromkeys(pod.job or stem(pod.name) for pod in pods)
    jobs = (job_of([pod for pod in pods if (pod.job or stem(pod.name)) == name]) for name in names)
    return [job for job in jobs if job is not None and job.disposition == "running"]


def _shown(jobs: Iterable[Job], logs: Sequence[Found]) -> Job | None:
    told = list(jobs)
    bare = [_ENDING.sub("", file.source.rpartition("/")[2]) for file in logs]
    pods = [job for job in told if job.scheduler == "kubernetes"
            and any(job.id in (name, stem(name)) for name in bare)]  # fmt: skip
    if pods:
        return pods[0] if len(pods) == 1 else None
    queued = {job.id: job for job in told if job.scheduler == "slurm"}
    numbers = {found[1] for file in logs for found in _OF_SLURM.finditer(file.source)}
    if len(queued) == 1 and numbers <= set(queued):
        return next(iter(queued.values()))
    return queued.get(told_by_logs(logs, set(queued)) or "")
