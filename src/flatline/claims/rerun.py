"""What a check may ask: the readers, masks and engine that `verify` uses, over the same target."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol, Self

from flatline.claims.model import Evidence, Known
from flatline.collect import Request
from flatline.collect.numbers import OPEN
from flatline.collect.numbers import Window as Within
from flatline.errors import UsageError
from flatline.logs.clock import Clock
from flatline.logs.reading import clean, open_text
from flatline.model import Scalar
from flatline.parsers import record_format_of
from flatline.parsers.flight_recorder import resolve_dump
from flatline.redact import MASK, mask
from flatline.verify import Check, Runs, asked_over, executed

SEARCHED_BYTES = 512 << 20
"""A claim on a whole log reads it again, 60 MB a second: a larger one is refused."""
_LONGEST_ZONE_S = 15 * 3600
_QUARTER_S = 900


class Ask(Protocol):
    """Executes evidence again. Each raises `FlatlineError` or `OSError` where it cannot."""

    def holds(self, item: Evidence, known: Known) -> Check:
        """Whether a piece of evidence says today what it said."""

    def line(self, source: str, number: int) -> str:
        """The whole line, masked."""

    def time(self, item: Evidence) -> datetime | None:
        """The instant of a log line, where the line itself prints one."""

    def numbers_of(self, source: str, pattern: re.Pattern[str]) -> tuple[int, ...]:
        """Numbers of all lines of a log, as they are shown, that a pattern is found in."""

    def field(self, item: Evidence, pointer: str) -> Scalar:
        """Another field of the record or dump that is cited."""

    def value(self, item: Evidence, at: datetime | None = None) -> float:
        """What a query gives now at its place, at its end or at another time."""


class Rerun:
    """
    `Ask` over the targets of a verdict. Answers are kept: a claim is seldom alone.

    Knows one kind of evidence more than a verdict does, for what tools return: `{"kind": "count",
    "source": LOG, "text": TEXT, "value": N}`, the lines of a log that hold a text.
    """

    def __init__(
        self,
        targets: tuple[str, ...],
        prometheus: str | None = None,
        within: Within = OPEN,
        document: Mapping[str, Any] | None = None,
        baseline: str | None = None,
    ) -> None:
        """Raises `UsageError` for a target that is not there."""
        request = Request(targets, baseline=baseline, prometheus=prometheus)
        self._runs = Runs(document or {}, request, within)
        self._held: dict[str, Check] = {}
        self._found: dict[tuple[str, str], tuple[int, ...]] = {}
        self._clocks: dict[tuple[str, int], Clock] = {}

    @classmethod
    def of(
        cls,
        document: Mapping[str, Any],
        targets: tuple[str, ...],
        prometheus: str | None = None,
        baseline: str | None = None,
    ) -> Self:
        """For a verdict's document; a server is asked only where the caller names it, and of the
        time of the run alone."""
        run = document.get("run") or {}
        spans = [asked_over(document.get("evidence") or ())]
        spans.append((_instant(run.get("started_at")), _instant(run.get("ended_at"))))
        starts = [start for start, _ in spans if start is not None]
        ends = [end for _, end in spans if end is not None]
        return cls(
            targets,
            prometheus,
            (min(starts, default=None), max(ends, default=None)),
            document,
            baseline,
        )

    def holds(self, item: Evidence, known: Known) -> Check:
        key = repr(sorted(item.items(), key=lambda pair: pair[0]))
        if key not in self._held:
            self._held[key] = self._executed(item, known)
        return self._held[key]

    def _executed(self, item: Evidence, known: Known) -> Check:
        name = str(item.get("id"))
        if item.get("kind") != "count":
            return executed(name, item, self._runs, known)
        text = str(item.get("text") or "")
        if not text:
            return Check(name, False, "it does not say what was counted")
        found = len(self.numbers_of(str(item.get("source")), re.compile(re.escape(text))))
        return Check(name, found == item.get("value"), f"{found} lines")

    def line(self, source: str, number: int) -> str:
        return mask(self._runs.of(source).line(source, number))

    def time(self, item: Evidence) -> datetime | None:
        at, source = _instant(item.get("at")), str(item.get("source"))
        text = self._runs.of(source).line(source, int(item["line"]))
        key = (source, at.year if at else 0)
        if key not in self._clocks:
            sample = self._runs.of(source).sample(source)
            self._clocks[key] = Clock.learn(sample, year=at.year if at else None)
        clock = self._clocks[key]
        bare = self._runs.of(source).labels(source).split(text).text
        stamp = clock.read(text) or clock.read(bare)
        if stamp is None:
            return None
        if at is not None and stamp.assumed and _of_another_zone(stamp.at - at):
            return at
        return stamp.at

    def numbers_of(self, source: str, pattern: re.Pattern[str]) -> tuple[int, ...]:
        key = (source, pattern.pattern)
        if key not in self._found:
            file = self._runs.of(source).file(source)
            if file.size > SEARCHED_BYTES:
                raise UsageError(f"{source!r} has {file.size} bytes, more than is searched again")
            self._found[key] = tuple(_lines(file.path, source, pattern))
        return self._found[key]

    def field(self, item: Evidence, pointer: str) -> Scalar:
        data = self._runs.of(str(item["source"])).data(str(item["source"]))
        if item.get("kind") == "dump":
            return _masked(resolve_dump(data, pointer))
        name = Path(str(item["source"])).name
        form = record_format_of(name, data)
        if form is None:
            raise UsageError("no scheduler record that is known")
        return _masked(form.resolve(data, pointer))

    def value(self, item: Evidence, at: datetime | None = None) -> float:
        if at is not None:
            item = {**item, "start": at.isoformat(), "end": at.isoformat(), "step_s": 0.0}
        return self._runs.of(str(item.get("source"))).numbers().replay(item)


def _of_another_zone(off: timedelta) -> bool:
    """Whether two readings of one stamp differ by a zone that was known later, and no more."""
    seconds = abs(off.total_seconds())
    return seconds <= _LONGEST_ZONE_S and seconds % _QUARTER_S == 0


def _masked(value: Scalar) -> Scalar:
    return mask(value) if isinstance(value, str) else value


def _instant(given: object) -> datetime | None:
    try:
        at = datetime.fromisoformat(str(given))
    except ValueError:
        return None
    return at if at.tzinfo is not None else None


def _lines(path: Path, source: str, pattern: re.Pattern[str]) -> Iterable[int]:
    """Numbers of lines whose shown form a pattern is found in: no secret can be guessed so."""
    hides = MASK in re.sub(r"\\(.)", r"\1", pattern.pattern)
    with open_text(path, source) as text:
        for block in text.blocks():
            for number, raw in enumerate(block.data.split(b"\n"), block.first_line):
                line = clean(raw)
                if (hides or pattern.search(line)) and pattern.search(mask(line)):
                    yield number
