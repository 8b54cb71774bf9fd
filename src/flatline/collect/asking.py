"""
A query as somebody asks it, as it is run: canonical signals in the exporters' own names, and of
the data of a whole site what is the run's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from flatline.errors import QueryRejected
from flatline.model import Gap
from flatline.signals import SIGNALS

if TYPE_CHECKING:
    from flatline.series.matching import Matcher
    from flatline.series.promql.tree import Expr, Selector
    from flatline.series.storage import Store
    from flatline.sources.metrics import MetricsSource


@dataclass(frozen=True, slots=True)
class Own:
    """What its records say is the run's: hosts, the addresses they have, and its time."""

    hosts: tuple[str, ...] = ()
    addresses: Mapping[str, str] | None = None
    start: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True, slots=True)
class Meant:
    """The query that is run, whether it was rewritten, how many series of others were left out."""

    text: str
    rewritten: bool = False
    left_out: int = 0


def meant(query: str, compat: int, store: Store, source: str, own: Own | None) -> Meant:
    """Raises QueryRejected for signals beside metrics, and for those that nothing carries."""
    from flatline.series.promql.parse import parse
    from flatline.series.promql.tree import Selector, walk

    expr = parse(query, compat)
    selectors = [part for part in walk(expr) if isinstance(part, Selector)]
    names = store.names()
    signals = [s.name for s in selectors if s.name in SIGNALS and s.name not in names]
    if not signals and (own is None or not own.hosts):
        return Meant(query)
    asked = _source(store, source, own or Own())
    if signals:
        return _rewritten(asked, query, signals, selectors)
    return _narrowed(asked, store, expr, names)


def _source(store: Store, source: str, own: Own) -> MetricsSource:
    from flatline.series.engine import Embedded
    from flatline.sources.metrics import MetricsSource
    from flatline.vocab.rewrite import Scope

    return MetricsSource(
        scope=Scope(hosts=own.hosts), addresses=own.addresses, engine=Embedded(store, source)
    )


def _rewritten(
    source: MetricsSource, query: str, signals: list[str | None], selectors: list[Selector]
) -> Meant:
    other = next((s.name for s in selectors if s.name not in SIGNALS), None)
    if other is not None:
        raise QueryRejected(
            f"{signals[0]} is a canonical signal and {other} is not: ask in one vocabulary"
            " (`flatline signals` shows both)"
        )
    native = source.native(query)
    if isinstance(native, Gap):
        raise QueryRejected(f"{native.need}: {native.reason}")
    return Meant(native.text, rewritten=True)


def _narrowed(
    source: MetricsSource, store: Store, expr: Expr, names: Mapping[str, frozenset[str]]
) -> Meant:
    from flatline.series.matching import Matcher
    from flatline.series.promql.tree import render
    from flatline.series.storage import NAME
    from flatline.vocab.narrow import narrowed

    left = 0

    def extra(selector: Selector) -> tuple[Matcher, ...]:
        nonlocal left
        if selector.name is None:
            return ()
        own = source.restriction(selector.name, names.get(selector.name, frozenset()))
        if not own or {m.name for m in own} & {m.name for m in selector.matchers}:
            return ()
        every = (Matcher(NAME, "=", selector.name), *selector.matchers)
        kept, there = len(store.labels((*every, *own))), len(store.labels(every))
        if not kept or kept == there:
            return ()
        left += there - kept
        return own

    made = narrowed(expr, extra)
    return Meant(render(made), left_out=left) if left else Meant(render(expr))
