"""
Metrics behind one question: canonical PromQL in, an answer by place out.

An engine answers what the data understands: the embedded one over files read once into memory,
or any other that is given (a TSDB directory, a server); exporters are told by the metrics they
hold.  Every answer is kept, so that asking again costs nothing and what was asked can be told.
`replay` runs a citation's own query again, knowing nothing of how it was made.

NumPy and the parser are imported when a source is made, never for `recognise`: a target without
metrics does not pay for them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from math import ceil, floor, isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flatline.errors import FormatError, SourceError
from flatline.model import Gap, Place, QueryCite
from flatline.series.smi import form_of
from flatline.signals import NEEDS, SIGNALS

if TYPE_CHECKING:
    from flatline.series.answer import Answer, Placed, Row
    from flatline.series.engine import Engine
    from flatline.series.matching import Matcher
    from flatline.series.storage import Labels
    from flatline.vocab import Exporter
    from flatline.vocab.rewrite import Groups, Native, Scope

Window = tuple[datetime | None, datetime | None]
OPEN: Window = (None, None)
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
    Whether a file's beginning is Prometheus text, OpenMetrics, or what an smi tool printed.

    A line of metadata decides; without any, nearly every line must be a labelled sample, so that
    a log that prints `{...} 3` is none.
    """
    if b"\0" in head:
        return False
    if form_of(head) is not None:
        return True
    lines = list(filter(bytes.strip, head.split(b"\n", HEAD_LINES)[:HEAD_LINES]))
    if len(lines) > 1 and not head.endswith(b"\n"):
        lines.pop()
    if any(_META.match(line) for line in lines[:20]):
        return True
    others, few = (1 for line in lines if _SAMPLE.match(line) is None), len(lines) // 10
    return bool(lines) and sum(islice(others, few + 1)) <= few


@dataclass(frozen=True, slots=True)
class Carried:
    """What carries a signal here: `unit` is the exporter's own, `hosts` are those it covers."""

    signal: str
    exporter: str
    metric: str
    unit: str
    hosts: tuple[str, ...]


class MetricsSource:
    """
    Metrics of one run behind an engine. What could not be had of them stands in `gaps`.

    `scope` narrows every question to the hosts and GPUs the run held, `within` to its time:
    either end may be open.
    """

    def __init__(
        self,
        files: Sequence[tuple[Path, str]] = (),
        scope: Scope | None = None,
        addresses: Mapping[str, str] | None = None,
        *,
        engine: Engine | None = None,
        within: Window = OPEN,
    ) -> None:
        """Files are read into memory and asked by the embedded engine, unless one is given."""
        from flatline.vocab.origins import Origins
        from flatline.vocab.readings import Readings
        from flatline.vocab.rewrite import Scope

        gaps: list[Gap] = []
        self._engine = in_memory(files, gaps) if engine is None else engine
        self.name, self.engine = self._engine.source, self._engine.name
        self.scope = scope or Scope()
        self._within = within
        read = Readings(self._engine, self.scope, addresses or {}, self.window)
        self._engine, self._exporters, self._late = read.engine, read.exporters, read.late
        gaps += read.gaps
        self._origins = Origins(self._engine, self._exporters, self.scope, self.window, self._late)
        self._gaps = (*gaps, *self._origins.gaps)
        self._placed: dict[str, dict[Labels, Placed]] = {}
        self._answers: dict[tuple[str, float, float, float, str | None], Answer] = {}

    def narrow(self, gpus: Mapping[str, tuple[str, ...]]) -> None:
        """Leaves out what other GPUs of these hosts did."""
        from flatline.vocab.origins import Origins

        self.scope = replace(self.scope, gpus=gpus)
        self._origins = Origins(self._engine, self._exporters, self.scope, self.window, self._late)
        self._gaps = (*self._gaps, *self._origins.gaps)
        self._answers = {}

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """What could not be had; asking can add to it."""
        return tuple(dict.fromkeys((*self._gaps, *self._engine.gaps, *self._origins.unanswered)))

    # --- what is there ---

    @property
    def window(self) -> tuple[datetime, datetime] | None:
        """From the first sample to the last, in whole seconds, within the run's time; None where
        there is none."""
        span = self._engine.span
        if span is None:
            return None
        first, last = _instant(floor(span[0])), _instant(ceil(span[1]))
        after, until = self._within
        first, last = max(first, after or first), min(last, until or last)
        return (first, last) if first <= last else None

    @property
    def answers(self) -> tuple[Answer, ...]:
        """Every answer given so far, in order."""
        return tuple(self._answers.values())

    def carries(self, *signals: str) -> bool:
        """Whether one exporter carries all of these signals."""
        return self._origins.carries(*signals)

    def selectors(self) -> tuple[tuple[str, Groups], ...]:
        """Every native metric that is read, with the matchers that narrow it to the run."""
        return tuple((c.metric, ((),) if {"host", "gpu"} & c.labels.keys()
                      else self._origins.groups[e.name])
                     for e in self._exporters for c in e.carriers.values())  # fmt: skip

    def carried(self) -> tuple[Carried, ...]:
        """Every signal with each exporter that carries it, its metric, unit and hosts."""
        from flatline.vocab.origins import natives

        return tuple(
            Carried(signal, exporter.name, carrier.metric, carrier.unit, tuple(sorted(
                {exporter.host(h) for h in natives(self._engine, exporter, "host", signal)})))
            for exporter in self._exporters
            for signal, carrier in exporter.carriers.items()
        )  # fmt: skip

    def measured(self, need: str) -> bool:
        """Whether of every group of signals a need in words stands for one is carried, or a
        signal by its name; a need that is not known is not met."""
        groups = NEEDS.get(need) or (((need,),) if need in SIGNALS else ())
        return bool(groups) and all(any(map(self.carries, group)) for group in groups)

    # --- asking ---

    def ask(
        self,
        promql: str,
        start: datetime | None = None,
        end: datetime | None = None,
        step_s: float | None = None,
        exporter: str | None = None,
    ) -> Answer:
        """
        The answer to a canonical query over start..end, by default over all there is.

        Without a step there are at most STEPS points; where start and end are the same, or the
        step is 0, there is one, at the end.  Where several exporters share the hosts, each answers
        for its own; one number over all hosts is that of the exporter with most series, or of the
        one that is named.  A signal nothing carries gives an answer without rows that names it in
        `missing`.  Raises QueryRejected for a query that is wrong.
        """
        first, last = self._bounds(start, end)
        if step_s is None:
            step_s = float(max(1, ceil((last - first) / STEPS)))
        if first == last or step_s == 0:
            first, step_s = last, 0.0
        key = (promql, first, last, step_s, exporter)
        if key not in self._answers:
            self._answers[key] = self._ask(promql, first, last, step_s, exporter)
        return self._answers[key]

    def _bounds(self, start: datetime | None, end: datetime | None) -> tuple[float, float]:
        window = self.window or (_instant(0), _instant(0))
        first = (start or window[0]).timestamp()
        last = (end or window[1]).timestamp()
        return min(first, last), last

    def _ask(
        self, promql: str, first: float, last: float, step_s: float, only: str | None
    ) -> Answer:
        from flatline.series.answer import Answer, Table, rows_of
        from flatline.series.promql.parse import parse
        from flatline.vocab.kinds import unit_of
        from flatline.vocab.origins import either, stacked

        expr = parse(promql)
        answer = Answer(promql, "", self.engine, self.name, unit_of(expr),
                        _instant(first), _instant(last), step_s)  # fmt: skip
        told = self._origins.told(expr, only)
        if isinstance(told, tuple):
            return replace(answer, missing=told)
        texts = {exporter.name: native.text for exporter, native in told}
        parts = [self._engine.run(text, first, last, step_s) for text in texts.values()]
        table = Table(stacked(parts))
        rows: list[Row] = []
        for (exporter, _), part in zip(told, parts, strict=True):
            placed = self._placed.setdefault(exporter.name, {})
            rows += rows_of(
                part.labels, table, len(rows), (exporter.name, exporter.canonical), placed
            )
        by_name = {exporter.name: exporter for exporter, _ in told}

        def pin(row: Row, time: float) -> tuple[str, float]:
            exporter = by_name[row.exporter]
            return self._pinned(promql, texts[exporter.name], exporter, row, time)

        pods = {pod: host for one, _ in told for pod, host in one.pods.items()}
        return replace(answer, query=either([n for _, n in told]).text, rows=tuple(rows), pin=pin,
                       pods=pods)  # fmt: skip

    def native(self, promql: str) -> Native | Gap:
        """A canonical query as the data understands it, narrowed to the run; a gap where nothing
        carries it. Raises QueryRejected."""
        from flatline.series.promql.parse import parse
        from flatline.vocab.origins import either

        told = self._origins.told(parse(promql))
        return told[0] if isinstance(told, tuple) else either([native for _, native in told])

    def restriction(self, metric: str, labels: Collection[str]) -> tuple[Matcher, ...]:
        """What narrows a native metric with these labels to the run's hosts."""
        able = [
            e for e in self._exporters if "host" in e.labels and e.labels["host"].label in labels
        ]
        own = [e for e in able if any(c.metric == metric for c in e.carriers.values())]
        groups = self._origins.groups[(own or able)[0].name] if able else ()
        return groups[0] if len(groups) == 1 else ()

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
            found = self._engine.run(narrow.text, time, time, 0.0)
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
        if not self._engine.answers_as(engine):
            raise SourceError(f"the citation was answered by {engine!r}, not by {self.engine!r}")
        return self._value(query, first, last, step_s, place)

    def _value(self, query: str, first: float, last: float, step_s: float, place: Place) -> float:
        matrix = self._engine.run(query, first, last, step_s)
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
        exporter reads them as a place, are the same, by whichever name of its host."""
        from flatline.series.answer import place_of

        native, plain = dict(labels), [replace(one, hosts={}) for one in self._exporters]
        places = {place_of(one.canonical(native)) for one in (*self._exporters, *plain)}
        return place in places or not places


# --- pieces -------------------------------------------------------------------------------------


def in_memory(files: Sequence[tuple[Path, str]], gaps: list[Gap]) -> Engine:
    """Prometheus text and OpenMetrics read whole; what could not be is a gap."""
    from flatline.series.engine import Embedded
    from flatline.series.quality import without_blanks
    from flatline.series.storage import MemoryStore, SeriesBuilder

    builder = SeriesBuilder()
    asked = _carried()
    read = [source for path, source in files if read_file(path, source, builder, gaps, asked)]
    series, blank = without_blanks(builder.build())
    store = MemoryStore(series)
    if blank:
        gaps.append(Gap("every sample of the metrics", f"{blank} samples hold the number by which"
                        " a driver says that it has none (as 2^64-1): left out"))  # fmt: skip
    if builder.conflicts:
        gaps.append(Gap("every sample of the metrics",
                        f"{builder.conflicts} samples have another value at the same time"
                        " of the same series; the first was kept"))  # fmt: skip
    return Embedded(store, _named(read))


def _carried() -> frozenset[str]:
    """The metrics that anything may ask for: those make room for the others last."""
    from flatline.vocab import vocabularies

    return frozenset(
        name
        for vocabulary in vocabularies()
        for name in (*(c.metric for c in vocabulary.carriers), *vocabulary.recognised_by)
    )


def read_file(
    path: Path, source: str, builder: Any, gaps: list[Gap], asked: frozenset[str] = frozenset()
) -> bool:
    """One file into the builder; whether it gave anything."""
    from flatline.series.exposition import read
    from flatline.series.smi import read_smi

    try:
        with path.open("rb") as file:
            smi = form_of(file.read(65_536)) is not None
        found = read_smi(path, source, builder) if smi else read(path, source, builder, asked).gaps
        gaps.extend(found)
    except FormatError as fault:
        gaps.append(Gap("metrics", f"not read as metrics: {fault}", source))
        return False
    except OSError as fault:
        gaps.append(Gap("metrics", fault.strerror or str(fault), source))
        return False
    return True


def _named(sources: Sequence[str]) -> str:
    if not sources:
        return "metrics"
    return sources[0] if len(sources) == 1 else f"{sources[0]} and {len(sources) - 1} more"


def _instant(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _same(a: float, b: float) -> bool:
    return a == b or (isnan(a) and isnan(b))


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
