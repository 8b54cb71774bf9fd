"""
Jobs that a list shows, where no record of the run's own was kept.

`squeue` and `kubectl get pods` print what there was when they were asked: of a user, of a
namespace, of a whole cluster.  One of the jobs whose pods are listed is taken for the run's where
its logs are named after it, or after its very pods where these have ended.  A list of squeue's
that shows one job alone counts where no log is named after another: it was asked for that one; for
lists of several see `runs.choose`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import timedelta

from flatline.collect.files import Found
from flatline.collect.merging import Records_
from flatline.collect.of_job import SLACK, meant
from flatline.collect.pod_job import job_of, stem
from flatline.collect.zone import Logs, when
from flatline.facts import EVENTS, LOG, METRICS
from flatline.model import Job, Pod

_OF_SLURM = re.compile(r"(?i)(?:^|[._-])(?:slurm|job|jobid)[._-]?(\d{4,12})(?![0-9A-Za-z])")
_ENDING = re.compile(r"(?:\.(?:log|out|err|txt|stdout|stderr|\d{1,4}))+$", re.IGNORECASE)


def with_listed(records: Records_, found: Sequence[Found], asked: str | None) -> Records_:
    """The records, with the one job that a list of pods shows to be the run's where nothing else
    is known of any, and without one of `squeue`'s alone after which no log is named where some are
    after others; `asked` is the job that the caller names."""
    logs = [file for file in found if file.kind in (LOG, EVENTS)]
    if records.jobs:
        return replace(records, jobs=()) if _of_others(records.jobs, logs, asked) else records
    jobs = {job.id: job for job in _of_pods(records.pods, _bare(logs))}
    chosen = jobs.get(asked) if asked else _shown(jobs.values(), logs)
    return records if chosen is None else replace(records, jobs=(chosen,))


def named_by(
    targets: Sequence[str], found: Sequence[Found], jobs: Sequence[Job], asked: str | None
) -> str | None:
    """The number that the files' names mean or, where they mean none, their metrics'."""
    named = meant(targets, found, {job.id for job in jobs}, asked)
    return named or _measured_alone(jobs, found)


def _measured_alone(jobs: Sequence[Job], found: Sequence[Found]) -> str | None:
    """The number of the one job whose nodes are those after which the files of metrics are named,
    one each: none where another of the jobs has one of these nodes as well."""
    names = {_ENDING.sub("", file.source.rpartition("/")[2]).removesuffix(".prom")
             for file in found if file.kind == METRICS}  # fmt: skip
    on = {job.id for job in jobs if not names.isdisjoint(job.nodes)}
    own = {job.id for job in jobs if job.nodes and {*job.nodes} == names}
    return own.pop() if len(own) == 1 and on == own else None


def as_of_its_list(rows: Sequence[Job], logs: Logs) -> tuple[Job, ...]:
    """The rows, without a list's word on the state of a job whose log goes on well behind the
    moment at which that was printed: so long after the job began, which its log's first line did
    not precede.  What became of it since is not told."""
    job = rows[-1] if rows else None
    first, last = when((), [log for log in logs if log[0].kind == LOG])  # a kernel's holds weeks
    if job is None or not job.listed or job.listed_after_s is None or not (first and last):
        return tuple(rows)
    if last - first <= timedelta(seconds=job.listed_after_s) + SLACK:
        return tuple(rows)
    return (*rows[:-1], replace(job, disposition="unknown"))


def _of_others(jobs: Sequence[Job], logs: Sequence[Found], asked: str | None) -> bool:
    ids = {job.id for job in jobs}
    numbers = {found[1] for file in logs for found in _OF_SLURM.finditer(file.source)}
    alone = asked is None and len(ids) == 1 and all(job.listed for job in jobs)
    waits = all(job.disposition == "pending" for job in jobs)
    return alone and numbers.isdisjoint(ids) and (bool(numbers) or waits)


def _of_pods(pods: Sequence[Pod], logs: Collection[str]) -> list[Job]:
    """One each for the names of pods: a list of a namespace holds several, and those that ended
    stay in it, of earlier tries as well."""
    own: dict[str, list[Pod]] = {}
    for pod in pods:
        own.setdefault(pod.job or stem(pod.name), []).append(pod)
    jobs = ((job_of(some), {pod.name for pod in some}) for some in own.values())
    return [
        job
        for job, names in jobs
        if job is not None and (job.disposition == "running" or not names.isdisjoint(logs))
    ]


def _shown(jobs: Iterable[Job], logs: Sequence[Found]) -> Job | None:
    pods = [job for job in jobs if any(job.id in (name, stem(name)) for name in _bare(logs))]
    return pods[0] if len(pods) == 1 else None


def _bare(logs: Sequence[Found]) -> frozenset[str]:
    """The names of logs without what ends them."""
    return frozenset(_ENDING.sub("", file.source.rpartition("/")[2]) for file in logs)
