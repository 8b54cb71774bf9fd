"""
What is wrong with a host's readings, put right in the query itself.

A number in another unit is divided, a time in which an old page was served again is left out: so
it is wherever the data lies, and the query that a citation keeps gives the number it states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import inf

from flatline.series.matching import Matcher, accepts, none_of, one_of
from flatline.series.promql.settings import LOOKBACK_S
from flatline.series.promql.tree import Binary, Call, Expr, Matching, Number, Paren, Selector
from flatline.vocab import Carrier, Exporter, Mend

Put = Callable[[Expr, int], Expr]
"""What is to become of a part, whose numbers grow with its samples to a degree."""
Span = tuple[float, float]


@dataclass(frozen=True, slots=True)
class _Off:
    """What is wrong with one metric of a host."""

    factor: float = 1.0
    served: Span | None = None
    blank: Span | None = None


def mended(
    exporter: Exporter, carrier: Carrier, native: Selector
) -> Iterator[tuple[Selector, Put]]:
    """
    The selector of a signal in the parts that are read in one way, each with what is done to it.

    One part, as it is, where nothing is wrong with any host that it means.
    """
    rule = exporter.labels.get("host")
    label = "" if rule is None else carrier.labels.get("host", rule.label)
    own = [matcher for matcher in native.matchers if matcher.name == label]
    tests = list(map(accepts, own)) if exporter.mends else []
    ill: dict[_Off, list[str]] = {}
    for host, mend in exporter.mends.items() if label else ():
        off = _of(mend, carrier.metric)
        if off != _Off() and all(meant(host) for meant in tests):
            ill.setdefault(off, []).append(host)
    alone = any(matcher.op == "=" for matcher in own)
    if not ill:
        yield native, _as_it_is
    elif not alone:
        hosts = [host for hosts in ill.values() for host in hosts]
        yield _with(native, none_of(label, hosts)), _as_it_is
    for off, hosts in ill.items():
        yield (native if alone else _with(native, one_of(label, hosts))), _put(native, off)


def _of(mend: Mend, metric: str) -> _Off:
    return _Off(mend.factors.get(metric, 1.0), mend.served, mend.blanks.get(metric))


def _with(native: Selector, matcher: Matcher) -> Selector:
    return replace(native, matchers=(*native.matchers, matcher))


def _as_it_is(part: Expr, _: int) -> Expr:
    return part


def _put(native: Selector, off: _Off) -> Put:
    """
    Divided by its factor, and without what is read in its spans.

    Of a range only one that lies within what was served again is left out, and every one that
    reaches a blank.
    """
    range_s = (native.range_ms or 0) / 1000
    spans = []
    if off.served is not None:
        spans.append((off.served[0] + range_s, off.served[1]))
    if off.blank is not None:
        spans.append((off.blank[0], off.blank[1] + (range_s or LOOKBACK_S)))

    def put(part: Expr, degree: int) -> Expr:
        if off.factor != 1 and degree:
            part = Paren(Binary("/", part, Number(off.factor)))
        for span in spans:
            during = Paren(_during(span, native.offset_ms / 1000))
            part = Paren(Binary("unless", part, during, matching=Matching(True, ())))
        return part

    return put


def _during(span: Span, behind_s: float) -> Expr:
    """Something at the times within a span, nothing at others."""
    first, last = span
    since = Binary(">", Call("vector", (Call("time", ()),)), Number(first + behind_s))
    return since if last == inf else Binary("<", since, Number(last + behind_s))
