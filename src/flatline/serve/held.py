"""
The opened target and what it answers, for one request after another.

Questions are answered one at a time: the evaluator works on whole arrays, and what a store keeps
for the next question is not made for two at once.  Who waits longer than is allowed for his turn
gets a timeout, as one whose own question takes that long.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from time import monotonic
from typing import Any, Literal

import numpy as np

from flatline.collect.stores import EVER, OnFile, open_store
from flatline.errors import QueryRejected, QueryTimedOut
from flatline.model import Gap
from flatline.redact import mask
from flatline.series.matching import Matcher
from flatline.series.promql import response
from flatline.series.promql.evaluate import MAX_STEPS, Settings, instant, kind, over, samples
from flatline.series.promql.parse import parse
from flatline.series.promql.settings import EXPERIMENTAL, SINCE_3
from flatline.series.promql.tree import Call, Expr, Selector, Text, inner, walk
from flatline.series.storage import NAME, Labels, MemoryStore, Series, Store
from flatline.serve.asked import Refused, wrong
from flatline.signals import SIGNALS
from flatline.vocab import bind, vocabularies

MOST_SELECTORS = 200
MOST_WARNINGS = 10


@dataclass(frozen=True, slots=True)
class Asking:
    """How a query is to be answered: by when, in seconds, and how long a sample stands."""

    within_s: float
    lookback_s: float | None = None


class Held:
    """Every answer is the `data` of a response."""

    def __init__(
        self,
        store: Store,
        gaps: Iterable[Gap] = (),
        compat: Literal[2, 3] = 3,
    ) -> None:
        self.store = store
        self.settings = Settings(compat=compat)
        self._first_gaps = tuple(gaps)
        self._turn = threading.Lock()

    @property
    def warnings(self) -> list[str]:
        """What of the target could not be read, as every answer of numbers says it."""
        later = getattr(self.store, "gaps", ())
        gaps = list(dict.fromkeys((*self._first_gaps, *later)))
        said = [mask(f"{g.where}: {g.need}: {g.reason}" if g.where else f"{g.need}: {g.reason}")
                for g in gaps[:MOST_WARNINGS]]  # fmt: skip
        left = len(gaps) - MOST_WARNINGS
        return said + ([f"and {left} more gaps"] if left > 0 else [])

    @cached_property
    def span(self) -> tuple[float, float] | None:
        """First and last time any sample has."""
        return self.store.span

    @property
    def end(self) -> float:
        """The last time there is anything: what "now" is for who names no time."""
        return self.span[1] if self.span is not None else 0.0

    # --- numbers ---

    def at(self, query: str, time: float, asking: Asking) -> dict[str, Any]:
        """The answer to a query at one time. Raises Refused."""
        with self._answering(query, asking) as (asked, settings):
            if asked == "string":
                text = inner(parse(query, settings.compat))
                assert isinstance(text, Text)
                return response.of_text(text.value, time)
            if asked == "matrix":
                return response.of_samples(samples(query, self.store, time, settings))
            return response.at_once(instant(query, self.store, time, settings))

    def over(
        self, query: str, first: float, last: float, step_s: float, asking: Asking
    ) -> dict[str, Any]:
        """The answer to a query over first..last. Raises Refused."""
        if last < first:
            raise wrong("end", f"{last:.3f}", "lies before the start")
        if (last - first) // step_s > MAX_STEPS:
            raise Refused(
                "bad_data",
                f"a range of more than {MAX_STEPS:,} steps: take a longer one",
            )
        with self._answering(query, asking) as (asked, settings):
            if asked in ("matrix", "string"):
                raise wrong("query", query, f"is a {asked}, which has no answer over a range")
            return response.over_range(over(query, self.store, first, last, step_s, settings))

    @contextmanager
    def _answering(self, query: str, asking: Asking) -> Iterator[tuple[str, Settings]]:
        """Its kind, and how it is answered, while it is the query's turn."""
        until = monotonic() + asking.within_s
        asked = self.parsed(query)[1]
        settings = replace(self.settings, until=until)
        if asking.lookback_s is not None:
            settings = replace(settings, lookback_s=asking.lookback_s)
        try:
            with self._one_at_a_time(asking.within_s):
                yield asked, settings
        except QueryTimedOut as fault:
            raise Refused("timeout", f"{fault}: {asking.within_s:g} s") from fault
        except QueryRejected as fault:
            raise Refused("execution", mask(str(fault))) from fault

    @contextmanager
    def _one_at_a_time(self, within_s: float) -> Iterator[None]:
        if not self._turn.acquire(timeout=min(within_s, threading.TIMEOUT_MAX)):
            raise QueryTimedOut("other queries took as long as this one may wait")
        try:
            yield
        finally:
            self._turn.release()

    def parsed(self, query: str) -> tuple[Expr, str]:
        """A query and its kind. Raises Refused where it is none that could be answered."""
        try:
            expr = parse(query, self.settings.compat)
            asked = kind(expr, self.settings)
        except QueryRejected as fault:
            raise Refused("bad_data", f'invalid parameter "query": {mask(str(fault))}') from fault
        refused = EXPERIMENTAL if self.settings.compat == 3 else SINCE_3
        for called in walk(expr):
            name = called.function if isinstance(called, Call) else ""
            if name in refused:
                raise wrong("query", query, f"calls {name}, which is not answered here")
        return expr, asked

    # --- what there is ---

    def series(
        self, selectors: Sequence[str], first: float, last: float, within_s: float
    ) -> list[Labels]:
        """The labels of the series of any of the selectors, of all where there is none."""
        matchers = [self._matchers(text) for text in selectors[:MOST_SELECTORS]] or [()]
        if len(selectors) > MOST_SELECTORS:
            raise Refused("bad_data", f"more than {MOST_SELECTORS} selectors")
        try:
            with self._one_at_a_time(within_s):
                found = {labels for one in matchers for labels in self._there(one, first, last)}
        except QueryTimedOut as fault:
            raise Refused("timeout", str(fault)) from fault
        except QueryRejected as fault:
            raise Refused(
                "bad_data", f'invalid parameter "match[]": {mask(str(fault))}'
            ) from fault
        return sorted(found)

    def _there(self, matchers: tuple[Matcher, ...], first: float, last: float) -> Sequence[Labels]:
        """
        Those that have samples about that time.

        Of memory it is told by the first and the last sample of a series; of a database on disk
        all are given, since telling them apart would read every sample.
        """
        span = self.span
        if span is None or (isinstance(self.store, MemoryStore) and not self._any(first, last)):
            return []
        if not isinstance(self.store, MemoryStore) or (first <= span[0] and last >= span[1]):
            return [] if first > span[1] or last < span[0] else self.store.labels(matchers)
        found = self.store.select(matchers, *EVER)
        begins, ends = _lifetimes(found)
        alive = np.flatnonzero((begins <= last) & (ends >= first))
        return [found.labels[row] for row in alive.tolist()]

    def _any(self, first: float, last: float) -> bool:
        return self.span is not None and first <= self.span[1] and last >= self.span[0]

    def _matchers(self, text: str) -> tuple[Matcher, ...]:
        try:
            expr = inner(parse(text, self.settings.compat))
        except QueryRejected as fault:
            raise Refused(
                "bad_data", f'invalid parameter "match[]": {mask(str(fault))}'
            ) from fault
        if not isinstance(expr, Selector) or expr.range_ms is not None:
            raise wrong("match[]", text, "is no selector of series")
        if expr.name is None:
            return expr.matchers
        return (Matcher(NAME, "=", expr.name), *expr.matchers)

    @cached_property
    def metadata(self) -> Mapping[str, dict[str, str]]:
        """Kind and meaning of the metrics that a known exporter wrote; the others have none."""
        names = self.store.names()
        found: dict[str, dict[str, str]] = {}
        for vocabulary in vocabularies():
            exporter = bind(vocabulary, names)
            for carrier in exporter.carriers.values() if exporter else ():
                signal = SIGNALS[carrier.signal]
                said = {"type": signal.kind, "help": signal.meaning, "unit": ""}
                found.setdefault(carrier.metric, said)
        return dict(sorted(found.items()))


def opened(
    targets: tuple[str, ...], compat: Literal[2, 3] = 3, on_progress: OnFile | None = None
) -> Held:
    """The targets as they can be asked. Raises UsageError where they hold no numbers."""
    found = open_store(targets, on_progress)
    return Held(found.store, found.gaps, compat)


def _lifetimes(series: Series) -> tuple[Any, Any]:
    """First and last time of each series; of one without samples none that is ever asked for."""
    sizes = np.diff(series.offsets)
    begins, ends = np.full(len(series), inf), np.full(len(series), -inf)
    there = sizes > 0
    begins[there] = series.times[series.offsets[:-1][there]]
    ends[there] = series.times[series.offsets[1:][there] - 1]
    return begins, ends
