"""What a page shows beside the verdict: curves, places over time, lines around the evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from flatline.model import Disposition


@dataclass(frozen=True, slots=True)
class Band:
    """One attempt on the common axis, from `start` to `end`. `first` and `last` are its steps, or
    its points counted from 1 where the axis does not count steps."""

    attempt: int
    disposition: Disposition
    start: float
    end: float
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Curve:
    """
    One printed quantity as runs of (position, value), a run an attempt.

    NaN and infinity are values.  Where there are fewer points than were `printed`, each stretch
    of the axis keeps its least, its greatest and its first non-finite value.
    """

    name: str
    unit: str
    runs: tuple[tuple[tuple[float, float], ...], ...]
    printed: int


@dataclass(frozen=True, slots=True)
class Mark:
    """An event at a position of the axis; `step` is None where it is not said."""

    kind: Literal["onset", "checkpoint", "resume"]
    at: float
    step: int | None = None


@dataclass(frozen=True, slots=True)
class Curves:
    """
    Everything drawn over one axis, on which attempts lie end to end in their order.

    `by_step` is false where steps are not printed or go back within an attempt: then the axis
    counts points.  `left_out` attempts before the first band are not drawn.
    """

    sources: tuple[str, ...]
    by_step: bool
    bands: tuple[Band, ...]
    curves: tuple[Curve, ...]
    marks: tuple[Mark, ...]
    left_out: int = 0


Span = tuple[datetime, datetime]
"""The earliest and the latest of several instants."""


@dataclass(frozen=True, slots=True)
class Row:
    """
    Places that did the same last: `numbers` are ranks or tasks, empty where hosts are the rows.

    `heard` is the span of the last dated lines of its places, `said` what they raised or what
    was recorded of them, `line` the last line of the first of them with its place in a log.
    Times that are only a lower bound stand in no span.
    """

    numbers: tuple[int, ...]
    hosts: tuple[str, ...]
    culprit: bool = False
    read: bool = True
    steps: tuple[int, int] | None = None
    stepped: Span | None = None
    heard: Span | None = None
    waits_in: str | None = None
    said: str | None = None
    said_at: Span | None = None
    ended: str | None = None
    ended_at: Span | None = None
    line: tuple[str, int, str] | None = None


@dataclass(frozen=True, slots=True)
class Places:
    """
    Rows over one span of time, culprits first; `word` is what a number is.

    `start` and `end` are None where no line carries a time.  `left_out` rows hold `folded`
    places that no row shows.
    """

    word: Literal["rank", "task", "host"]
    rows: tuple[Row, ...]
    start: datetime | None
    end: datetime | None
    left_out: int = 0
    folded: int = 0


@dataclass(frozen=True, slots=True)
class Quote:
    """Masked lines of a log from line `first` on."""

    first: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Both:
    """One quantity of the run and of its baseline over one axis; `mark` stands behind its
    numbers. Every value is finite."""

    name: str
    axis: str
    mark: str
    ours: tuple[tuple[float, float], ...]
    theirs: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Exhibit:
    """What was seen beside what is claimed. `quotes` are keyed by source and cited line."""

    curves: Curves | None = None
    places: tuple[Places, ...] = ()
    quotes: Mapping[tuple[str, int], Quote] = field(default_factory=dict)
    compared: tuple[Both, ...] = ()


NOTHING = Exhibit()
