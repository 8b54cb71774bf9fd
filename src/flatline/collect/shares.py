"""What is left of a line of one file, by what stands around it; and its lines, read again."""

from __future__ import annotations

from bisect import bisect_left

from flatline.logs.labels import Bared, Labelled, Labels
from flatline.logs.quoted import AROUND_LINES, left_of
from flatline.logs.reading import TextFile, clean
from flatline.logs.shown import BACK_LINES, showing

PAGE_LINES, BEFORE = 256, BACK_LINES
"""Lines read at once where single ones are read again: tracebacks stand close together. Some
stand before what was asked for first: the last steps are looked at after what is said behind."""


class Shares:
    """Reads lines of one file again, a page at a time."""

    def __init__(self, file: TextFile, labels: Labels) -> None:
        self._file = file
        self._labels = labels
        self._page: list[bytes] = []
        self._first, self._end = 1, 1
        self._showing: list[int] | None = None

    def of(self, labelled: Labelled, line: int, said: str, last: int = 0) -> float:
        """What is left of what stands in a line, or in all up to the last, by whether it says so
        itself."""
        first = max(1, line - BACK_LINES)
        last = max(line, last)
        near = self.lines(first, last + AROUND_LINES)
        behind = near[: line - first][::-1]
        above = Bared(self._labels, behind[:AROUND_LINES])
        below = Bared(self._labels, near[last - first + 1 :])
        shows = Bared(self._labels, behind if self._shows(first, line) else [])
        start = max(0, labelled.text.find(said))
        return left_of(labelled.text, start, above, below, shows)

    def lines(self, first: int, last: int) -> list[bytes]:
        """Lines first..last, from the page that was read last where it holds them."""
        if first < self._first or last >= self._end:
            self._first = max(1, first - BEFORE)
            self._end = self._first + max(PAGE_LINES, last - self._first + 1)
            read = self._file.window(self._first, self._end - self._first)
            self._page, self._showing = [raw for _, raw in read], None
        return self._page[max(0, first - self._first) : max(0, last - self._first + 1)]

    def line(self, line: int) -> str:
        """One line, cleaned; "" where there is none."""
        return clean(b"".join(self.lines(line, line)))

    def _shows(self, first: int, line: int) -> bool:
        """Whether a line from the first on, above another, may be one by which text is shown."""
        if self._showing is None:
            self._showing = [self._first + n for n in showing(self._page)]
        at = bisect_left(self._showing, first)
        return at < len(self._showing) and self._showing[at] < line
