"""The lines below a table's heading, for formats whose rows hold no word to search for."""

from __future__ import annotations

from collections.abc import Iterator

from flatline.logs.labels import Labelled, Labels
from flatline.logs.reading import TextFile, clean

PAGE_LINES = 512
PASSED_LINES = 20_000
"""Lines of other streams in a row: a stream that fell silent is not sought to the end."""


def lines_below(
    file: TextFile, labels: Labels, line: int, key: str
) -> Iterator[tuple[int, str, Labelled]]:
    """(line, its text, the same without labels) of the stream `key` after `line`, in order."""
    passed = 0
    while page := file.window(line + 1, PAGE_LINES):
        for line, raw in page:
            text = clean(raw)
            labelled = labels.split(text)
            passed = 0 if labelled.key == key else passed + 1
            if not passed:
                yield line, text, labelled
            elif passed > PASSED_LINES:
                return
