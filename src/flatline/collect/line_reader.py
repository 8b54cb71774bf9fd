"""Cited lines, read again from their files as they are needed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from flatline.collect.files import Found
from flatline.collect.logs import TEXT_CHARS
from flatline.collect.masking import masked
from flatline.errors import SourceError
from flatline.facts import LOG
from flatline.logs.reading import TextFile, clean, open_text, segments
from flatline.model import Gap
from flatline.redact import EXCERPT_FROM, excerpt, mask

OPEN_FILES = 64
"""Logs held open to be cited; a folder may hold thousands."""
KEY_LINES = 60
"""Lines before a quotation that are masked with it: an RSA key of 4096 bits has 52."""


class LineReader:
    """Reads a cited line again, when it is needed; "" and a gap where its file is gone by then."""

    def __init__(self, found: Sequence[Found], gaps: list[Gap]) -> None:
        self._paths: dict[str, Path] = {file.source: file.path for file in found}
        self._open: dict[str, TextFile] = {}
        self._gaps = gaps

    def __call__(self, source: str, line: int) -> str:
        file = self._file(source)
        return "" if file is None else excerpt(file.line(line) or "", TEXT_CHARS).strip()

    def lines(
        self, source: str, first: int, count: int, chars: int = TEXT_CHARS
    ) -> tuple[str, ...]:
        """Lines with their indentation; of one drawn over itself, what was left standing.  They
        are masked together with those before them: a key may span many."""
        file = self._file(source)
        if file is None or first < 1:
            return ()
        begin = max(first - KEY_LINES, 1)
        raw = file.window(begin, first + count - begin)
        cut = [clean(segments(line)[-1])[: EXCERPT_FROM * chars] for _, line in raw]
        return tuple(line[:chars] for line in mask("\n".join(cut)).split("\n"))[first - begin :]

    def _file(self, source: str) -> TextFile | None:
        path = self._paths.get(source)
        if path is None:
            return None
        file = self._open.get(source)
        if file is None:
            if len(self._open) >= OPEN_FILES:
                self._open.pop(next(iter(self._open))).close()
            try:
                file = self._open[source] = open_text(path, source)
            except SourceError as fault:
                del self._paths[source]
                self._gaps.append(masked(Gap(LOG, f"gone while it was read: {fault}", source)))
        return file
