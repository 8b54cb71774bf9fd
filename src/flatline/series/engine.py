"""
What answers a query in the language of the data: our evaluator over a store, or a server.

A source asks an engine and knows nothing of where the samples lie; a citation keeps the engine's
`name` and is run again by one that `answers_as` it does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Protocol

from flatline.model import Gap
from flatline.series.matching import Matcher
from flatline.series.promql import ENGINE
from flatline.series.storage import NAME, Store

if TYPE_CHECKING:
    from flatline.series.promql.evaluate import Matrix


class Engine(Protocol):
    """`source` is where the samples lie, as citations spell it; `name` the engine and version."""

    source: str
    name: str

    @property
    def span(self) -> tuple[float, float] | None:
        """First and last time there are samples for, in seconds; None where there are none."""

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """What could not be had so far; asking can add to it."""

    def names(self) -> Mapping[str, frozenset[str]]:
        """Every metric with the label names its series carry, `__name__` not among them."""

    def values(self, metrics: Collection[str], label: str) -> frozenset[str]:
        """Values a label has on the series of these metrics."""

    def run(self, query: str, first: float, last: float, step_s: float) -> Matrix:
        """The query at first, first + step, … last; once at `last` where they are the same or
        the step is 0.  Raises SourceError."""

    def answers_as(self, engine: str) -> bool:
        """Whether what an engine of this name answered may be asked here again."""


class Embedded:
    """Our own evaluator over a store."""

    name = ENGINE

    def __init__(self, store: Store, source: str) -> None:
        self.source = source
        self.store = store

    @property
    def span(self) -> tuple[float, float] | None:
        return self.store.span

    @property
    def gaps(self) -> tuple[Gap, ...]:
        return tuple(getattr(self.store, "gaps", ()))

    def names(self) -> Mapping[str, frozenset[str]]:
        return self.store.names()

    def values(self, metrics: Collection[str], label: str) -> frozenset[str]:
        told = getattr(self.store, "label_values", None)
        if told is not None:  # without making the labels of every series
            return frozenset(value for metric in metrics for value in told(metric, label))
        return frozenset(
            value
            for metric in metrics
            for labels in self.store.labels((Matcher(NAME, "=", metric),))
            for name, value in labels
            if name == label
        )

    def run(self, query: str, first: float, last: float, step_s: float) -> Matrix:
        from flatline.series.promql.evaluate import instant, over

        if first == last or step_s == 0:
            return instant(query, self.store, last)
        return over(query, self.store, first, last, step_s)

    def answers_as(self, engine: str) -> bool:
        return engine == self.name
