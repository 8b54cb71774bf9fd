"""
Which exporters answer for a signal: one for each host, however many watch the hosts of a run.

Sites change exporters a host at a time, and clusters hold devices of several makers.  Where two
carry a signal, each answers for the hosts that only it has; a host that both have in the time of
the run is answered for by the one with more series, even where that one fell silent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from typing import TYPE_CHECKING

from flatline.errors import QueryRejected
from flatline.model import Gap
from flatline.series.promql.tree import Binary, Expr, Paren, render
from flatline.signals import SIGNALS
from flatline.vocab import Exporter
from flatline.vocab.gpus import key
from flatline.vocab.hosts import is_address
from flatline.vocab.kinds import labels_of_result
from flatline.vocab.rewrite import (
    Groups,
    Native,
    Scope,
    missing_signal,
    restrictions,
    rewrite,
    signals_in,
)

if TYPE_CHECKING:
    from flatline.series.engine import Engine
    from flatline.series.promql.evaluate import Matrix

UUIDS = ("UUID", "uuid")
"""Labels by which exporters name a GPU wherever it is."""
SHOWN = 8
"""Hosts that a gap names before it counts the rest."""


@dataclass(frozen=True, slots=True)
class Origin:
    """An exporter and what narrows its metrics to the hosts that it answers for."""

    exporter: Exporter
    groups: Groups


class Origins:
    """The exporters behind one engine, narrowed to the hosts and GPUs of a run."""

    def __init__(
        self,
        engine: Engine,
        exporters: Sequence[Exporter],
        scope: Scope,
        window: tuple[datetime, datetime] | None,
        late: frozenset[str] = frozenset(),
    ) -> None:
        """`window` is the time of the run that there are samples of; those that are `late` fell
        silent within it, and answer where no other does."""
        self._engine, self._scope, self._window = engine, scope, window
        self._late = late
        self.exporters = tuple(exporters)
        self.groups: dict[str, Groups] = {}
        self.gaps: list[Gap] = []
        self._known: dict[tuple[str, ...], tuple[Origin, ...]] = {}
        self._read: dict[tuple[str, str], dict[str, int]] = {}
        self._unanswered: dict[tuple[str, str], Gap] = {}
        self._looked: set[tuple[str, str]] = set()
        for exporter in exporters:
            hosts = natives(engine, exporter, "host") if scope.hosts else ()
            self.groups[exporter.name], found = restrictions(scope, exporter, hosts)
            self.gaps += [gap for gap in found if not self._elsewhere(exporter, gap.where)]

    def carries(self, *signals: str) -> bool:
        """Whether one exporter carries all of these signals."""
        return any(all(s in e.carriers for s in signals) for e in self.exporters)

    def told(
        self, expr: Expr, only: str | None = None
    ) -> list[tuple[Exporter, Native]] | tuple[Gap, ...]:
        """
        A canonical query as each exporter understands it that answers it, or what is missing.

        What is one number for all hosts is that of the first exporter, or of the one named `only`.
        Raises QueryRejected.
        """
        names = tuple(signal.name for signal in signals_in(expr))
        origins = [o for o in self.of(names) if only in (None, o.exporter.name)]
        by_host = "host" in (labels_of_result(expr) or ())
        out: list[tuple[Exporter, Native]] = []
        refused: dict[str, str] = {}
        for origin in origins if by_host else origins[:1]:
            try:
                native = rewrite(expr, origin.exporter, origin.groups)
            except QueryRejected as fault:
                if not out:
                    raise
                refused[origin.exporter.name] = str(fault)
                continue
            if isinstance(native, Native):
                out.append((origin.exporter, native))
        told = {exporter.name for exporter, _ in out}
        if out and by_host and only is None:
            answering = [o for o in origins if o.exporter.name in told]
            self._note_unanswered(names, answering, refused)
            for origin in answering:
                self._note_lacking(names, origin.exporter)
        return out or self._missing(names)

    def _note_unanswered(
        self, names: tuple[str, ...], answering: Sequence[Origin], refused: Mapping[str, str]
    ) -> None:
        """A gap for the hosts that only such exporters have as cannot answer: once for each of
        these and each signal that it lacks, or does not have as it was asked for."""
        answered: dict[str, str] = {}
        for exporter in self.exporters:
            lacking = [name for name in names if name not in exporter.carriers]
            why = " does not carry it" if lacking else f": {refused.get(exporter.name, '')}"
            own = self._hosts(exporter, _such_as(lacking or names, exporter)[:1])
            if not own or not (lacking or exporter.name in refused):
                continue
            for origin in () if answered else answering:
                answered |= self._hosts(origin.exporter, names)
            left = sorted(own[host] for host in own.keys() - answered.keys())
            if left and answered and not self._same(answering, exporter, own, answered):
                need = f"{' with '.join(lacking or names)} of every host"
                said = f"not of {_listed(left)}: {exporter.name}{why}"
                self._unanswered.setdefault((exporter.name, need), Gap(need, said))

    def _note_lacking(self, names: tuple[str, ...], exporter: Exporter) -> None:
        """A gap for the few hosts of an exporter that have the like of a signal, and not it."""
        for name in names:
            need = f"{name} of every host"
            if (exporter.name, need) in self._looked:
                continue
            self._looked.add((exporter.name, need))
            having = self._ever(exporter, name)
            alike = [self._ever(exporter, other) for other in _such_as((name,), exporter)]
            left = sorted({host for hosts in alike for host in hosts} - having)
            if left and len(left) < len(having):
                said = f"not of {_listed(left)}: {exporter.name} does not have it there"
                self._unanswered.setdefault((exporter.name, need), Gap(need, said))

    def _ever(self, exporter: Exporter, signal: str) -> set[str]:
        """The short names of the run's hosts that have any sample of a signal."""
        named = natives(self._engine, exporter, "host", signal) - {""}
        meant = set(map(_short, self._scope.hosts))
        return {short for short in map(_short, map(exporter.host, named))
                if not meant or short in meant}  # fmt: skip

    @property
    def unanswered(self) -> tuple[Gap, ...]:
        """Of what was asked by host so far, the signals whose comparison lacks hosts."""
        return tuple(self._unanswered.values())

    def _missing(self, signals: Sequence[str]) -> tuple[Gap, ...]:
        alone = [name for name in signals if not self.carries(name)]
        if alone:
            return tuple(missing_signal(SIGNALS[name]) for name in alone)
        return (Gap(" with ".join(signals), "no single exporter that was read carries them"),)

    def of(self, signals: Sequence[str]) -> tuple[Origin, ...]:
        """
        Those that carry all these signals, the one with most series of the first before others.

        Of the others each is narrowed to the hosts that none before it has.
        """
        wanted = tuple(signals)
        if wanted not in self._known:
            able = [e for e in self.exporters if all(s in e.carriers for s in wanted)]
            if len(able) > 1:
                here = [e for e in able if "host" not in e.labels or self._hosts(e, wanted)]
                able = sorted(here or able, key=lambda e: (
                    e.name in self._late, -sum(self._series(e, wanted[0]).values())))  # fmt: skip
            self._known[wanted] = tuple(self._apart(able, wanted))
        return self._known[wanted]

    def _apart(self, able: Sequence[Exporter], signals: tuple[str, ...]) -> list[Origin]:
        out = [Origin(e, self.groups[e.name]) for e in able[:1]]
        taken = self._hosts(able[0], signals) if len(able) > 1 else {}
        for exporter in able[1:]:
            own = self._hosts(exporter, signals)
            left = own.keys() - taken.keys()
            if not own or not taken or not left or self._same(out, exporter, own, taken):
                continue
            groups = self.groups[exporter.name]
            if len(left) < len(own):
                hosts = tuple(sorted({own[host] for host in left}))
                gpus = {own[h]: held for h, held in self._held().items() if h in left}
                groups, _ = restrictions(Scope(hosts, gpus), exporter,
                                         natives(self._engine, exporter, "host"))  # fmt: skip
            out.append(Origin(exporter, groups))
            taken = {**own, **taken}
        return out

    def _series(self, exporter: Exporter, signal: str) -> dict[str, int]:
        """How many series of a signal there are in the time of the run by what names their host;
        by "" where nothing does."""
        carrier, rule = exporter.carriers[signal], exporter.labels.get("host")
        label = "" if rule is None else carrier.labels.get("host", rule.label)
        if (carrier.metric, label) not in self._read:
            found: dict[str, int] = {}
            if self._window is not None:
                first, last = (moment.timestamp() for moment in self._window)
                read = f"count_over_time({carrier.metric}[{max(1, ceil(last - first))}s])"
                by = f" by ({label})" if label else ""
                matrix = self._engine.run(f"count{by} ({read})", last, last, 0.0)
                for labels, values in zip(matrix.labels, matrix.values, strict=True):
                    found[dict(labels).get(label, "")] = int(values[-1])
            self._read[carrier.metric, label] = found
        return self._read[carrier.metric, label]

    def _elsewhere(self, exporter: Exporter, host: str | None) -> bool:
        """Whether another exporter has some of the same signals of a host."""
        return host is not None and any(
            _short(host) in self._hosts(other, shared)
            for other in self.exporters
            if other is not exporter
            and (shared := tuple(s for s in other.carriers if s in exporter.carriers))
        )

    def _hosts(self, exporter: Exporter, signals: tuple[str, ...]) -> dict[str, str]:
        """The hosts of the run that have these signals, by their short names."""
        named = {native for signal in signals for native in self._series(exporter, signal)}
        names = map(exporter.host, named - {""})
        found = {_short(name): name for name in sorted(names)}
        meant = set(map(_short, self._scope.hosts))
        return {short: name for short, name in found.items() if not meant or short in meant}

    def _held(self) -> dict[str, tuple[str, ...]]:
        return {_short(host): tuple(gpus) for host, gpus in self._scope.gpus.items()}

    def _same(
        self,
        others: Sequence[Origin],
        exporter: Exporter,
        own: dict[str, str],
        taken: dict[str, str],
    ) -> bool:
        """Whether hosts of two names may be the same: where one is an address and another is not,
        or where no name is shared and GPUs are."""
        if len({is_address(host) for host in (*own, *taken)}) > 1:
            return True
        if own.keys() & taken.keys():
            return False
        mine = self._uuids(exporter)
        return any(mine & self._uuids(origin.exporter) for origin in others)

    def _uuids(self, exporter: Exporter) -> set[str]:
        metrics = {carrier.metric for carrier in exporter.carriers.values()}
        return {key(value) for label in UUIDS for value in self._engine.values(metrics, label)
                if value}  # fmt: skip


def natives(engine: Engine, exporter: Exporter, name: str, *signals: str) -> frozenset[str]:
    """What the data has for a canonical label of an exporter's series, of all its signals or of
    some."""
    rule = exporter.labels.get(name)
    metrics = {exporter.carriers[s].metric for s in signals or exporter.carriers}
    return frozenset() if rule is None else engine.values(metrics, rule.label)


def either(queries: Sequence[Native]) -> Native:
    """The queries as one, that has the series of all."""
    expr = queries[0].expr
    for query in queries[1:]:
        expr = Binary("or", expr, Paren(query.expr))
    return Native(expr, render(expr))


def stacked(parts: Sequence[Matrix]) -> Matrix:
    """Answers of one engine over the same times as one, their series in the same order."""
    import numpy as np  # a source that is only recognised does not pay for it

    from flatline.series.promql.evaluate import Matrix

    if len(parts) == 1:
        return parts[0]
    labels = tuple(one for part in parts for one in part.labels)
    values, present = (np.concatenate([getattr(part, name) for part in parts])
                       for name in ("values", "present"))  # fmt: skip
    return Matrix(labels, parts[0].times, values, present)


def _such_as(wanted: Sequence[str], exporter: Exporter) -> tuple[str, ...]:
    """Those signals of an exporter whose hosts might have the wanted ones: of the same places and
    the same thing there, as the first word of both names says."""
    kinds = {(SIGNALS[name].labels, name.partition("_")[0]) for name in wanted}
    return tuple(name for name, signal in SIGNALS.items()
                 if name in exporter.carriers
                 and (signal.labels, name.partition("_")[0]) in kinds)  # fmt: skip


def _listed(hosts: Sequence[str]) -> str:
    more = f" and {len(hosts) - SHOWN} more" if len(hosts) > SHOWN else ""
    return ", ".join(hosts[:SHOWN]) + more


def _short(host: str) -> str:
    return host if is_address(host) else host.partition(".")[0].lower()
