"""
Canonical PromQL into the PromQL of the data, by rewriting the parsed query.

Metric, labels, the run's hosts and GPUs, and the factor to the canonical unit go into the query
itself, so that its text runs unchanged where the data lives and gives canonical numbers.  What
canonical labels do not know (a UUID, a driver version) must not change an answer: `without` and
vector matching are spelled out over the canonical labels of the signals involved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from flatline.errors import QueryRejected
from flatline.model import Gap
from flatline.series.matching import Matcher, Op, accepts, none_of, one_of, quoted
from flatline.series.promql.parse import parse
from flatline.series.promql.tree import (
    Aggregate,
    Binary,
    Call,
    Expr,
    Matching,
    Negation,
    Number,
    Paren,
    Selector,
    Subquery,
    Text,
    inner,
    render,
    walk,
)
from flatline.signals import GPUS_HELD, SIGNALS, Signal
from flatline.vocab import LABELS, Carrier, Exporter, LabelRule
from flatline.vocab.kinds import COUNTING, LINEAR, NOT_OF_MEANS, labels_of_result
from flatline.vocab.mends import mended

Groups = tuple[tuple[Matcher, ...], ...]
"""Alternative sets of native matchers; a series is meant that satisfies one of them."""
ANYWHERE: Groups = ((),)
MAX_GROUPS = 16
NAMING_LABELS = frozenset(
    {"absent_over_time", "count_values", "label_join", "label_replace", "sort_by_label"}
)
"""What names labels in strings, or asks of all series together: it would mean the data's own."""
JOINED: Mapping[str, str] = {
    **dict.fromkeys(("count_over_time", "sum_over_time", "changes", "resets"), "sum"),
    **dict.fromkeys(("avg_over_time", "quantile_over_time", "stddev_over_time", "deriv"), "avg"),
    "min_over_time": "min",
}
"""What a function of a device's series comes to where it is in pieces, else their greatest; a
window that spans a change of users weighs its pieces alike.  What a counter grew by is not added
up: the piece without a user spans those with one."""
_PORT = "(:[0-9]+)?"


@dataclass(frozen=True, slots=True)
class Scope:
    """
    The hosts a run held, and on each the GPUs it held by index.

    No hosts: every host. A host without GPUs: all of its own.
    """

    hosts: tuple[str, ...] = ()
    gpus: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Native:
    """A query as the data understands it."""

    expr: Expr
    text: str


class _Missing(Exception):
    def __init__(self, signal: Signal) -> None:
        self.signal = signal
        super().__init__(signal.name)


def signals_in(expr: Expr) -> tuple[Signal, ...]:
    """The signals a canonical query names. Raises QueryRejected for a name that is none."""
    found: dict[str, Signal] = {}
    for part in walk(expr):
        if isinstance(part, Selector):
            signal = SIGNALS.get(part.name or "")
            if signal is None:
                raise QueryRejected(f"there is no canonical signal {part.name!r}")
            found[signal.name] = signal
    return tuple(found.values())


def rewrite(canonical: str | Expr, exporter: Exporter, groups: Groups = ANYWHERE) -> Native | Gap:
    """
    The query for one exporter, or a gap naming a signal that it does not carry.

    Raises QueryRejected where the query cannot be put that way without changing its answer.
    """
    expr = parse(canonical) if isinstance(canonical, str) else canonical
    signals_in(expr)
    try:
        native = _Rewriter(exporter, groups).expr(expr)
    except _Missing as missing:
        return missing_signal(missing.signal, exporter.name)
    bare = inner(native)
    return Native(bare, render(bare))


def missing_signal(signal: Signal, where: str | None = None) -> Gap:
    """That nothing carries a signal."""
    return Gap(f"{signal.name} ({signal.meaning})", "no exporter that was read carries it", where)


def restrictions(
    scope: Scope, exporter: Exporter, hosts: Iterable[str]
) -> tuple[Groups, tuple[Gap, ...]]:
    """
    The scope in native matchers, given the host values the data has.

    Hosts join by full and short name.  One that the data does not have is a gap, and so are GPU
    indexes where the data names its GPUs by UUID and nothing tells their index.
    """
    rule, gpu = exporter.labels.get("host"), exporter.labels.get("gpu")
    if not scope.hosts or rule is None:
        return ANYWHERE, ()
    by_name: dict[str, list[str]] = {}
    for native in hosts:
        name = exporter.host(native)
        for spelling in {name, rule.value(native), name.partition(".")[0]}:
            by_name.setdefault(spelling, []).append(native)
    gaps: list[Gap] = []
    by_gpus: dict[tuple[str, ...], list[str]] = {}
    found = {host: by_name.get(host) or by_name.get(host.partition(".")[0]) or []
             for host in scope.hosts}  # fmt: skip
    for host, values in _without_namesakes(exporter, found).items():
        if not values:
            gaps.append(Gap("metrics of every host", "none carry this host's name", host))
        by_gpus.setdefault(tuple(scope.gpus.get(host, ())), []).extend(values)
    told = gpu is not None and (gpu.spells == "index" or bool(exporter.gpus))
    if any(by_gpus) and (not told or len(by_gpus) > MAX_GROUPS):
        gaps.append(Gap(GPUS_HELD, f"{exporter.name} does not tell them apart"))
        by_gpus = {(): [value for values in by_gpus.values() for value in values]}
    groups = [
        (
            one_of(rule.label, values),
            *(() if not gpus or gpu is None else (one_of(gpu.label, _natively(exporter, gpus)),)),
        )
        for gpus, values in by_gpus.items()
        if values
    ]
    return tuple(groups) or ((Matcher(rule.label, "=", scope.hosts[0]),),), tuple(gaps)


def _without_namesakes(
    exporter: Exporter, found: Mapping[str, Sequence[str]]
) -> dict[str, Sequence[str]]:
    """The host values of each host; of one that stands there under several domains those alone of
    the domain that the hosts with one have: another cluster may have a host of that name."""

    def domain(native: str) -> str:
        return exporter.host(native).lower().partition(".")[2]

    domains = {host: {*map(domain, values)} for host, values in found.items()}
    usual = {one for here in domains.values() if len(here) == 1 for one in here}
    return {
        host: [v for v in values if domain(v) in usual]
        if len(usual) == 1 and usual < domains[host] else values
        for host, values in found.items()
    }  # fmt: skip


def _natively(exporter: Exporter, indexes: Sequence[str]) -> Sequence[str]:
    """GPUs as the data names them: by index, or by the UUIDs that have these on any host."""
    found = [native for native, index in exporter.gpus.items() if index in indexes]
    return found or indexes


class _Rewriter:
    """One query for one exporter."""

    def __init__(self, exporter: Exporter, groups: Groups) -> None:
        self.exporter = exporter
        self.groups = groups

    def expr(self, expr: Expr) -> Expr:
        match expr:
            case Number() | Text():
                return expr
            case Paren(expr=inside):
                return Paren(self.expr(inside))
            case Negation(expr=inside):
                return Negation(self.expr(inside))
            case Subquery():
                return replace(expr, expr=self.expr(expr.expr))
            case Selector():
                return self._carried(expr, lambda native: native, 1)
            case Call():
                return self._call(expr)
            case Aggregate():
                return self._aggregate(expr)
            case Binary():
                return self._binary(expr)

    def _call(self, expr: Call) -> Expr:
        if expr.function in NAMING_LABELS:
            raise QueryRejected(f"{expr.function} cannot be asked in canonical labels")
        for place, argument in enumerate(expr.args):
            selector = inner(argument)
            if not isinstance(selector, Selector):
                continue
            if selector.range_ms is None and expr.function != "timestamp":
                continue
            args = tuple(arg if i == place else self.expr(arg) for i, arg in enumerate(expr.args))

            def wrap(native: Selector, at: int = place, args: tuple[Expr, ...] = args) -> Expr:
                return Call(expr.function, (*args[:at], native, *args[at + 1 :]))

            degree = self._degree(expr.function, selector)
            return self._carried(selector, wrap, degree, JOINED.get(expr.function, "max"))
        return Call(expr.function, tuple(map(self.expr, expr.args)))

    def _degree(self, function: str, selector: Selector) -> int:
        """How the function's result grows with its samples: not at all, or as they do."""
        carrier = self.exporter.carriers.get(selector.name or "")
        known = function in COUNTING | LINEAR and function not in NOT_OF_MEANS
        if carrier is not None and carrier.collapse and not known:
            raise QueryRejected(f"{selector.name} is a mean here: {function} of it cannot be had")
        if function in COUNTING:
            return 0
        if function in LINEAR or carrier is None:
            return 1
        off = any(carrier.metric in m.factors for m in self.exporter.mends.values())
        if carrier.scale == 1 and not off:
            return 1
        raise QueryRejected(f"{function} of {selector.name} cannot be put in another unit")

    def _carried(
        self,
        selector: Selector,
        wrap: Callable[[Selector], Expr],
        degree: int,
        joined: str = "max",
    ) -> Expr:
        """A signal's own selector, once for each group, in canonical units; `joined` makes one
        value of the pieces of a device's series."""
        signal = SIGNALS[selector.name or ""]
        carrier = self.exporter.carriers.get(signal.name)
        if carrier is None:
            raise _Missing(signal)
        own = (*carrier.matchers, *(self._matcher(m, signal) for m in selector.matchers))
        out: Expr | None = None
        parts = 0
        for group in self.groups:
            native = replace(selector, name=carrier.metric,
                             matchers=self._spelled(carrier, (*own, *group)))  # fmt: skip
            for meant, mend in mended(self.exporter, carrier, native):
                flagged = mend(self._flag(carrier, meant, wrap(meant)), degree)
                part = self._relabelled(carrier, flagged)
                out, parts = part if out is None else Binary("or", out, part), parts + 1
        assert out is not None
        if self.exporter.users:
            out = Aggregate(joined, out, labels=self.exporter.users, without=True)
        if carrier.collapse:
            out = Aggregate("avg", out, labels=carrier.collapse, without=True)
        elif parts > 1:
            out = Paren(out)
        if degree == 0 or carrier.scale == 1:
            return out
        return Paren(Binary("*", out, Number(carrier.scale)))

    def _flag(self, carrier: Carrier, native: Selector, wrapped: Expr) -> Expr:
        """Whether the metric stands at the one value that means yes; its range says nothing."""
        if carrier.equals is None:
            return wrapped
        if wrapped is not native:
            raise QueryRejected(f"{carrier.signal} is a comparison here: ask for it as it stands")
        return Paren(Binary("==", native, Number(carrier.equals), returns_bool=True))

    def _spelled(self, carrier: Carrier, matchers: tuple[Matcher, ...]) -> tuple[Matcher, ...]:
        """Matchers with the labels that this metric alone calls otherwise."""
        own = {self.exporter.labels[name].label: label for name, label in carrier.labels.items()}
        return tuple(replace(m, name=own.get(m.name, m.name)) for m in matchers)

    def _relabelled(self, carrier: Carrier, expr: Expr) -> Expr:
        """The answer under the labels the exporter's other metrics have."""
        for name, label in carrier.labels.items():
            rule = self.exporter.labels[name]
            args = (expr, Text(rule.label), Text("$1"), Text(label), Text("(.+)"))
            expr = Call("label_replace", args)
        return expr

    def _matcher(self, matcher: Matcher, signal: Signal) -> Matcher:
        if matcher.name not in (*signal.labels, "model"):
            raise QueryRejected(f"{signal.name} has no label {matcher.name!r}")
        rule = self.exporter.labels.get(matcher.name)
        if rule is None:
            raise QueryRejected(f"{self.exporter.name} does not say the {matcher.name}")
        known = {"host": self.exporter.hosts, "gpu": self.exporter.gpus}.get(matcher.name)
        if known:
            return self._named(matcher, rule, known)
        if not rule.port:
            return replace(matcher, name=rule.label)
        pattern = matcher.value
        if matcher.op in ("=", "!="):
            pattern = quoted(pattern)
        op: Op = "=~" if matcher.op in ("=", "=~") else "!~"
        return Matcher(rule.label, op, f"(?:{pattern}){_PORT}")

    def _named(self, matcher: Matcher, rule: LabelRule, known: Mapping[str, str]) -> Matcher:
        """Hosts as the addresses, GPUs as the UUIDs that the data has for them."""
        positive = replace(matcher, op="=" if matcher.op in ("=", "!=") else "=~")
        meant = accepts(positive)
        values = [native for native, name in known.items() if meant(name)]
        if not values:
            return replace(matcher, name=rule.label)
        return (one_of if matcher.op in ("=", "=~") else none_of)(rule.label, values)

    def _natives(self, labels: Iterable[str]) -> tuple[str, ...]:
        """The data's names of canonical labels, host first; those it has none for are left out:
        in such data there is but one of them."""
        rules = self.exporter.labels
        return tuple(rules[n].label for n in sorted(labels, key=LABELS.index) if n in rules)

    def _aggregate(self, expr: Aggregate) -> Expr:
        if expr.op in NAMING_LABELS:
            raise QueryRejected(f"{expr.op} cannot be asked in canonical labels")
        known = labels_of_result(expr.expr) or frozenset()
        unknown = set(expr.labels) - known - {"model"}
        if unknown and not expr.without:
            raise QueryRejected(f"there is no label {min(unknown)!r} to group by")
        kept: Iterable[str] = expr.labels
        if expr.without:
            kept = known - set(expr.labels)
        param = None if expr.param is None else self.expr(expr.param)
        return Aggregate(expr.op, self.expr(expr.expr), param, self._natives(kept))

    def _binary(self, expr: Binary) -> Expr:
        left, right = labels_of_result(expr.left), labels_of_result(expr.right)
        matching = expr.matching
        if left is not None and right is not None:
            matching = self._matching(expr, left, right)
        return replace(
            expr, left=self.expr(expr.left), right=self.expr(expr.right), matching=matching
        )

    def _matching(
        self, expr: Binary, left: frozenset[str], right: frozenset[str]
    ) -> Matching | None:
        """Matching over canonical labels alone."""
        given = expr.matching
        if given is None and left != right and expr.op not in ("and", "or", "unless"):
            raise QueryRejected(f"the sides of {expr.op} differ in labels: say on (...)")
        if given is None and not left and not right:
            return None
        if given is not None and given.on:
            shared = frozenset(given.labels)
        else:
            shared = (left | right) - frozenset(() if given is None else given.labels)
        card = "one-to-one" if given is None else given.card
        include = () if given is None else given.include
        return Matching(True, self._natives(shared), card, self._natives(include))
