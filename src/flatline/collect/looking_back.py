"""When a line without a time of its own was printed, by the lines before it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from flatline.logs.clock import Clock
from flatline.logs.labels import Labels
from flatline.logs.reading import clean

LOOK_BACK_LINES = 60
"""How far up a line without a time of its own looks for one."""
KNOWN_LINES = 4_096
"""Lines whose stream and time are remembered: those without a time may stand close together."""


class LookBack:
    """Looks back in one file; `lines` gives those from one to another."""

    def __init__(
        self, lines: Callable[[int, int], list[bytes]], labels: Labels, clock: Clock
    ) -> None:
        self._lines = lines
        self._labels = labels
        self._clock = clock
        self._known: dict[int, tuple[str, datetime | None]] = {}

    def before(self, line: int, key: str) -> datetime | None:
        """The last time printed on or shortly before a line, its own stream first."""
        first = max(1, line - LOOK_BACK_LINES)
        other: datetime | None = None
        for number, raw in reversed([*enumerate(self._lines(first, line), first)]):
            stream, at = self._known.get(number) or self._look(number, raw)
            if at is not None and stream == key:
                return at
            other = other or at
        return other

    def _look(self, number: int, raw: bytes) -> tuple[str, datetime | None]:
        text = clean(raw)
        labelled = self._labels.split(text)
        stamp = self._clock.either(text, labelled.text)
        if len(self._known) >= KNOWN_LINES:
            self._known.clear()
        said = self._known[number] = labelled.key, stamp.at if stamp is not None else None
        return said
