"""Metrics of the target behind one question: canonical PromQL in, native answer out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from flatline.collect.files import Found
from flatline.errors import FormatError, SourceError
from flatline.facts import METRICS
from flatline.model import Gap

if TYPE_CHECKING:
    from flatline.sources.metrics import Carried, MetricsSource


class Numbers:
    """
    Asks the metrics source, which is made only where metrics were found: it imports NumPy.

    A question the source refuses is a gap, and the answer is None: not measurable.
    """

    def __init__(
        self,
        files: Sequence[Found],
        gaps: list[Gap],
        hosts: tuple[str, ...] = (),
        addresses: Mapping[str, str] | None = None,
    ) -> None:
        self._gaps = gaps
        self._source: MetricsSource | None = None
        self._asked: set[str] = set()
        if files:
            from flatline.sources.metrics import MetricsSource  # imports NumPy: 0.1 s
            from flatline.vocab.rewrite import Scope

            try:
                self._source = MetricsSource(
                    [(f.path, f.source) for f in files], Scope(hosts=hosts), addresses
                )
                gaps.extend(self._source.gaps)
            except (FormatError, SourceError) as fault:
                gaps.append(Gap(METRICS, str(fault), files[0].source))

    @property
    def window(self) -> tuple[datetime, datetime] | None:
        return self._source.window if self._source is not None else None

    @property
    def end(self) -> datetime | None:
        return self.window[1] if self.window is not None else None

    def ask(self, promql: str, **window: Any) -> Any:
        """The answer, or None where no metrics were read or none carries what is asked for."""
        if self._source is None:
            return None
        try:
            answer = self._source.ask(promql, **window)
        except SourceError as fault:
            self._gaps.append(Gap(METRICS, str(fault)))
            return None
        self._gaps += [gap for gap in answer.missing if gap not in self._gaps]
        return answer

    def measured(self, need: str) -> bool:
        """Whether every signal a need in words stands for is carried by what was read."""
        return self._source is not None and self._source.measured(need)

    def carried(self) -> tuple[Carried, ...]:
        """What of the canonical signals is carried by what was read."""
        return self._source.carried() if self._source is not None else ()

    def replay(self, item: Mapping[str, Any]) -> float:
        """The value a query citation gives when it is run again."""
        if self._source is None:
            raise SourceError("the target holds no metrics")
        return self._source.replay(item)
