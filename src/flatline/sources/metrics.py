"""
Metrics files behind one question: canonical PromQL in, an answer by place out.

The files are read once into memory; exporters are told by the metrics they hold.  Every answer
is kept, so that asking again costs nothing and what was asked can be told.  `replay` runs a
citation's own query again, knowing nothing of how it was made.

NumPy and the parser are imported when a source is made, never for `recognise`: a target without
metrics does not pay for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from math import ceil, floor, isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flatline.errors import FormatError, SourceError
from flatline.model import Gap, Place, QueryCite
from flatline.signals import NEEDS, SIGNALS

if TYPE_CHECKING:
    from flatline.series.answer import Answer, Row
    from flatline.series.promql.evaluate import Matrix
    from flatline.series.storage import Labels
    from flatline.vocab import Exporter
    from flatline.vocab.rewrite import Groups, Scope

STEPS = 240
"""Points an answer has where no step is asked for: a point a minute over four hours."""
HEAD_LINES = 200
PLACES = ("host", "gpu", "device", "port")

_NAME = rb"[a-zA-Z_:][a-zA-Z0-9_:]*"
_META = re.compile(
    rb"# (?:HELP %b |TYPE %b (?:counter|gauge|histogram|gaugehistogram|summary|untyped|unknown|"
    rb"info|stateset)\s*$|UNIT %b |EOF\s*$)" % (_NAME, _NAME, _NAME)
)
_SAMPLE = re.compile(
    rb'(?:%b)?\{(?:[^"}]++|"(?:[^"\\]++|\\.)*+")*+\}[ \t]*[-+]?(?:[0-9.]+(?:e[-+]?\d+)?|inf|nan)'
    rb"(?:[ \t]+\d{9,13}(?:\.\d+)?)?[ \t]*(?:#.*)?\r?$" % _NAME,
    re.IGNORECASE,
)


def recognise(name: str, head: bytes) -> bool:
    """
    Whether a file's beginning is Prometheus text or OpenMetrics.

    A line of metadata decides; without any, nearly every line must be a labelled sample, so that
    a log that prints `{...} 3` is none.
    """
    if b"\0" in head:
        return False
    lines = [line for line in head.split(b"\n")[:HEAD_LINES] if line.strip()]
    if len(lines) > 1 and not head.endswith(b"\n"):
        lines.pop()
    if any(_META.match(line) for line in lines[:20]):
        return True
    samples = sum(_SAMPLE.match(line) is not None for line in lines)
    return samples > 0 and samples >= 0.9 * len(lines)


class MetricsSource:
    """
    Metrics files of one run. What could not be read of them stands in `gaps`.

    `scope` narrows every question to the hosts and GPUs the run held.
    """

    def __init__(self, files: Sequence[tuple[Path, str]], scope: Scope | None = None) -> None:
        from flatline.series.promql import ENGINE
        from flatline.series.storage import MemoryStore, SeriesBuilder
        from flatline.vocab import bind, vocabularies
        from flatline.vocab.rewrite import Scope

        gaps: list[Gap] = []
        builder = SeriesBuilder()
        asked = frozenset(
            name for v in vocabularies() for name in (*(c.metric for c in v.carriers),
                                                      *v.recognised_by)
        )  # fmt: skip
        read = [source for path, source in files if _read(path, source, builder, gaps, asked)]
        self._store = MemoryStore(builder.build())
        if builder.conflicts:
            gaps.append(Gap("every sample of the metrics",
                            f"{builder.conflicts} samples have another value at the same time"
                            " of the same series; the first was kept"))  # fmt: skip
        names = self._store.names()
        self._exporters = [e for v in vocabularies() if (e := bind(v, names)) is not None]
        for exporter in self._exporters:
            gaps.extend(exporter.gaps)
        if read and not self._exporters:
            gaps.append(Gap("GPU metrics", "no exporter that is known wrote these", read[0]))
        self.name = _named(read)
        self.engine = ENGINE
        self.scope = scope or Scope()
        self._groups: dict[str, Groups] = {}
        for exporter in self._exporters:
            self._groups[exporter.name], found = self._restrictions(exporter)
            gaps.extend(found)
        self.gaps = tuple(gaps)
        self._answers: dict[tuple[str, float, float, float], Answer] = {}

    def _restrictions(self, exporter: Exporter) -> tuple[Groups, tuple[Gap, ...]]:
        from flatline.vocab.rewrite import restrictions

        rule = exporter.labels.get("host")
        metrics = {carrier.metric for carrier in exporter.carriers.values()}
        hosts = {
            value
            for labels in map(dict, self._store.series.labels)
            if rule is not None
            and labels.get("__name__") in metrics
            and (value := labels.get(rule.label)) is not None
        }
        return restrictions(self.scope, exporter, hosts)

    # --- what is there ---

    @property
    def window(self) -> tuple[datetime, datetime] | None:
        """From the first sample to the last, in whole seconds; None where there is none."""
        span = self._store.span
        if span is None:
            return None
        return _instant(floor(span[0])), _instant(ceil(span[1]))

    @property
    def answers(self) -> tuple[Answer, ...]:
        """Every answer given so far, in order."""
        return tuple(self._answers.values())

    def carries(self, *signals: str) -> bool:
        """Whether one exporter carries all of these signals."""
        return any(all(s in e.carriers for s in signals) for e in self._exporters)

    def measured(self, need: str) -> bool:
        """Whether of every group of signals a need in words stands for one is carried; a need
        that is not known is not met."""
        groups = NEEDS.get(need, ())
        return bool(groups) and all(any(map(self.carries, group)) for group in groups)

    # --- asking ---

    def ask(
        self,
        promql: str,
        start: datetime | None = None,
        end: datetime | None = None,
        step_s: float | None = None,
    ) -> Answer:
        """
        The answer to a canonical query over start..end, by default over all there is.

        Without a step there are at most STEPS points; where start and end are the same, or the
        step is 0, there is one, at the end.  A signal nothing carries gives an answer without
        rows that names it in `missing`.  Raises QueryRejected for a query that is wrong.
        """
        first, last = self._bounds(start, end)
        if step_s is None:
            step_s = float(max(1, ceil((last - first) / STEPS)))
        if first == last or step_s == 0:
            first, step_s = last, 0.0
        key = (promql, first, last, step_s)
        if key not in self._answers:
            self._answers[key] = self._ask(promql, first, last, step_s)
        return self._answers[key]

    def _bounds(self, start: datetime | None, end: datetime | None) -> tuple[float, float]:
        window = self.window or (_instant(0), _instant(0))
        first = (start or window[0]).timestamp()
        last = (end or window[1]).timestamp()
        return min(first, last), last

    def _ask(self, promql: str, first: float, last: float, step_s: float) -> Answer:
        from flatline.series.answer import Answer
        from flatline.series.promql.parse import parse
        from flatline.vocab.kinds import unit_of
        from flatline.vocab.rewrite import rewrite, signals_in

        expr = parse(promql)
        answer = Answer(promql, "", self.engine, self.name, unit_of(expr),
                        _instant(first), _instant(last), step_s)  # fmt: skip
        names = tuple(signal.name for signal in signals_in(expr))
        exporter = self._exporter_of(names)
        if exporter is None:
            return replace(answer, missing=self._missing(names))
        native = rewrite(expr, exporter, self._groups[exporter.name])
        if isinstance(native, Gap):
            return replace(answer, missing=(native,))
        matrix = self._run(native.text, first, last, step_s)
        rows = tuple(_rows(matrix, exporter))

        def pin(row: Row, time: float) -> tuple[str, float]:
            return self._pinned(promql, native.text, exporter, row, time)

        return replace(answer, query=native.text, rows=rows, pin=pin)

    def _exporter_of(self, signals: Iterable[str]) -> Exporter | None:
        """Of the exporters that carry all these signals the one with most series of the first."""
        wanted = tuple(signals)
        able = [e for e in self._exporters if all(s in e.carriers for s in wanted)]
        return max(able, key=lambda e: self._count(e.carriers[wanted[0]].metric), default=None)

    def _count(self, metric: str) -> int:
        from flatline.series.matching import Matcher

        return len(self._store.select((Matcher("__name__", "=", metric),), 0.0, 0.0))

    def _missing(self, signals: Sequence[str]) -> tuple[Gap, ...]:
        from flatline.vocab.rewrite import missing_signal

        alone = [name for name in signals if not self.carries(name)]
        if alone:
            return tuple(missing_signal(SIGNALS[name]) for name in alone)
        return (Gap(" with ".join(signals), "no single exporter that was read carries them"),)

    def _run(self, query: str, first: float, last: float, step_s: float) -> Matrix:
        from flatline.series.promql.evaluate import instant, over

        if first == last or step_s == 0:
            return instant(query, self._store, last)
        return over(query, self._store, first, last, step_s)

    # --- citing, and running a citation again ---

    def _pinned(
        self, canonical: str, native: str, exporter: Exporter, row: Row, time: float
    ) -> tuple[str, float]:
        """The query narrowed to the row's own labels, where that still gives its value alone;
        else the whole query, if the row's place tells it from the others."""
        from flatline.series.matching import Matcher
        from flatline.vocab.rewrite import rewrite

        value = row.at(time)
        assert value is not None
        place = [rule.label for name, rule in exporter.labels.items()
                 if name in PLACES and rule.label in row.native]  # fmt: skip
        for labels in (place, sorted(row.native)):
            matchers = tuple(Matcher(name, "=", row.native[name]) for name in labels)
            narrow = rewrite(canonical, exporter, (matchers,)) if matchers else None
            if narrow is None or isinstance(narrow, Gap):
                continue
            found = self._run(narrow.text, time, time, 0.0)
            if len(found.labels) == 1 and _same(float(found.values[0, 0]), value):
                return narrow.text, value
        if _same(self._value(native, time, time, 0.0, row.place), value):
            return native, value
        raise SourceError(f"nothing tells {row.place} from the other series of {canonical}")

    def replay(self, item: QueryCite | Mapping[str, Any]) -> float:
        """
        The value a citation's query gives now: that of its place, at its end.

        Takes the citation, or the evidence as the JSON document has it.  Raises SourceError where
        another engine answered it, and where the query gives no value there, or several.
        """
        query, engine, first, last, step_s, place = _asked(item)
        if engine != self.engine:
            raise SourceError(f"the citation was answered by {engine!r}, not by {self.engine!r}")
        return self._value(query, first, last, step_s, place)

    def _value(self, query: str, first: float, last: float, step_s: float, place: Place) -> float:
        matrix = self._run(query, first, last, step_s)
        found = []
        for index, labels in enumerate(matrix.labels):
            if matrix.present[index, -1] and self._stands_at(labels, place):
                found.append(float(matrix.values[index, -1]))
        if len(found) != 1:
            where = f" on {place}" if place else ""
            raise SourceError(f"{query} gives {len(found)} values{where} at {_instant(last)}")
        return found[0]

    def _stands_at(self, labels: Labels, place: Place) -> bool:
        """Whether a series of a native query is the one of a place: its labels, as far as an
        exporter reads them as a place, are the same."""
        native = dict(labels)
        places = {_place(exporter.canonical(native)) for exporter in self._exporters}
        return place in places or not places


# --- pieces -------------------------------------------------------------------------------------


def _read(path: Path, source: str, builder: Any, gaps: list[Gap], known: frozenset[str]) -> bool:
    """One file into the builder; whether it gave anything."""
    from flatline.series.exposition import read

    try:
        found = read(path, source, builder, known)
    except FormatError as fault:
        gaps.append(Gap("metrics", f"not read as Prometheus text or OpenMetrics: {fault}", source))
        return False
    except OSError as fault:
        gaps.append(Gap("metrics", fault.strerror or str(fault), source))
        return False
    gaps.extend(found.gaps)
    return True


def _named(sources: Sequence[str]) -> str:
    if not sources:
        return "metrics"
    return sources[0] if len(sources) == 1 else f"{sources[0]} and {len(sources) - 1} more"


def _instant(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _same(a: float, b: float) -> bool:
    return a == b or (isnan(a) and isnan(b))


def _place(labels: Mapping[str, str]) -> Place:
    return Place(host=labels.get("host"), gpu=labels.get("gpu"), device=labels.get("device"))


def _rows(matrix: Matrix, exporter: Exporter) -> Iterable[Row]:
    """The series of a native answer by place."""
    from flatline.series.answer import Row

    for index, labels in enumerate(matrix.labels):
        native = {name: value for name, value in labels if name != "__name__"}
        canonical = exporter.canonical(native)
        there = matrix.present[index]
        yield Row(
            place=_place(canonical),
            labels=canonical,
            native=native,
            times=tuple(matrix.times[there].tolist()),
            values=tuple(matrix.values[index][there].tolist()),
        )


def _asked(
    item: QueryCite | Mapping[str, Any],
) -> tuple[str, str, float, float, float, Place]:
    if isinstance(item, QueryCite):
        return (item.query, item.engine, item.start.timestamp(), item.end.timestamp(),
                item.step_s, item.place)  # fmt: skip
    try:
        where = item.get("place") or {}
        place = Place(host=where.get("host"), gpu=where.get("gpu"), device=where.get("device"))
        first, last = (datetime.fromisoformat(item[key]).timestamp() for key in ("start", "end"))
        step_s = float(item.get("step_s") or 0.0)
        return str(item["query"]), str(item["engine"]), first, last, step_s, place
    except (KeyError, TypeError, ValueError, AttributeError) as fault:
        raise SourceError(f"this is no query citation: {fault}") from fault
