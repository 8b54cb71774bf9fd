"""
Readers of formats, so that one that breaks on a line hides nothing else.

Any text may stand in a log.  A reader that raises is at fault itself: what it would have said of
that line is missing, the line is named in a gap, and all else is read on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from flatline.model import Gap, Progress
from flatline.parsers import BROKE, Columns, LineFormat, Reported, reader_of


@dataclass(slots=True)
class Breaks:
    """Where the readers of one file broke: for each format how often, and first where."""

    line: int = 0
    """The line that is read now."""
    found: dict[str, tuple[int, int, str]] = field(default_factory=dict)

    def add(self, form: str, fault: Exception) -> None:
        count, line, said = self.found.get(form, (0, self.line, type(fault).__name__))
        self.found[form] = count + 1, line, said

    def gaps(self, source: str) -> Iterator[Gap]:
        for form, (count, line, said) in self.found.items():
            broken = f"{BROKE} on {count}, first on line {line}: {said}"
            yield Gap(f"every line of {form}", f"{broken}; please report it", source)


class Guarded:
    """A line format's reader that never raises. See `parsers.LineReader`."""

    def __init__(self, form: LineFormat, breaks: Breaks) -> None:
        self._reader: Any = reader_of(form)
        self._form = form.FORMAT
        self._breaks = breaks
        self._columns = getattr(self._reader, "columns", None)
        self._rows = getattr(self._reader, "rows", None)

    def feed(self, text: str) -> Iterator[Progress | Reported]:
        try:
            yield from self._reader.feed(text)
        except Exception as fault:  # noqa: BLE001 - see above
            self._breaks.add(self._form, fault)

    def rows(self, lines: Iterable[tuple[Any, str]]) -> Iterator[tuple[Any, Progress]]:
        if self._rows is None:
            return
        try:
            yield from self._rows(lines)
        except Exception as fault:  # noqa: BLE001 - see above
            self._breaks.add(self._form, fault)

    def columns(self, text: str) -> Columns | None:
        if self._columns is None:
            return None
        try:
            found: Columns | None = self._columns(text)
        except Exception as fault:  # noqa: BLE001 - see above
            self._breaks.add(self._form, fault)
            return None
        return found
