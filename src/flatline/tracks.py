"""What one file and one stream hold, in columns: the pieces `Facts` is put together from."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from dataclasses import dataclass, field
from datetime import UTC, datetime

from flatline.model import NOWHERE, LogCite, Match, Place, Progress, ProgressKind

NAN = float("nan")
LOG, KERNEL, SCHEDULER, METRICS, DUMPS, EVENTS = (
    "job log",
    "kernel log",
    "scheduler records",
    "metrics",
    "flight-recorder dumps",
    "training events",
)
"""Stores: the kinds of telemetry a run can leave behind."""


@dataclass(frozen=True, slots=True)
class FileRead:
    """One file that was read: `kind` is a store, `lines` counts newlines."""

    source: str
    kind: str
    lines: int
    size: int
    place: Place = NOWHERE
    attempt: int | None = None


@dataclass(slots=True)
class Track:
    """
    Progress of one stream in columns, in the order it was printed.

    Absent numbers are NaN in `values` but told apart by `said` (a NaN that was printed has its
    bit set); steps not said are -1.  `at` holds POSIX seconds or NaN.
    """

    source: str
    place: Place
    framework: str | None
    format: str
    falling: bool = True
    loss_name: str = "loss"
    lines: array[int] = field(default_factory=lambda: array("q"))
    steps: array[int] = field(default_factory=lambda: array("q"))
    at: array[float] = field(default_factory=lambda: array("d"))
    loss: array[float] = field(default_factory=lambda: array("d"))
    grad_norm: array[float] = field(default_factory=lambda: array("d"))
    lr: array[float] = field(default_factory=lambda: array("d"))
    step_s: array[float] = field(default_factory=lambda: array("d"))
    throughput: array[float] = field(default_factory=lambda: array("d"))
    epoch: array[float] = field(default_factory=lambda: array("d"))
    skipped: array[int] = field(default_factory=lambda: array("b"))
    has_loss: array[int] = field(default_factory=lambda: array("b"))
    has_grad: array[int] = field(default_factory=lambda: array("b"))
    attempts: array[int] = field(default_factory=lambda: array("h"))
    planned: int | None = None

    def add(self, point: Progress, line: int, at: datetime | None, attempt: int) -> None:
        def number(value: float | None) -> float:
            return NAN if value is None else value

        self.lines.append(line)
        self.steps.append(-1 if point.step is None else point.step)
        self.at.append(NAN if at is None else at.timestamp())
        self.loss.append(number(point.loss))
        self.grad_norm.append(number(point.grad_norm))
        self.lr.append(number(point.lr))
        self.step_s.append(number(point.step_s))
        self.throughput.append(number(point.throughput))
        self.epoch.append(number(point.epoch))
        self.skipped.append(point.skipped)
        self.has_loss.append(point.loss is not None)
        self.has_grad.append(point.grad_norm is not None)
        self.attempts.append(attempt)
        if point.planned is not None:
            self.planned = point.planned
        if not point.falling:
            self.falling = False
        if point.loss is not None:
            self.loss_name = point.loss_name

    def __len__(self) -> int:
        return len(self.lines)

    def time(self, index: int) -> datetime | None:
        value = self.at[index]
        return None if value != value else datetime.fromtimestamp(value, UTC)

    def of_attempt(self, n: int) -> range:
        """Indexes of one attempt's points; attempts never go back within a stream."""
        first = bisect_right(self.attempts, n - 1)
        return range(first, bisect_right(self.attempts, n))


@dataclass(frozen=True, slots=True)
class Marker:
    """A progress event that is no training step: checkpoint, resume, plan, eval, end."""

    kind: ProgressKind
    progress: Progress
    cite: LogCite
    framework: str | None
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class Point:
    """One training step of a track, with its citation."""

    track: Track
    index: int
    cite: LogCite

    @property
    def step(self) -> int | None:
        step = self.track.steps[self.index]
        return None if step < 0 else step

    @property
    def loss(self) -> float:
        return self.track.loss[self.index]


def stands_for(token: str, match: Match) -> bool:
    """Whether a match is of the kind a token of an absence names."""
    kind, _, name = token.partition(":")
    signature = match.signature
    if kind == "family":
        return signature.role == "root" and name in (signature.family, signature.late_family)
    if kind == "tag":
        return name in signature.tags
    return kind == "signature" and signature.id == name
