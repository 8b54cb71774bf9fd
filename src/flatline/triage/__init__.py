"""
A window of time and every job that ended in it: one verdict a job, and what failures share.

`select` finds the jobs and their logs, `judging` diagnoses those that did not complete, `shared`
says which hosts, switches and file systems their failures have in common, and how often jobs that
completed touched them; `page` and `document` show it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from flatline.model import Attribution, Disposition, Gap, Job, NodeEvent, Place, Resubmit, State

OnProgress = Callable[[str, int, int], None]
"""(stage, jobs done, jobs in all)"""
LIMIT = 500
"""Jobs that are diagnosed where no limit is given: on two cores about half a minute of reading."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What the caller wants to see. `since` and `until` are instants or, in words, `24h`."""

    sources: tuple[str, ...] = ()
    logs: tuple[str, ...] = ()
    follow: bool = False
    since: str | None = None
    until: str | None = None
    users: tuple[str, ...] = ()
    everyone: bool = False
    partitions: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    limit: int = LIMIT


@dataclass(frozen=True, slots=True)
class Ended:
    """One job that ended: its accounting rows, oldest first, and where its logs lie."""

    rows: tuple[Job, ...]
    logs: tuple[Path, ...] = ()
    looked: tuple[str, ...] = ()
    """Where logs were looked for in vain, in words."""

    @property
    def job(self) -> Job:
        return self.rows[-1]

    @property
    def elapsed_s(self) -> float | None:
        """Seconds of its last try."""
        job = self.job
        if job.started_at is None or job.ended_at is None:
            return None
        return max(0.0, (job.ended_at - job.started_at).total_seconds())


@dataclass(frozen=True, slots=True)
class Selected:
    """Every job of the window, those to diagnose first; and what the records say beside it."""

    ended: tuple[Ended, ...]
    events: tuple[NodeEvent, ...] = ()
    leaves: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """(leaf switch or block, its hosts)"""
    since: datetime | None = None
    until: datetime | None = None
    now: datetime | None = None
    gaps: tuple[Gap, ...] = ()
    find: Callable[[Ended], Ended] | None = None
    """Finds a job's logs, called only for jobs that are diagnosed."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a diagnosis says of one job, small enough to cross from process to process."""

    id: str
    state: State
    headline: str
    code: str | None = None
    family: str | None = None
    fault_class: str | None = None
    attribution: Attribution = "unknown"
    confidence: float = 0.0
    culprits: tuple[Place, ...] = ()
    resubmit: Resubmit = "unknown"
    gpu_hours_lost: float | None = None
    storage: tuple[str, ...] = ()
    """File systems and servers that its storage errors name."""
    logs: int = 0


@dataclass(frozen=True, slots=True)
class Line:
    """One job of the listing; `told` is None where it was not diagnosed."""

    ended: Ended
    told: Told | None

    @property
    def id(self) -> str:
        return self.ended.job.id

    @property
    def disposition(self) -> Disposition:
        return self.ended.job.disposition


@dataclass(frozen=True, slots=True)
class Group:
    """
    What several failures share, with its controls.

    `kind` is host, switch or storage.  Of `of_failures` failures that are not the job's own doing
    `failures` touched it, of `of_successes` completed jobs `successes`.  `p` is exact and one
    sided; `corrected` is `p` times `tested`, the number of places that could have stood here.
    Both are None for storage, which the errors themselves name.
    """

    kind: str
    names: tuple[str, ...]
    jobs: tuple[str, ...]
    failures: int
    of_failures: int
    successes: int
    of_successes: int
    p: float | None = None
    corrected: float | None = None
    tested: int | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """A morning at a glance. `failed`, `undetermined` and `healthy` were diagnosed."""

    failed: tuple[Line, ...]
    undetermined: tuple[Line, ...]
    healthy: tuple[Line, ...]
    completed: tuple[Line, ...]
    cancelled: tuple[Line, ...]
    """Cancelled, diagnosed, and nothing found before it."""
    unread: tuple[Line, ...]
    """Beyond the limit: not diagnosed."""
    groups: tuple[Group, ...]
    since: datetime | None
    until: datetime | None
    gaps: tuple[Gap, ...] = ()
    left_out: int = 0
    """Failures that are the job's own doing, and so say nothing of a place."""
