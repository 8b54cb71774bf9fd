"""
What is wrong with readings that lie elsewhere, asked of the engine that has them.

Readings beyond what a card can have, and the numbers by which drivers say that they have none,
are looked for in one question per exporter; whether busy hosts stood still in another.  Only of
hosts that did are samples fetched, to be looked at one by one.  The answers lead to `Mend`s.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from flatline.model import Gap
from flatline.series.matching import Matcher, one_of, quoted
from flatline.series.promql.tree import (
    Aggregate,
    Binary,
    Call,
    Expr,
    Matching,
    Number,
    Selector,
    render,
)
from flatline.series.quality import BLANKS, STILL_S
from flatline.series.storage import NAME, Floats, Labels, Series, SeriesBuilder
from flatline.signals import ACTIVITY, GPU, SIGNALS
from flatline.vocab import Carrier, Exporter, Mend
from flatline.vocab.frozen import BUSY, NOISY, Frozen
from flatline.vocab.rewrite import Groups
from flatline.vocab.units import RANGES, factor_of, told

if TYPE_CHECKING:
    from flatline.series.engine import Engine
    from flatline.series.promql.evaluate import Matrix

LOOKS = 60
"""Times within a run at which its readings are looked at: an exporter writes in one unit as long
as it runs."""
MOST_SAMPLES = 4_000
"""Of one series that are fetched, of a host that stood still."""
Window = tuple[float, float]


def put_right(
    engine: Engine, exporter: Exporter, groups: Groups, window: Window
) -> tuple[Exporter, bool, list[Gap]]:
    """The exporter with what is wrong with its hosts' readings, whether it fell silent in truth,
    and what is said of it.  Raises SourceError."""
    if "host" not in exporter.labels:
        return exporter, False, []
    asked = _Asked(engine, exporter, groups, window)
    mends: dict[str, Mend] = {}
    gaps: list[Gap] = []
    asked.beyond(mends, gaps)
    late = asked.still(mends, gaps)
    return replace(exporter, mends=mends), late, gaps


class _Asked:
    """One exporter behind an engine, narrowed to the hosts of a run and its time."""

    def __init__(self, engine: Engine, exporter: Exporter, groups: Groups, window: Window) -> None:
        self._engine, self._exporter = engine, exporter
        self._first, self._last = window
        self._label = exporter.labels["host"].label
        self._hosts = _together(groups, self._label)
        own = [c for c in exporter.carriers.values() if "host" not in c.labels]
        self._carriers = [c for c in own if SIGNALS[c.signal].labels[:2] == GPU[:2]]

    def beyond(self, mends: dict[str, Mend], gaps: list[Gap]) -> None:
        """Numbers in another unit than their metric is of, and those that stand for none."""
        if not self._carriers:
            return
        every = [*{c.metric: None for c in self._carriers}]
        query: Expr = Binary(">=", self._highest(every), Number(float(BLANKS.min())))
        ranged = {c.metric: c for c in self._carriers if c.signal in RANGES}
        for metric, c in ranged.items():
            known, highest = RANGES[c.signal], self._highest([metric], c)
            beyond: list[Expr] = [Binary(">", highest, Number(known.most / c.scale))]
            if known.floor:
                below = Binary("<", highest, Number(known.floor / c.scale))
                beyond.append(Binary(">", below, Number(0.0)))
            for one in beyond:
                query = Binary("or", query, one, matching=Matching(True, (NAME, self._label)))
        step_s = max(1.0, ceil((self._last - self._first) / LOOKS))
        found = self._run(query, step_s)
        for labels, times, values in _rows(found):
            metric, host = labels.get(NAME, ""), labels.get(self._label, "")
            if metric not in every or not host:
                continue
            blank = np.isin(values, BLANKS)
            mend = mends.get(host, Mend())
            if blank.any():
                span = float(times[blank][0]) - step_s, float(times[blank][-1]) + step_s
                mend = replace(mend, blanks={**mend.blanks, metric: span})
                gaps.append(self._blank(metric, host))
            factor = _factor(ranged.get(metric), values[~blank])
            if factor is not None and (factor > 1 or self._never_more(ranged[metric], host)):
                mend = replace(mend, factors={**mend.factors, metric: factor})
                gaps.append(told(metric, factor, self._exporter.host(host)))
            if mend != Mend():
                mends[host] = mend

    def still(self, mends: dict[str, Mend], gaps: list[Gap]) -> bool:
        """Hosts whose exporter served one page of busy cards again and again."""
        noisy = next((c for s in NOISY if (c := self._exporter.carriers.get(s)) is not None), None)
        busy = next((c for s in ACTIVITY if (c := self._exporter.carriers.get(s))), None)
        if noisy not in self._carriers or busy not in self._carriers or not noisy or not busy:
            return False
        changes = Call("changes", (self._selector([noisy.metric], range_s=STILL_S),))
        stood = Binary("==", Aggregate("sum", changes, labels=(self._label,)), Number(0.0))
        least = Aggregate("min", self._selector([busy.metric]), labels=(self._label,))
        at_work = Binary(">=", least, Number(BUSY / busy.scale))
        query = Binary("and", stood, at_work, matching=Matching(True, (self._label,)))
        step_s = max(STILL_S, ceil((self._last - self._first) / (4 * LOOKS)))
        hosts = {labels.get(self._label, "") for labels, *_ in _rows(self._run(query, step_s))}
        late = False
        for host in sorted(hosts - {""}):
            frozen = Frozen(self._samples(host), [self._exporter])
            for span in frozen.spans(self._exporter.name).values():
                mends[host] = replace(mends.get(host, Mend()), served=span)
                late = True
            gaps += frozen.gaps
        return late

    def _samples(self, host: str) -> Series:
        """What each series of a host was at every scrape, as far as they are regular."""
        metrics = [*{c.metric: None for c in self._carriers}]
        counted = Call("count_over_time", (self._selector(metrics[:1], host, STILL_S),))
        most = max((float(v.max()) for _, _, v in _rows(self._run(counted, STILL_S))), default=1.0)
        step_s = max(1.0, STILL_S // most, ceil((self._last - self._first) / MOST_SAMPLES))
        builder = SeriesBuilder()
        for metric in metrics:
            selector = self._selector([metric], host)
            when = {frozenset(of.items()): (times, values) for of, times, values
                    in _rows(self._run(Call("timestamp", (selector,)), step_s))}  # fmt: skip
            for of, times, values in _rows(self._run(selector, step_s)):
                named = of.pop(NAME, metric)
                asked, scraped = when.get(frozenset(of.items()), (times, times))
                if len(asked) != len(times):
                    continue
                _, once = np.unique(scraped, return_index=True)
                labels: Labels = tuple(sorted({**of, NAME: named}.items()))
                builder.extend(builder.row(labels), scraped[once], values[once])
        return builder.build()

    def _never_more(self, carrier: Carrier, host: str) -> bool:
        """Whether all that a host read of it is below what a card has."""
        step_s = max(1.0, ceil((self._last - self._first) / LOOKS))
        highest = Aggregate("max", self._selector([carrier.metric], host), labels=(self._label,))
        floor = RANGES[carrier.signal].floor / carrier.scale
        return all((values < floor).all() for *_, values in _rows(self._run(highest, step_s)))

    def _blank(self, metric: str, host: str) -> Gap:
        reason = "samples hold the number by which a driver says that it has none: left out"
        return Gap(f"{metric} at every time", reason, self._exporter.host(host))

    def _highest(self, metrics: Sequence[str], carrier: Carrier | None = None) -> Expr:
        own = self._selector(metrics)
        if carrier is not None:
            own = replace(own, matchers=(*own.matchers, *carrier.matchers))
        return Aggregate("max", own, labels=(NAME, self._label))

    def _selector(self, metrics: Sequence[str], host: str = "", range_s: float = 0.0) -> Selector:
        """Series of these metrics, of the hosts of the run or of one."""
        name = one_of(NAME, metrics)
        named = name.op == "="
        matchers = (*(() if named else (name,)),
                    *((Matcher(self._label, "=", host),) if host else self._hosts))  # fmt: skip
        return Selector(metrics[0] if named else None, matchers, round(range_s * 1000) or None)

    def _run(self, query: Expr, step_s: float) -> Matrix:
        first = min(self._first, self._last - step_s)
        return self._engine.run(render(query), first, self._last, step_s)


def _factor(carrier: Carrier | None, values: Floats) -> float | None:
    finite = values[np.isfinite(values)]
    if carrier is None or not finite.size:
        return None
    return factor_of(float(finite.max()) * carrier.scale, RANGES[carrier.signal])


def _together(groups: Groups, label: str) -> tuple[Matcher, ...]:
    """What a label must be to satisfy one of these groups, whatever else they ask."""
    told = [[m for m in group if m.name == label] for group in groups]
    if not all(told):
        return ()
    patterns = {quoted(m.value) if m.op == "=" else m.value for of in told for m in of}
    if len(told) == 1:
        return tuple(told[0])
    return (Matcher(label, "=~", "|".join(sorted(patterns))),)


def _rows(matrix: Matrix) -> Iterator[tuple[dict[str, str], Floats, Floats]]:
    """Labels, times and values of what is there."""
    for index, labels in enumerate(matrix.labels):
        here = matrix.present[index]
        if here.any():
            yield dict(labels), matrix.times[here], matrix.values[index][here]
