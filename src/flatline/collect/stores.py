"""
The numbers a target holds, behind PromQL as it stands: no vocabulary, no scope.

Citations ask canonical questions through `sources`; here somebody asks in the data's own names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from math import ceil, floor
from typing import TYPE_CHECKING, Literal

from flatline.collect.files import Found, walk
from flatline.errors import FormatError, UsageError
from flatline.facts import METRICS
from flatline.model import Gap
from flatline.sources import capsule

if TYPE_CHECKING:
    from flatline.series.columnar import ColumnarStore
    from flatline.series.promql.evaluate import Matrix
    from flatline.series.storage import Series, Store
    from flatline.series.tsdb.database import Database

EVER = (-1e15, 1e15)
STEPS = 240
"""Most points an answer has where no step is asked for."""
NICE_S = (1, 5, 10, 15, 30, 60, 300, 600, 900, 1800, 3600, 7200, 21_600, 43_200, 86_400)


@dataclass(frozen=True, slots=True)
class Question:
    """
    A query of the targets' metrics at one time (`at`), or over start..end in steps.

    Without times it is over all there is; a range vector or a string is taken at the end.
    """

    query: str
    targets: tuple[str, ...]
    start: datetime | None = None
    end: datetime | None = None
    step_s: float | None = None
    at: datetime | None = None
    compat: Literal[2, 3] = 3


@dataclass(frozen=True, slots=True)
class Reply:
    """
    What a question came to: a matrix (of one time where `step_s` is None), samples, or a text.

    `metrics` says which metrics there are, for a query that names none of them.
    """

    found: Matrix | Series | str
    start: float
    end: float
    step_s: float | None
    engine: str
    gaps: tuple[Gap, ...]
    metrics: Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Opened:
    """A store over what the targets hold, from its first sample to its last."""

    store: Store
    window: tuple[float, float] | None
    gaps: tuple[Gap, ...]


def open_store(targets: tuple[str, ...]) -> Opened:
    """
    Every metrics file of the targets as one store.

    Raises UsageError where a target is not there, or none holds metrics.
    """
    from flatline.series.storage import MemoryStore, SeriesBuilder, each
    from flatline.sources.metrics import read_file

    gaps: list[Gap] = []
    builder = SeriesBuilder()
    files = [file for file in walk(targets, gaps) if file.kind == METRICS]
    if not files:
        raise UsageError(f"{', '.join(targets)} holds no metrics of a known format")
    for file in files:
        if not file.path.is_dir():
            read_file(file.path, file.source, builder, gaps)
            continue
        try:
            database = _folder(file)
        except FormatError as fault:
            gaps.append(Gap(METRICS, str(fault), file.source))
            continue
        if len(files) == 1:
            return Opened(database, database.span, (*gaps, *database.gaps))
        for labels, times, values in each(database.select((), *EVER)):
            builder.extend(builder.row(labels), times, values)
        gaps += database.gaps
    store = MemoryStore(builder.build())
    if builder.conflicts:
        gaps.append(Gap("every sample of the metrics",
                        f"{builder.conflicts} samples have another value at the same time"
                        " of the same series; the first was kept"))  # fmt: skip
    return Opened(store, store.span, tuple(gaps))


def _folder(file: Found) -> Database | ColumnarStore:
    from flatline.series.tsdb.database import Database

    if capsule.is_store(file.path):
        return capsule.store(file.path, file.source)
    return Database(file.path, file.source)


def ask(question: Question) -> Reply:
    """The answer. Raises QueryRejected for a query that is wrong, UsageError for the rest."""
    from flatline.series.promql import ENGINE
    from flatline.series.promql.evaluate import Settings, instant, kind, over, samples
    from flatline.series.promql.parse import parse
    from flatline.series.promql.tree import Text, inner

    settings = Settings(compat=question.compat)
    asked = kind(question.query, settings)
    opened = open_store(question.targets)
    first, last = _bounds(question, opened.window)
    found: Matrix | Series | str
    step_s: float | None = None
    if asked in ("matrix", "string") and (question.start or question.step_s):
        raise UsageError(f"a query of a {asked} has no answer over a range: ask --at one time")
    if asked == "string":
        text = inner(parse(question.query, settings.compat))
        assert isinstance(text, Text)
        found = text.value
    elif asked == "matrix":
        found = samples(question.query, opened.store, last, settings)
    elif question.at is not None:
        found = instant(question.query, opened.store, last, settings)
    else:
        step_s = question.step_s or _step(last - first)
        found = over(question.query, opened.store, first, last, step_s, settings)
    names = opened.store.names()
    return Reply(found, first, last, step_s, ENGINE, opened.gaps, names)


def _bounds(question: Question, window: tuple[float, float] | None) -> tuple[float, float]:
    if question.at is not None:
        return question.at.timestamp(), question.at.timestamp()
    first, last = (floor(window[0]), ceil(window[1])) if window else (0.0, 0.0)
    start = first if question.start is None else question.start.timestamp()
    end = last if question.end is None else question.end.timestamp()
    if end < start:
        raise UsageError("the range ends before it starts")
    return start, end


def _step(length_s: float) -> float:
    """A step people count in that gives at most STEPS points."""
    least = max(length_s / STEPS, 1.0)
    return next((float(step) for step in NICE_S if step >= least), float(ceil(least)))
