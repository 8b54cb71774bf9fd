"""
The nouns: what a run left behind, what may be claimed of it, and the verdict.

Everything here is a value: frozen, without behaviour beyond its own invariants, importing
nothing of ours.  Instants are aware UTC datetimes, durations are float seconds, ratios are 0..1,
and units stand in the names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

Attribution = Literal["job", "infrastructure", "scheduler", "training", "none", "unknown"]
Role = Literal["cause", "consequence", "warning"]
Severity = Literal["fatal", "degraded", "warning", "none"]
Scope = Literal["place", "all", "shared", "none"]
State = Literal["found", "healthy", "undetermined"]
Resubmit = Literal["as_is", "exclude", "fix_first", "wait", "unnecessary", "unknown"]
ActionKind = Literal["rerun", "exclude", "fix", "escalate", "raise_limit", "collect", "watch"]
Disposition = Literal[
    "completed",
    "failed",
    "cancelled",
    "timeout",
    "node_fail",
    "boot_fail",
    "deadline",
    "preempted",
    "requeued",
    "out_of_memory",
    "suspended",
    "pending",
    "running",
    "unknown",
]
SignatureRole = Literal["root", "cascade", "wrapper", "benign", "marker"]
"""
What a line may be taken for.

root      can be the cause by itself
cascade   the echo of a failure elsewhere: proves that something failed, never what
wrapper   a launcher's or framework's report that a child failed
benign    looks like trouble and is not
marker    a fact about the run (it started, ended, was cancelled, lost a node), not a fault
"""
ProgressKind = Literal[
    "train", "eval", "plan", "checkpoint_saved", "checkpoint_loaded", "resume", "fresh", "finished"
]
Scalar = str | int | float | bool | None


# --- places -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """
    Where, as the evidence spells it: nothing here is derived from anything else.

    `rank` is the framework's global rank, `task` a Slurm task or JAX process id.  A PCI address
    is a `device`; it is never guessed into a `gpu` index.
    """

    host: str | None = None
    gpu: str | None = None
    device: str | None = None
    domain: str | None = None
    rank: int | None = None
    task: int | None = None

    def __bool__(self) -> bool:
        return any(
            part is not None
            for part in (self.host, self.gpu, self.device, self.domain, self.rank, self.task)
        )

    def __str__(self) -> str:
        parts = []
        if self.rank is not None:
            parts.append(f"rank {self.rank}")
        if self.task is not None:
            parts.append(f"task {self.task}")
        if self.gpu is not None:
            parts.append(f"GPU {self.gpu}")
        if self.device is not None:
            parts.append(self.device)
        if self.domain is not None:
            parts.append(self.domain)
        if self.host is not None:
            parts.append(f"on {self.host}" if parts else self.host)
        return " ".join(parts) or "unknown place"


NOWHERE = Place()


# --- citations: executable evidence -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LogCite:
    """One line of a log: `line` counts newlines from 1, `text` stands in that line once it is
    stripped of terminal escapes and masked."""

    source: str
    line: int
    text: str
    place: Place = NOWHERE
    at: datetime | None = None
    at_assumed: bool = False


@dataclass(frozen=True, slots=True)
class RecordCite:
    """A field of a scheduler record. `pointer` is understood by the parser of that format."""

    source: str
    pointer: str
    value: Scalar
    text: str
    place: Place = NOWHERE
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class QueryCite:
    """A PromQL query as it runs where its data lives, with the one value that was read."""

    source: str
    query: str
    engine: str
    start: datetime
    end: datetime
    step_s: float
    value: float
    unit: str
    text: str
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class DumpCite:
    """An entry of a flight-recorder dump or stack dump."""

    source: str
    pointer: str
    value: Scalar
    text: str
    place: Place = NOWHERE
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class AbsenceCite:
    """What was looked for and not found: patterns over whole files, with how many lines."""

    source: str
    patterns: tuple[str, ...]
    files: tuple[str, ...]
    lines: int
    text: str


@dataclass(frozen=True, slots=True)
class DerivedCite:
    """A value computed from other evidence by a named, versioned function of `judging`."""

    method: str
    inputs: tuple[Cite, ...]
    params: tuple[tuple[str, Scalar], ...]
    value: Scalar
    text: str
    unit: str | None = None
    tolerance: float = 0.0
    place: Place = NOWHERE


Cite = LogCite | RecordCite | QueryCite | DumpCite | AbsenceCite | DerivedCite


# --- what logs hold -----------------------------------------------------------------------------


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


@dataclass(frozen=True, slots=True)
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
    seq: int = 0
    attempt: int = 0
    caught: bool = False


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


@dataclass(frozen=True, slots=True)
class Progress:
    """What one line says of training progress. NaN and inf are values; None is "not said"."""

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
    falling: bool = True
    """False where the value called loss is not meant to fall (GRPO, PPO, a counter)."""


# --- what the scheduler holds -------------------------------------------------------------------


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
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeEvent:
    """A node was in `states` (Slurm's base state and flags, upper case) from `at` to `until`;
    `until` is None while it lasts, `at` is None where the record does not say."""

    host: str
    states: tuple[str, ...]
    reason: str | None
    cite: RecordCite
    at: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Records:
    """What one scheduler file says."""

    jobs: tuple[Job, ...] = ()
    node_events: tuple[NodeEvent, ...] = ()
    now: datetime | None = None
    addresses: Mapping[str, str] = field(default_factory=dict)
    """NodeAddr or node address to node name."""


# --- what was read, and what was not ------------------------------------------------------------


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


# --- judgement ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence and what it rests on."""

    text: str
    cites: tuple[Cite, ...]

    def __post_init__(self) -> None:
        if not self.cites:
            raise ValueError(f"a claim without a citation: {self.text!r}")


@dataclass(frozen=True, slots=True)
class Action:
    """What to do. `command` can be pasted; `targets` are hosts or files it acts on."""

    kind: ActionKind
    text: str
    command: str | None = None
    targets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """
    A family's word that it happened.  It cannot be built without evidence.

    `strength` is the belief (0..1) this evidence earns alone; `diagnose` raises it for
    independent corroboration and lowers it for rivals.  `role` is "cause" unless the family
    itself knows it to be a warning; only `diagnose` says "consequence".  `ended_run` is true
    where the attempt ended by it.
    """

    code: str
    summary: str
    attribution: Attribution
    shows: tuple[Claim, ...]
    implies: tuple[Claim, ...]
    strength: float
    fault_class: str | None = None
    role: Role = "cause"
    severity: Severity = "fatal"
    culprits: tuple[Place, ...] = ()
    cleared: tuple[Place, ...] = ()
    scope: Scope = "place"
    domain: str | None = None
    onset: datetime | None = None
    onset_step: int | None = None
    order: tuple[str, int] | None = None
    """(source, line) of the onset, for order within one log where no time is known."""
    attempt: int = 0
    ended_run: bool = True
    cannot_decide: tuple[str, ...] = ()
    actions: tuple[Action, ...] = ()
    resubmit: Resubmit = "unknown"

    def __post_init__(self) -> None:
        if not self.shows:
            raise ValueError(f"finding {self.code} shows nothing")
        if not 0.0 < self.strength <= 1.0:
            raise ValueError(f"finding {self.code}: strength {self.strength} is not in (0, 1]")

    @property
    def cites(self) -> tuple[Cite, ...]:
        """Every citation of its claims, once, in order."""
        seen: dict[Cite, None] = {}
        for claim in (*self.shows, *self.implies):
            for cite in claim.cites:
                seen.setdefault(cite)
        return tuple(seen)


@dataclass(frozen=True, slots=True)
class Cleared:
    """Each discriminator of a family was measured and stood below its threshold. Whether that
    rules the family out depends on coverage, which only `diagnose` knows."""

    code: str
    why: str
    cites: tuple[Cite, ...]

    def __post_init__(self) -> None:
        if not self.cites:
            raise ValueError(f"{self.code} cleared without a citation")


Judgement = Finding | tuple[Finding, ...] | Cleared | None


@dataclass(frozen=True, slots=True)
class Explained:
    """That one finding follows from another, and by what mechanism."""

    by: str
    mechanism: str


@dataclass(frozen=True, slots=True)
class Judged:
    """A finding with its place in the whole: id, final role, what explains it, confidence."""

    id: str
    family: str
    finding: Finding
    role: Role
    confidence: float
    explained_by: tuple[Explained, ...] = ()


@dataclass(frozen=True, slots=True)
class RuledOut:
    code: str
    family: str
    why: str
    cites: tuple[Cite, ...]


@dataclass(frozen=True, slots=True)
class Undetermined:
    code: str
    family: str
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """The run as its evidence describes it."""

    id: str | None
    target: tuple[str, ...]
    disposition: Disposition
    framework: str | None = None
    launcher: str | None = None
    hosts: tuple[str, ...] = ()
    world_size: int | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    now: datetime | None = None
    last_step: int | None = None
    planned_steps: int | None = None
    attempts: tuple[Attempt, ...] = ()


@dataclass(frozen=True, slots=True)
class Impact:
    gpu_hours_lost: float | None = None
    steps_lost: int | None = None
    last_checkpoint_step: int | None = None
    slowdown_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer. Every surface shows this and nothing else."""

    run: Run
    state: State
    headline: str
    code: str | None
    family: str | None
    fault_class: str | None
    attribution: Attribution
    confidence: float
    scope: Scope
    culprits: tuple[Place, ...]
    cleared: tuple[Place, ...]
    severity: Severity | None
    onset: datetime | None
    onset_step: int | None
    impact: Impact | None
    resubmit: Resubmit
    shows: tuple[Claim, ...]
    implies: tuple[Claim, ...]
    cannot_decide: tuple[str, ...]
    actions: tuple[Action, ...]
    findings: tuple[Judged, ...]
    ruled_out: tuple[RuledOut, ...]
    undetermined: tuple[Undetermined, ...]
    gaps: tuple[Gap, ...]
    domain: str | None = None
    catalogue: str | None = None
    attempt_codes: Mapping[int, str] = field(default_factory=dict)
