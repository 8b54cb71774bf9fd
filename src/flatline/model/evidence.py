"""Places, closed vocabularies, and citations: evidence that can be run again."""

from __future__ import annotations

from dataclasses import dataclass
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
    "train",
    "eval",
    "plan",
    "config",
    "checkpoint_saved",
    "checkpoint_loaded",
    "resume",
    "fresh",
    "finished",
    "bar",
]
Scalar = str | int | float | bool | None


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


@dataclass(frozen=True, slots=True)
class LogCite:
    """
    One line of a log: `line` counts newlines from 1, `text` stands in that line once it is
    stripped of terminal escapes and masked.

    `at_assumed` marks a time that was not printed on the line but before it: the line is no
    older than that.
    """

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
