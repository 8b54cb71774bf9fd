"""
The exporters behind an engine, as their data is to be read.

Hosts that stand there as addresses get their names, GPUs that stand there by UUID their index;
what a host's exporter writes in another unit, or serves again from an old page, is put right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from math import ceil
from typing import TYPE_CHECKING

from flatline.model import Gap
from flatline.vocab import Exporter, bind, vocabularies
from flatline.vocab.gpus import LABELLED, VALUED, indexed, indexes
from flatline.vocab.hosts import UNAME, named, names_of
from flatline.vocab.origins import natives
from flatline.vocab.rewrite import Scope, restrictions
from flatline.vocab.spellings import in_one_spelling, of_containers, of_pods
from flatline.vocab.users import in_pieces

if TYPE_CHECKING:
    from flatline.series.engine import Engine
    from flatline.series.storage import Series

AROUND_S = 600
"""Beyond a run in which its series may be others: saves, tear-down, a sample that came late."""


class Readings:
    """The `exporters`, told by their metrics, those of them that fell silent in truth (`late`),
    the `engine` to be asked, and the `gaps` of all this."""

    def __init__(
        self,
        engine: Engine,
        scope: Scope,
        addresses: Mapping[str, str],
        window: tuple[datetime, datetime] | None,
    ) -> None:
        """`window` is the time of the run that there are samples of."""
        self.engine, self.gaps = engine, list[Gap]()
        names = engine.names()
        bound = [e for v in vocabularies() if (e := bind(v, names)) is not None]
        self.exporters = self._named(bound, addresses, scope.hosts)
        if names and not self.exporters:
            reason = "no exporter that is known wrote these"
            self.gaps.append(Gap("GPU metrics", reason, engine.source))
        self.late = self._put_right(scope, window)

    def _named(
        self, bound: Sequence[Exporter], addresses: Mapping[str, str], own: Sequence[str]
    ) -> list[Exporter]:
        """The exporters with the names of hosts that stand in their data as addresses."""

        def described(metric: str) -> list[dict[str, str]]:
            return [of for of, _ in self._lately(metric)]

        labels = self.engine.names() if bound and own else {}
        pods = {native: host for one in bound
                for native, host in of_pods(one, described, labels, own).items()}  # fmt: skip
        answering = self._answering() if bound else ()
        names = names_of([(at, pods.get(name, name)) for at, name in answering], addresses)
        known = indexes(self._numbered(bound))
        out = []
        for exporter in bound:
            one, told = in_one_spelling(exporter, described)
            hosts = natives(self.engine, one, "host")
            told = {**told, **of_containers(one, hosts, described, names, own)}
            whole, unnamed = named(one, hosts, {**names, **told, **pods})
            whole = indexed(whole, natives(self.engine, whole, "gpu"), known)
            out.append(whole := in_pieces(whole, self._around))
            self.gaps.extend((*whole.gaps, *unnamed))
        return out

    def _put_right(self, scope: Scope, window: tuple[datetime, datetime] | None) -> frozenset[str]:
        """The exporters that served an old reading again, which is left out, as numbers in a wrong
        unit are put right: sample by sample where they are in memory, else by what is asked."""
        from flatline.series.storage import Series

        series = getattr(getattr(self.engine, "store", None), "series", None)
        if isinstance(series, Series):
            return self._in_memory(series)
        return frozenset() if window is None else self._asked(scope, window)

    def _in_memory(self, series: Series) -> frozenset[str]:
        from flatline.series.engine import Embedded
        from flatline.series.storage import MemoryStore
        from flatline.vocab.frozen import Frozen
        from flatline.vocab.units import in_their_unit

        told, off = in_their_unit(series, self.exporters)
        found = Frozen(told, self.exporters)
        self.gaps += [*off, *found.gaps]
        if off or found.late:
            self.engine = Embedded(MemoryStore(found.without()), self.engine.source)
        return found.late

    def _asked(self, scope: Scope, window: tuple[datetime, datetime]) -> frozenset[str]:
        from flatline.vocab.amiss import put_right

        late, exporters = set(), []
        first, last = (moment.timestamp() for moment in window)
        for exporter in self.exporters:
            groups, _ = restrictions(scope, exporter, natives(self.engine, exporter, "host"))
            one, silent, gaps = put_right(self.engine, exporter, groups, (first, last))
            self.gaps += gaps
            exporters.append(one)
            late |= {exporter.name} if silent else set()
        self.exporters = exporters
        return frozenset(late)

    def _numbered(self, bound: Sequence[Exporter]) -> list[tuple[str, str]]:
        """(UUID, index) of every GPU that has both, where an exporter names GPUs by UUID."""
        if not any(e.labels["gpu"].spells == "uuid" for e in bound if "gpu" in e.labels):
            return []
        found: list[tuple[str, str]] = []
        names = self.engine.names()
        for metric, uuid, index in LABELLED:
            if {uuid, index} <= names.get(metric, frozenset()):
                found += [(of[uuid], of[index]) for of, _ in self._lately(metric, AROUND_S)
                          if uuid in of and index in of]  # fmt: skip
        valued = self._lately(VALUED, AROUND_S) if VALUED in names else ()
        return [*found, *((of.get("uuid", ""), f"{value:g}") for of, value in valued)]

    def _around(self, metric: str) -> list[dict[str, str]]:
        """Labels of each series of a metric, of some minutes before and after as well: what is
        asked of a run reaches a little beyond it, where nobody holds its devices."""
        return [of for of, _ in self._lately(metric, AROUND_S)]

    def _lately(self, metric: str, beyond_s: int = 0) -> list[tuple[dict[str, str], float]]:
        """Labels and last value of each series of a metric."""
        span = self.engine.span
        if span is None:
            return []
        length_s, last = max(1, ceil(span[1] - span[0]) + 1 + 2 * beyond_s), span[1] + beyond_s
        found = self.engine.run(f"last_over_time({metric}[{length_s}s])", last, last, 0.0)
        return [(dict(of), float(found.values[n, -1])) for n, of in enumerate(found.labels)]

    def _answering(self) -> list[tuple[str, str]]:
        """Which host answers at an instance, wherever node_exporter was read: a name that was told
        some minutes before or after a run is that of its time."""
        if UNAME not in self.engine.names():
            return []
        return [
            (of.get("instance", ""), of.get("nodename", ""))
            for of, _ in self._lately(UNAME, AROUND_S)
        ]
