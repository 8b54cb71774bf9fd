"""The lines below a table's heading, for formats whose rows hold no word to search for."""

from __future__ import annotations

from collections.abc import Iterator

from flatline.logs.labels import Labelled, Labels
from flatline.logs.reading import TextFile, clean

PAGE_LINES = 512
PASSED_LINES = 20_000
"""Lines of other streams in a row: a stream that fell silent is not sought to the end."""
PASSED_IN_FILE = 400_000
"""The same of all tables of a file: many headings of silent streams are sought no further."""
MOST_TABLES = 5_000
"""Of a file: a loop draws one, and a search over settings one for each."""


class Tables:
    """The tables of one file; `left` counts those that were not read."""

    def __init__(self, file: TextFile, labels: Labels) -> None:
        self._file = file
        self._labels = labels
        self._opened = 0
        self._passed = 0
        self.left = 0

    def below(self, line: int, key: str) -> Iterator[tuple[int, str, Labelled]]:
        """(line, its text, the same without labels) of the stream `key` after `line`, in order."""
        self._opened += 1
        if self._opened > MOST_TABLES or self._passed > PASSED_IN_FILE:
            self.left += 1
            return
        passed = 0
        while page := self._file.window(line + 1, PAGE_LINES):
            for line, raw in page:
                text = clean(raw)
                labelled = self._labels.split(text)
                passed = 0 if labelled.key == key else passed + 1
                if not passed:
                    yield line, text, labelled
                    continue
                self._passed += 1
                if passed > PASSED_LINES:
                    return
