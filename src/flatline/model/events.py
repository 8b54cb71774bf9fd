"""What logs and scheduler records hold, and what could not be read of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from flatline.model.evidence import (
    NOWHERE,
    Attribution,
    Cite,
    Disposition,
    LogCite,
    Place,
    ProgressKind,
    RecordCite,
    SignatureRole,
)

# --- what logs hold ---


@dataclass(frozen=True, slots=True)
class Signature:
    """
    A line that means something: its pattern, what a match proves, and what it does not.

    `family` and `fault_class` hold before the first step; `late_family` and `late_class`, where
    given, hold once a step was seen (a KeyError at set-up is A1, in the loop A3).  `strength` is
    the probability that the family is right given this line alone and no contradiction.
    """

    id: str
    pattern: str
    role: SignatureRole
    meaning: str
    not_proof: str
    source: str
    samples: tuple[str, ...]
    near_misses: tuple[str, ...] = ()
    family: str | None = None
    fault_class: str | None = None
    late_family: str | None = None
    late_class: str | None = None
    attribution: Attribution = "unknown"
    strength: float = 0.5
    origin: str = ""
    action: str | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """A signature that matched a line; `groups` are its named groups. `seq` orders matches
    within one source."""

    signature: Signature
    cite: LogCite
    groups: Mapping[str, str]
    seq: int = 0
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of a Python traceback."""

    file: str
    line: int
    function: str
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Crash:
    """
    A Python traceback: the exception that ended it, and those it was raised from.

    `chain` holds the earlier exceptions as (type, message, relation), oldest first; relation is
    "cause" (raise ... from), "context" (while handling) or "group" (member of a group).
    `cite` is the exception line, `head` the "Traceback" line.  `complete` is false where the
    text ended before an exception line.
    """

    exception: str
    message: str
    frames: tuple[Frame, ...]
    cite: LogCite
    head: LogCite
    chain: tuple[tuple[str, str, str], ...] = ()
    complete: bool = True
    end_line: int = 0
    """The last physical line of the traceback and its message."""
    seq: int = 0
    attempt: int = 0
    caught: bool = False
    share: float = 1.0
    """What is left of its strength: less where the log may only show it."""


@dataclass(frozen=True, slots=True)
class ProcessExit:
    """A launcher's word on how one process (or a range of tasks) ended. `first` marks what the
    launcher itself calls the root cause, which is only the first it noticed."""

    reporter: str
    cite: LogCite
    place: Place = NOWHERE
    exit_code: int | None = None
    signal: int | None = None
    first: bool = False
    at: datetime | None = None
    seq: int = 0
    attempt: int = 0
    share: float = 1.0
    """What is left of its strength: less where the log may only show it."""


PRINTED = "printed number"
"""What the loss of a line is called that is a number and nothing else: it may be anything."""
RISING = "rising metric"
"""What a measure is called, told in place of a loss, that is the better the higher it is."""


@dataclass(frozen=True, slots=True)
class Progress:
    """
    What one line says of training progress. NaN and inf are values; None is "not said".

    `epochs` and `per_epoch` are the planned epochs and the steps of one.  A "config" is what a
    printed configuration plans, a "plan" what the program says it is going to do.
    """

    kind: ProgressKind
    step: int | None = None
    planned: int | None = None
    epoch: float | None = None
    loss: float | None = None
    loss_name: str = "loss"
    grad_norm: float | None = None
    lr: float | None = None
    step_s: float | None = None
    throughput: float | None = None
    throughput_unit: str | None = None
    skipped: bool = False
    epochs: float | None = None
    per_epoch: int | None = None
    falling: bool = True
    """False where the value called loss is not meant to fall (GRPO, PPO, a counter)."""
    data_s: float | None = None
    """Of the step's seconds those the loop waited for its data."""
    sync_s: float | None = None
    """Of the step's seconds those spent in the collective that brings the ranks together."""
    balance: float | None = None
    """The loss that keeps a mixture's experts evenly used."""
    since_s: float | None = None
    """Seconds that the program's own clock says it had run by then, as a progress bar does."""


# --- what the scheduler holds ---

Scheduler = Literal["slurm", "kubernetes", "pbs", "lsf"]


@dataclass(frozen=True, slots=True)
class Step:
    """A Slurm step: `id` is "batch", "extern", "interactive" or its number."""

    id: str
    name: str
    disposition: Disposition
    state: str
    cite: RecordCite
    exit_code: int | None = None
    signal: int | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    nodes: tuple[str, ...] = ()
    tasks: int | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """One accounting row of a job: a requeued job has several, oldest first."""

    id: str
    name: str | None
    disposition: Disposition
    state: str
    cite: RecordCite
    reason: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    derived_exit_code: int | None = None
    derived_signal: int | None = None
    submitted_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    limit_s: float | None = None
    nodes: tuple[str, ...] = ()
    node_count: int | None = None
    tasks: int | None = None
    gpus: int | None = None
    restarts: int | None = None
    dependency: str | None = None
    submit_line: str | None = None
    work_dir: str | None = None
    std_out: str | None = None
    std_err: str | None = None
    cancelled_by: str | None = None
    failed_node: str | None = None
    user: str | None = None
    partition: str | None = None
    devices: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Per host the GPUs it held, by index, where that is told."""
    steps: tuple[Step, ...] = ()
    scheduler: Scheduler = "slurm"
    listed: bool = False
    """It is of a list of whatever waits or runs (`squeue`), not of a record of this job."""
    listed_after_s: float | None = None
    """How long it had run when the list was printed, at most where only its submission is told."""

    @property
    def ran_to_its_limit(self) -> bool:
        if self.started_at is None or self.ended_at is None or not self.limit_s:
            return False
        return (self.ended_at - self.started_at).total_seconds() >= self.limit_s


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod as Kubernetes shows it: `status` is its phase or the reason of its container's state,
    `job` the one its labels name, `gpus` what its containers ask for, `age_s` how long it had been
    there at least; `outlives` that what made it is no job, and keeps it when a run is over."""

    name: str
    status: str
    cite: RecordCite
    node: str | None = None
    job: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    exit_code: int | None = None
    gpus: int | None = None
    age_s: float | None = None
    outlives: bool = False


@dataclass(frozen=True, slots=True)
class NodeEvent:
    """A node was in `states` (in the words of Slurm's base states and flags, upper case, whichever
    `scheduler` tells of it) from `at` to `until`; `until` is None while it lasts, `at` is None
    where the record does not say."""

    host: str
    states: tuple[str, ...]
    reason: str | None
    cite: RecordCite
    at: datetime | None = None
    until: datetime | None = None
    scheduler: Scheduler = "slurm"


@dataclass(frozen=True, slots=True)
class Records:
    """What one scheduler file says."""

    jobs: tuple[Job, ...] = ()
    node_events: tuple[NodeEvent, ...] = ()
    now: datetime | None = None
    addresses: Mapping[str, str] = field(default_factory=dict)
    """NodeAddr or node address to node name."""
    gaps: tuple[Gap, ...] = ()
    """What of it could not be read."""
    pods: tuple[Pod, ...] = ()


# --- what was read, and what was not ---


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that was needed and could not be had, where, and why."""

    need: str
    reason: str
    where: str | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of the run: a requeue or an elastic restart begins the next."""

    n: int
    disposition: Disposition
    started_at: datetime | None = None
    ended_at: datetime | None = None
    exit_code: int | None = None
    signal: int | None = None
    hosts: tuple[str, ...] = ()
    first_step: int | None = None
    last_step: int | None = None
    cites: tuple[Cite, ...] = ()
