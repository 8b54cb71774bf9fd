"""What one file and one stream hold, in columns: the pieces `Facts` is put together from."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from math import floor, isfinite

from flatline.model import NOWHERE, LogCite, Match, Place, Progress, ProgressKind

NAN = float("nan")
INFINITE = float("inf")
LOG, KERNEL, SCHEDULER, METRICS, DUMPS, EVENTS = (
    "job log",
    "kernel log",
    "scheduler records",
    "metrics",
    "flight-recorder dumps",
    "training events",
)
"""Stores: the kinds of telemetry a run can leave behind."""
LEARNED = "unnamed"
"""The format of steps whose words no format knows: what their numbers are was learned."""
ROUNDED = 0.015
"""How far an epoch counted on from two that are told to two decimals may be off."""
GOES_ON_AFTER = 2
"""Steps printed after a line before it counts as survived: ranks print a step or two late."""
LEAVING_LINES = 60
"""Slurm leaves a program that it ends some time (KillWait, 30 s): the last lines may be steps."""
BASELINE = "baseline:"
"""What the source of every citation into the baseline begins with, and that of none into the run
itself."""
EARLIER = "the run before this one"
"""What a gap lacks where that is on record and could not be read."""


def leaving(tag: str, line: int, lines: int) -> bool:
    """Whether steps behind a line of a file of so many may be those of a program that is being
    ended for its time."""
    return tag == "time-limit" and 0 < lines <= line + LEAVING_LINES


@dataclass(frozen=True, slots=True)
class FileRead:
    """One file that was read: `kind` is a store, `lines` counts newlines."""

    source: str
    kind: str
    lines: int
    size: int
    place: Place = NOWHERE
    attempt: int | None = None
    kept: tuple[int, int] | None = None
    """The first and last line that are the run's, where another's stand in it as well."""

    @property
    def searched(self) -> tuple[str, int]:
        """What of it was searched, and how many lines that is: `train.log:813-1024` is a part."""
        if self.kept is None:
            return self.source, self.lines
        first, last = self.kept
        return f"{self.source}:{first}-{last}", max(0, last - first + 1)


_NUMBERS = (
    "loss", "grad_norm", "lr", "step_s", "throughput", "epoch", "data_s", "sync_s", "balance",
    "since_s",
)  # fmt: skip
"""The columns of `Track` that are numbers of `Progress` and may be missing."""

UNNUMBERED = 5
"""Points before the first that bears a step: of a bar and a loss in turns there is one or two."""


@dataclass(slots=True)
class Track:
    """
    Progress of one stream in columns, in the order it was printed.

    Absent numbers are NaN in `values` but told apart by `said` (a NaN that was printed has its
    bit set); steps not said are -1.  `at` holds POSIX seconds or NaN; where `assumed`, they were
    printed on other lines.
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
    data_s: array[float] = field(default_factory=lambda: array("d"))
    sync_s: array[float] = field(default_factory=lambda: array("d"))
    balance: array[float] = field(default_factory=lambda: array("d"))
    since_s: array[float] = field(default_factory=lambda: array("d"))
    skipped: array[int] = field(default_factory=lambda: array("b"))
    has_loss: array[int] = field(default_factory=lambda: array("b"))
    has_grad: array[int] = field(default_factory=lambda: array("b"))
    attempts: array[int] = field(default_factory=lambda: array("h"))
    planned: int | None = None
    epochs: float | None = None
    per_epoch: int | None = None
    assumed: bool = False
    elsewhere: dict[int, tuple[str, int]] = field(default_factory=dict)
    """Points whose loss a line of another file tells (`collect.losses_beside`)."""

    def add(self, point: Progress, line: int, at: datetime | None, attempt: int) -> None:
        self.lines.append(line)
        self.steps.append(-1 if point.step is None else point.step)
        self.at.append(NAN if at is None else at.timestamp())
        self.loss.append(NAN if point.loss is None else point.loss)
        self.grad_norm.append(NAN if point.grad_norm is None else point.grad_norm)
        self.lr.append(NAN if point.lr is None else point.lr)
        self.step_s.append(NAN if point.step_s is None else point.step_s)
        self.throughput.append(NAN if point.throughput is None else point.throughput)
        epoch = NAN if point.epoch is None else point.epoch
        self.epoch.append(epoch if isfinite(epoch) else NAN)  # a printed `inf` counts nothing
        self.data_s.append(NAN if point.data_s is None else point.data_s)
        self.sync_s.append(NAN if point.sync_s is None else point.sync_s)
        self.balance.append(NAN if point.balance is None else point.balance)
        self.since_s.append(NAN if point.since_s is None else point.since_s)
        self.skipped.append(point.skipped)
        self.has_loss.append(point.loss is not None)
        self.has_grad.append(point.grad_norm is not None)
        self.attempts.append(attempt)
        if point.planned is not None:
            self.planned = point.planned
        if point.epochs is not None:
            self.epochs = point.epochs
        if point.per_epoch is not None:
            self.per_epoch = point.per_epoch
        if not point.falling:
            self.falling = False
        if point.loss is not None:
            self.loss_name = point.loss_name

    def extend(
        self,
        lines: Sequence[float],
        at: Sequence[float],
        said: Mapping[str, Sequence[float]],
        attempt: int,
        loss_name: str,
        falling: bool,
    ) -> None:
        """Many points at once, each of which says the same: "step", "loss" and what else of
        `Progress` is a number. Times are POSIX seconds or NaN."""
        count = len(lines)
        self.lines.extend(map(int, lines))
        self.at.extend(at)
        self.steps.extend(map(int, said["step"]))
        missing = array("d", (NAN,)) * count
        for name in _NUMBERS:
            getattr(self, name).extend(said.get(name, missing))
        self.skipped.frombytes(bytes(count))
        self.has_loss.extend(array("b", ("loss" in said,)) * count)
        self.has_grad.extend(array("b", ("grad_norm" in said,)) * count)
        self.attempts.extend(array("h", (attempt,)) * count)
        said_plans = zip(said.get("planned", ()), said["step"], strict=False)
        plans = [plan for plan, step in said_plans if plan.is_integer() and plan >= step]
        if plans:
            self.planned = int(plans[-1])
        self.falling = self.falling and falling
        if "loss" in said:
            self.loss_name = loss_name

    def __len__(self) -> int:
        return len(self.lines)

    def time(self, index: int) -> datetime | None:
        value = self.at[index]
        return None if value != value else datetime.fromtimestamp(value, UTC)

    @property
    def sources(self) -> tuple[str, ...]:
        """Its file, and those that tell of its losses."""
        return self.source, *dict.fromkeys(source for source, _ in self.elsewhere.values())

    def told_in(self, index: int) -> tuple[str, int]:
        """The line that tells of a point, and its file."""
        return self.elsewhere.get(index) or (self.source, self.lines[index])

    def cite(self, index: int, text: str) -> LogCite:
        """A point, by the text of its line."""
        at = self.time(index)
        return LogCite(*self.told_in(index), text, self.place, at, self.assumed)

    def of_attempt(self, n: int) -> range:
        """Indexes of one attempt's points; attempts never go back within a stream."""
        first = bisect_right(self.attempts, n - 1)
        return range(first, bisect_right(self.attempts, n))

    def counted(self, n: int) -> Sequence[int]:
        """Those of them that bear a step, and those before any could, as of an epoch whose number
        of steps is told at its end; all where few do. A bar and a loss may be two points of one
        step, of which one bears its number."""
        span = self.of_attempt(n)
        told = [i for i in span if self.steps[i] >= 0]
        if 3 * len(told) < len(span):
            return span
        before = range(span.start, told[0] if told else span.start)
        return [*before, *told] if len(before) >= UNNUMBERED else told


class OnLines:
    """Matches by the lines they are on; asked thousands of times of thousands of matches."""

    def __init__(self, matches: Sequence[Match]) -> None:
        self._matches = matches
        self._rows: dict[str, list[tuple[int, int]]] = {}
        for line, n in sorted((match.cite.line, n) for n, match in enumerate(matches)):
            self._rows.setdefault(matches[n].cite.source, []).append((line, n))

    def within(self, source: str, first: int, last: int) -> tuple[Match, ...]:
        """Those on lines first..last of a source, in the order they were given."""
        rows = self._rows.get(source, [])
        found = rows[bisect_left(rows, (first, 0)) : bisect_left(rows, (last + 1, 0))]
        return tuple(self._matches[n] for n in sorted(n for _, n in found))


class Reach:
    """
    Of many streams of ascending values, how far the furthest had come by a value, and how far it
    went on after it; asked a thousand times of a thousand streams.
    """

    def __init__(self, streams: Iterable[tuple[str, Sequence[float]]]) -> None:
        """Each with its owner, whose streams a question may leave out; nan stands for what is not
        known of one."""
        self._first, self._last = _Extremes(), _Extremes()
        self._owners: set[str] = set()
        for owner, stream in streams:
            if (values := _known(stream)) is None:
                continue
            self._owners.add(owner)
            self._first.add(owner, values)
            self._last.add(owner, [-value for value in reversed(values)])

    def before(self, value: float, without: str | None = None) -> int | None:
        """The most values up to this one that a stream has; None where there is no stream."""
        return self._first.up_to(value, without) if self._owners - {without} else None

    def after(self, value: float, without: str | None = None) -> int | None:
        """The most values beyond this one that a stream has; None where there is no stream."""
        return self._last.below(-value, without) if self._owners - {without} else None


def _known(values: Sequence[float]) -> Sequence[float] | None:
    """Those of a stream that are known; None where few are, or its last is not: an evaluation may
    be printed without a date, but what stands behind the last date would be missed."""
    known = [value for value in values if value == value]
    ends = not values or values[-1] == values[-1]
    return known if ends and 2 * len(known) >= len(values) else None


class _Extremes:
    """The least value at each place of many ascending streams, and the least of another owner."""

    def __init__(self) -> None:
        self._least: list[float] = []
        self._owner: list[str] = []
        self._other: list[float] = []

    def add(self, owner: str, values: Sequence[float]) -> None:
        least, owners, other = self._least, self._owner, self._other
        further = values[len(least) :]
        for n, (value, first, second) in enumerate(zip(values, least, other, strict=False)):
            if value < first:
                if owner != owners[n]:
                    other[n], owners[n] = first, owner
                least[n] = value
            elif value < second and owner != owners[n]:
                other[n] = value
        least += further
        owners += [owner] * len(further)
        other += [INFINITE] * len(further)

    def up_to(self, value: float, without: str | None) -> int:
        return bisect_right(range(len(self._least)), value, key=lambda n: self._at(n, without))

    def below(self, value: float, without: str | None) -> int:
        return bisect_left(range(len(self._least)), value, key=lambda n: self._at(n, without))

    def _at(self, n: int, without: str | None) -> float:
        return self._other[n] if self._owner[n] == without else self._least[n]


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


@dataclass(frozen=True, slots=True)
class Plan:
    """How far a run is to go, in steps and in epochs, as far as its logs say."""

    steps: int | None = None
    epochs: float | None = None


def plan_of(tracks: Sequence[Track], markers: Iterable[Marker]) -> Plan:
    """
    What the program says it is going to do; else what its printed configuration plans.

    A configuration counts where all of it that was printed agrees (a warm-up, a scheduler and a
    second stage have counts of the same names) and where the run did not go beyond it.
    """
    said = [t.planned for t in tracks if t.planned]
    epochs = [t.epochs for t in tracks if t.epochs]
    furthest = max((max(t.steps, default=-1) for t in tracks), default=-1)
    set_steps: set[int] = set()
    set_epochs: set[float] = set()
    for marker in markers:
        point = marker.progress
        if marker.kind == "bar" and (point.planned or 0) < furthest:
            continue  # of something else
        if marker.kind != "config":
            said += [point.planned] if point.planned else []
            epochs += [point.epochs] if point.epochs else []
            continue
        set_steps |= {point.planned} if point.planned else set()
        set_epochs |= {point.epochs} if point.epochs else set()
    many = max(epochs, default=None) or (set_epochs.pop() if len(set_epochs) == 1 else None)
    if said:
        return Plan(max(said), many)
    steps = set_steps.pop() if len(set_steps) == 1 else None
    each = max((t.per_epoch for t in tracks if t.per_epoch), default=None)
    if steps is None and many and each:
        steps = round(many * each)
    return Plan(steps if steps is not None and steps >= furthest else None, many)


def reached(track: Track, span: range, plan: Plan) -> bool:
    """
    Whether the last of these points is the last the plan leaves room for.

    The next one, a printing interval on, would lie beyond the plan: a stream that prints step 10,
    20 ... is not at its end at 90 of 100.  A stream that begins at step 0 ends one before its
    plan.  Without a plan in steps, or where the points bear no number, the epochs decide, where a
    point stands for a whole epoch or says which part of it is done.
    """
    steps = [step for step in track.steps[span.start : span.stop] if step >= 0]
    planned = track.planned or plan.steps
    if planned and len(steps) >= 2:
        if steps[-1] > planned + 1:  # not the plan of these: a bar of another loop's
            return False
        before = next((step for step in reversed(steps) if step < steps[-1]), steps[-1] - 1)
        zero = min(step for step in track.steps if step >= 0) == 0
        return 2 * steps[-1] - before > planned - zero
    by_epochs = not planned or not steps
    return by_epochs and _last_epoch(track, span, track.epochs or plan.epochs)


def _last_epoch(track: Track, span: range, planned: float | None) -> bool:
    """Whether the epochs of these points reach the planned number of them."""
    epochs = [track.epoch[i] for i in span if track.epoch[i] == track.epoch[i]]
    if not planned or len(epochs) < 2 or not track.has_loss[span[-1]]:
        return False
    first, before, last = min(track.epoch), epochs[-2], epochs[-1]
    base = min(floor(first), 1) if first == first else 1
    if all(epoch == floor(epoch) for epoch in epochs):
        rising = all(b > a for a, b in pairwise(epochs))
        return rising and last == base + planned - 1
    end = base + planned
    return end >= last > before and (last == end or 2 * last - before > end + ROUNDED)


HANDLED = "handled"
"""Before what a line stood for of which its program took care: no failure, and not absent."""
SHOWN = "shown"
"""Tag of a line that the log may only show."""


def stands_for(token: str, match: Match) -> bool:
    """Whether a match is of the kind a token of an absence names."""
    kind, _, name = token.partition(":")
    signature = match.signature
    if f"{HANDLED} {token}" in signature.tags:
        return True
    if kind == "family":
        return signature.role == "root" and name in (signature.family, signature.late_family)
    if kind == "tag":
        return name in signature.tags
    return kind == "signature" and signature.id == name
