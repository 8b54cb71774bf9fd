"""
The numbers a target holds, behind PromQL as somebody asks it (see `asking`).

Citations ask canonical questions through `sources`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil, floor
from typing import TYPE_CHECKING, Literal

from flatline.collect.asking import Meant, Own, meant
from flatline.collect.files import Found, walk
from flatline.collect.scalars import read_scalars
from flatline.errors import FormatError, SourceError, UsageError
from flatline.facts import EVENTS, METRICS
from flatline.model import Gap
from flatline.sources import capsule

if TYPE_CHECKING:
    from flatline.series.columnar import ColumnarStore
    from flatline.series.masked import Masked
    from flatline.series.promql.evaluate import Matrix
    from flatline.series.storage import Series, SeriesBuilder, Store
    from flatline.series.tsdb.database import Database

OnFile = Callable[[str, int, int], None]
"""Told what is read, how many files are done, and of how many."""
FORMS = (
    "Prometheus text or OpenMetrics with times, a Prometheus database folder, a capsule, what"
    " nvidia-smi, rocm-smi and amd-smi printed, and TensorBoard event files"
)
EVER = (-1e15, 1e15)
BEYOND = 1.5
"""Data that reach so much further than the run are those of a site, not of the run."""
STEPS = 240
"""Most points an answer has where no step is asked for."""
FAR_S, SILENCE_S = 30 * 86_400.0, 86_400.0
"""Beyond this length a point stands for three hours or more; no scrape is a day late."""
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
    own: Own | None = None
    """What of a site's data is asked; None for all of it."""


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
    meant: Meant
    """The query as it was run."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A store over what the targets hold, from its first sample to its last."""

    store: Store
    window: tuple[float, float] | None
    gaps: tuple[Gap, ...]


def open_store(targets: tuple[str, ...], on_progress: OnFile | None = None) -> Opened:
    """
    Every metrics file of the targets as one store, and the scalars of their event files.

    Raises UsageError where a target is not there, or none holds numbers.
    """
    from flatline.series.storage import MemoryStore, SeriesBuilder

    gaps: list[Gap] = []
    builder = SeriesBuilder()
    files = [file for file in walk(targets, gaps) if file.kind in (METRICS, EVENTS)]
    if not files:
        raise UsageError(
            f"{', '.join(targets)} holds no metrics of a known format; known are {FORMS}"
        )
    if len(files) == 1 and files[0].path.is_dir():
        try:
            store = _folder(files[0])
            return Opened(store, store.span, (*gaps, *store.gaps))
        except FormatError as fault:
            gaps.append(Gap(METRICS, str(fault), files.pop().source))
    for number, file in enumerate(files):
        if on_progress is not None:
            on_progress("reading metrics", number, len(files))
        _read(file, builder, gaps)
    memory = MemoryStore(builder.build())
    if builder.conflicts:
        gaps.append(Gap("every sample of the metrics",
                        f"{builder.conflicts} samples have another value at the same time"
                        " of the same series; the first was kept"))  # fmt: skip
    return Opened(memory, memory.span, tuple(gaps))


def _folder(file: Found) -> Database | ColumnarStore | Masked:
    from flatline.series.masked import masked
    from flatline.series.tsdb.database import Database

    if capsule.is_store(file.path):
        return capsule.store(file.path, file.source)
    return masked(Database(file.path, file.source))


def _read(file: Found, builder: SeriesBuilder, gaps: list[Gap]) -> None:
    """One of several files into the builder; what could not be read is a gap."""
    from flatline.series.storage import each
    from flatline.sources.metrics import read_file

    if file.kind == EVENTS:
        try:
            read_scalars(file, builder, gaps)
        except SourceError as fault:
            gaps.append(Gap("training events", str(fault), file.source))
    elif not file.path.is_dir():
        read_file(file.path, file.source, builder, gaps)
    else:
        try:
            store = _folder(file)
        except FormatError as fault:
            gaps.append(Gap(METRICS, str(fault), file.source))
            return
        for labels, times, values in each(store.select((), *EVER)):
            builder.extend(builder.row(labels), times, values)
        gaps += store.gaps


def ask(question: Question) -> Reply:
    """The answer. Raises QueryRejected for a query that is wrong, UsageError for the rest."""
    from flatline.series.promql import ENGINE
    from flatline.series.promql.evaluate import Settings, instant, kind, over, samples
    from flatline.series.promql.parse import parse
    from flatline.series.promql.tree import Text, inner

    settings = Settings(compat=question.compat)
    asked = kind(question.query, settings)
    opened = open_store(question.targets)
    names = opened.store.names()
    if not names and opened.gaps:
        raise UsageError(_unread(opened.gaps))
    run = meant(question.query, settings.compat, opened.store, METRICS, question.own)
    window, gaps = _recent(question, opened)
    first, last = _bounds(question, window)
    found: Matrix | Series | str
    step_s: float | None = None
    if asked in ("matrix", "string") and (question.start or question.step_s):
        raise UsageError(f"a query of a {asked} has no answer over a range: ask --at one time")
    if asked == "string":
        text = inner(parse(question.query, settings.compat))
        assert isinstance(text, Text)
        found = text.value
    elif asked == "matrix":
        found = samples(run.text, opened.store, last, settings)
    elif question.at is not None:
        found = instant(run.text, opened.store, last, settings)
    else:
        step_s = question.step_s or _step(last - first)
        found = over(run.text, opened.store, first, last, step_s, settings)
    return Reply(found, first, last, step_s, ENGINE, (*opened.gaps, *gaps), names, run)


def _unread(gaps: tuple[Gap, ...]) -> str:
    """That nothing could be asked, why, and what to do."""
    gap = gaps[0]
    where = f"{gap.where}: " if gap.where else ""
    more = f" (and {len(gaps) - 1} more reasons)" if len(gaps) > 1 else ""
    return (
        f"no metrics could be read: {where}{gap.reason}{more}; name the files or the folder they"
        " came from, or make the capsule again"
    )


def _recent(
    question: Question, opened: Opened
) -> tuple[tuple[float, float] | None, tuple[Gap, ...]]:
    """The time to answer over where none is named: of data that lie so far apart that a step
    would pass a run by, the last stretch without a day's silence; and that it is so."""
    window, told = opened.window, getattr(opened.store, "times_s", None)
    named = question.at or question.start or question.end or question.step_s
    if window is not None and not named and (own := _own_time(question, window)) is not None:
        reason = "answered over the run's own time; name --start and --end for others"
        return own, (Gap("samples of every time", reason),)
    if window is None or told is None or named or window[1] - window[0] <= FAR_S:
        return window, ()
    times = told()
    silent = (times[1:] - times[:-1] > SILENCE_S).nonzero()[0]
    if not silent.size:
        return window, ()
    recent = float(times[silent[-1] + 1]), window[1]
    shown = "{:%Y-%m-%d %H:%M} UTC".format
    first, begin = (datetime.fromtimestamp(at, UTC) for at in (window[0], recent[0]))
    reason = (
        f"answered from {shown(begin)} on, after which there is no silence of a day; others reach"
        f" back to {shown(first)}: name --start and --end"
    )
    return recent, (Gap("samples of every time", reason),)


def _own_time(question: Question, window: tuple[float, float]) -> tuple[float, float] | None:
    """The run's time where its records tell it and the data reach further by its half."""
    own = question.own
    if own is None or own.start is None or own.end is None:
        return None
    first, last = max(own.start.timestamp(), window[0]), min(own.end.timestamp(), window[1])
    reach = window[1] - window[0]
    return (first, last) if first < last and reach > BEYOND * (last - first) else None


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
