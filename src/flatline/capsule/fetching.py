"""
What a server holds of a run, as a store: the samples themselves, not an answer at steps.

`metric{...}[range]` asked at one time gives the raw samples of a window.  Windows follow one
another; one whose answer is too large is halved, and those after it are as short.  Stale markers
are not among what a server gives: a series that ended is seen for the five minutes of the
lookback longer than it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from flatline.errors import SourceError
from flatline.series.matching import Matcher
from flatline.series.promql.tree import Selector, render
from flatline.series.storage import NAME, Labels, Series, SeriesBuilder, labels_of, seconds
from flatline.sources.prometheus import PrometheusServer, TooMuch

SHORTEST_S = 15.0
"""A window that is too much at this length is given up."""


class FetchedStore:
    """The server's series of its metrics of interest. Raises SourceError where asking fails."""

    def __init__(self, server: PrometheusServer) -> None:
        self._server = server
        self._length_s = float("inf")

    @property
    def span(self) -> tuple[float, float] | None:
        return self._server.span

    def names(self) -> Mapping[str, frozenset[str]]:
        return self._server.names()

    def labels(self, matchers: Sequence[Matcher]) -> Sequence[Labels]:
        span = self.span
        return () if span is None else self.select(matchers, *span).labels

    def select(self, matchers: Sequence[Matcher], start: float, end: float) -> Series:
        builder = SeriesBuilder()
        name = next(m.value for m in matchers if m.name == NAME)
        others = tuple(m for m in matchers if m.name != NAME)
        at = start
        while at <= end:
            until = min(end, at + self._length_s)
            range_ms = max(1, round((until - at) * 1000) + 1)
            query = render(Selector(name, others, range_ms))
            try:
                found = self._server.data("query", {"query": [query], "time": [f"{until:.3f}"]})
            except TooMuch:
                if until - at <= SHORTEST_S:
                    raise
                self._length_s = (until - at) / 2
                continue
            _take(found, builder)
            at = until + 0.001
        return builder.build()


def _take(found: Any, builder: SeriesBuilder) -> None:
    result: Iterable[Any] = (found.get("result") if isinstance(found, dict) else None) or ()
    try:
        for item in result:
            row = builder.row(labels_of(item["metric"]))
            for at, value in item.get("values", ()):
                builder.add(row, seconds(float(at) * 1000), float(value))
    except (TypeError, ValueError, LookupError, AttributeError) as fault:
        raise SourceError("the server's answer holds no samples as Prometheus writes them") from (
            fault
        )
