"""Metrics of the run behind one question: canonical PromQL in, native answer out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from flatline.collect.files import Found
from flatline.errors import FormatError, SourceError
from flatline.facts import METRICS
from flatline.model import Gap
from flatline.sources import capsule
from flatline.sources.prometheus import access, address
from flatline.tracks import BASELINE

if TYPE_CHECKING:
    from flatline.series.engine import Engine
    from flatline.sources.metrics import Carried, MetricsSource

Window = tuple[datetime | None, datetime | None]
OPEN: Window = (None, None)
ENDLESS = Gap(
    "metrics after the last line of the logs",
    "a server holds other runs as well, and nothing tells when this one ended: name --end",
)


@dataclass(frozen=True, slots=True)
class Read:
    """A source that could be made, what answers behind it, and the time it is narrowed to."""

    source: MetricsSource
    engine: Engine
    within: Window


class Numbers:
    """
    Asks what holds metrics: files, databases on disk, then a server if one is named.

    Sources are made only where there is something to ask: they import NumPy.  A source that
    cannot be made is a gap; a question it refuses is a gap, and the answer is None: not
    measurable.  `asked` is the time the caller names, `run` the run's own as its records have it,
    by which a server or a database, which holds every run of a site, is narrowed; files to what
    the scheduler `recorded` of it.  Of a run that has no end a server is asked to `alive`, until
    when it is known to have been there.  `origin` stands before a server's address where the run
    is one that is compared with.
    """

    def __init__(
        self,
        files: Sequence[Found],
        gaps: list[Gap],
        hosts: tuple[str, ...] = (),
        addresses: Mapping[str, str] | None = None,
        *,
        server: str | None = None,
        asked: Window = OPEN,
        run: Window = OPEN,
        recorded: Window = OPEN,
        alive: datetime | None = None,
        origin: str = "",
    ) -> None:
        self._gaps = gaps
        self._hosts = hosts
        self._addresses = addresses or {}
        self._sources: list[MetricsSource] = []
        self.read: list[Read] = []
        """What answers, in the order in which it is asked."""
        self.server: str | None = None
        """The address of a server that answered."""
        narrow = (asked[0] or run[0], asked[1] or run[1])
        own = (asked[0] or recorded[0], asked[1] or recorded[1])
        texts = [file for file in files if not file.path.is_dir()]
        if texts:
            self._add(texts[0].source, lambda: _in_memory(texts, gaps), own)
        for file in files:
            if file.path.is_dir():
                undated = capsule.is_store(file.path) and file.path.name.endswith(capsule.UNDATED)
                within = own if undated else narrow
                self._add(file.source, partial(_folder, file), within)
        if server is not None:
            where = address(server)
            reach = (narrow[0], narrow[1] or alive)
            if self._add(where, lambda: _server(where, reach), reach):
                self.server = origin + where
                self._sources[-1].name = self.server

    def _add(self, where: str, make: Callable[[], Engine], within: Window) -> bool:
        from flatline.sources.metrics import MetricsSource  # imports NumPy: 0.1 s
        from flatline.vocab.rewrite import Scope

        try:
            engine = make()
            source = MetricsSource(
                scope=Scope(self._hosts),
                addresses=self._addresses,
                engine=engine,
                within=within,
            )
        except (FormatError, SourceError, OSError) as fault:
            reason = getattr(fault, "strerror", None) or str(fault)
            self._gaps.append(Gap(METRICS, reason, where))
            return False
        self._sources.append(source)
        self.read.append(Read(source, engine, within))
        self.note(source.gaps)
        if source.window is None:
            self.note([Gap(METRICS, "they hold no sample of the time of the run", where)])
        return True

    def hold(self, gpus: Mapping[str, tuple[str, ...]]) -> None:
        """Narrows what is asked from now on to these GPUs of these hosts."""
        for source in self._sources if gpus else ():
            source.narrow(gpus)
            self.note(source.gaps)

    def note(self, gaps: Sequence[Gap]) -> None:
        self._gaps += [gap for gap in gaps if gap not in self._gaps]

    @property
    def window(self) -> tuple[datetime, datetime] | None:
        """From the first sample of any source to the last."""
        windows = [source.window for source in self._sources if source.window is not None]
        if not windows:
            return None
        return min(first for first, _ in windows), max(last for _, last in windows)

    @property
    def end(self) -> datetime | None:
        return self.window[1] if self.window is not None else None

    def ask(self, promql: str, **window: Any) -> Any:
        """
        The answer of the first source that has one, or None where no metrics were read.

        Where none carries what is asked for, the answer says what is missing.
        """
        answers = list(self._answers(promql, window))
        best = next((a for a in answers if a.rows), None) or next(
            (a for a in answers if not a.missing), None
        )
        if best is None and answers:
            best = answers[0]
            self.note(best.missing)
        return best

    def _answers(self, promql: str, window: Mapping[str, Any]) -> Iterator[Any]:
        """As many as it takes: those behind the first that has rows are not asked."""
        for source in self._sources:
            try:
                answer = source.ask(promql, **window)
            except SourceError as fault:
                self.note([Gap(METRICS, str(fault), source.name)])
                continue
            self.note(source.gaps)
            yield answer
            if answer.rows:
                return

    def measured(self, need: str) -> bool:
        """Whether every signal a need in words stands for is carried by one source."""
        return any(source.measured(need) for source in self._sources)

    def carried(self) -> tuple[Carried, ...]:
        """What of the canonical signals is carried by what was read."""
        return tuple(entry for source in self._sources for entry in source.carried())

    def replay(self, item: Mapping[str, Any]) -> float:
        """The value a query citation gives when it is run again, where it was first answered."""
        if str(item.get("source")).removeprefix(BASELINE).startswith(("http://", "https://")):
            if self.server is None:
                raise SourceError("a server answered it: name it with --prometheus")
            return self._sources[-1].replay(item)  # wherever it is reached by now
        if not self._sources:
            raise SourceError("the target holds no metrics")
        named = [s for s in self._sources if s.name == item.get("source")]
        return (named or self._sources)[0].replay(item)


def _in_memory(files: Sequence[Found], gaps: list[Gap]) -> Engine:
    from flatline.sources.metrics import in_memory

    return in_memory([(file.path, file.source) for file in files], gaps)


def _folder(file: Found) -> Engine:
    from flatline.sources.tsdb import database

    if capsule.is_store(file.path):
        return capsule.engine(file.path, file.source)
    return database(file.path, file.source)


def _server(url: str, window: Window) -> Engine:
    from flatline.sources.prometheus import PrometheusServer
    from flatline.vocab import vocabularies
    from flatline.vocab.gpus import LABELLED, VALUED

    first, last = window
    if first is None or last is None:
        raise SourceError(
            "a server holds every run of a site: it was not asked, since nothing says when this"
            " one ran; name --start and --end"
        )
    wanted = [
        {
            *(name for name in vocabulary.recognised_by if not name.endswith("*")),
            *(carrier.metric for carrier in vocabulary.carriers),
        }
        for vocabulary in vocabularies()
    ]
    telling = [{metric} for metric in (VALUED, *(metric for metric, *_ in LABELLED))]
    return PrometheusServer(url, first, last, access(os.environ), metrics=[*wanted, *telling])
