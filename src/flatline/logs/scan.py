"""
Every pattern of the catalogue over every byte of a log, once.

The scanner proposes: a `Hit` names the patterns that may match a segment, and none that does is
missing.  Patterns are Python's; what they are widened to for raw bytes stands in
`flatline.logs.prefilter`.  The caller's `re`, on the cleaned segment, decides and gives groups.

Terminal escapes and backspaces are gone before anything is matched, so that a coloured word is
still that word; lines and segments are counted as they stand in the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from flatline.errors import CatalogueError
from flatline.logs.database import Engine, engine, grouped, refusal
from flatline.logs.hits import ID_BITS, ID_MASK, Hit, Resolver, Unfinished
from flatline.logs.newlines import Newlines
from flatline.logs.prefilter import prefilter
from flatline.logs.reading import Span, TextFile, plain

__all__ = ["Hit", "Scanner", "verify_patterns"]

SCAN_BYTES = 192 << 10
"""Small enough to stay in the caches between the passes over it: 256 KiB measured a thirtieth
slower, 4 MiB a third."""


class SlowEngine:
    """The same answers from `re`, for where there is no Hyperscan: some 1,000 times slower."""

    def __init__(self, patterns: Sequence[str]) -> None:
        same = grouped(patterns)
        self.groups: Sequence[Sequence[int]] = list(same.values())
        self._patterns: list[re.Pattern[bytes]] = []
        for one in same:
            flags = re.MULTILINE | (re.IGNORECASE if one.caseless else re.NOFLAG)
            self._patterns.append(re.compile(one.pattern.encode("ascii"), flags))

    def ends(self, data: bytes) -> list[int]:
        return sorted(
            found.end() << ID_BITS | number
            for number, pattern in enumerate(self._patterns)
            for found in pattern.finditer(data)
        )


class Scanner:
    """
    Compiles patterns once, scans any number of files, from any number of threads.

    `cache` is the folder the compiled form is kept in, by default the user's own.  Raises
    `CatalogueError` where a pattern is refused.  Without Hyperscan, or with `slow`, the patterns
    run one by one in `re`.
    """

    def __init__(
        self, patterns: Sequence[str], cache: Path | None = None, *, slow: bool = False
    ) -> None:
        if len(patterns) > ID_MASK:
            raise CatalogueError(f"{len(patterns)} patterns are more than {ID_MASK}")
        self.patterns = tuple(patterns)
        self._engine = _engine(patterns, cache, slow) if patterns else None
        groups = self._engine.groups if self._engine is not None else ()
        self._resolver = Resolver([tuple(group) for group in groups])

    def scan(self, file: TextFile) -> Iterator[Hit]:
        """Hits in file order. `file.line_count` is the number of lines once it is exhausted."""
        if self._engine is None:
            for _ in file.spans(SCAN_BYTES):
                pass
            return
        before = Unfinished()
        for span in file.spans(SCAN_BYTES):
            raw = span.data
            data = plain(raw[: span.end]) if b"\x1b" in raw or b"\x08" in raw else raw
            if data is not raw:
                span = Span(span.first_line, data, len(data), Newlines(data, large=False))
            flat = data.replace(b"\r", b"\n") if b"\r" in data else data
            ends = self._engine.ends(flat)
            while ends and ends[-1] >> ID_BITS > span.end:
                ends.pop()
            if ends:
                yield from self._resolver.hits(span, flat, ends, before)
            before = before.after(data, span.end)


def _engine(patterns: Sequence[str], cache: Path | None, slow: bool) -> Engine:
    if slow:
        return SlowEngine(patterns)
    try:
        return engine(patterns, cache)
    except ImportError:
        return SlowEngine(patterns)


def verify_patterns(patterns: Sequence[str]) -> list[str]:
    """One message for each pattern that cannot be scanned for; empty where all can."""
    refused: list[str] = []
    for pattern in patterns:
        try:
            reason = refusal(prefilter(pattern))
        except CatalogueError as fault:
            reason = str(fault)
        except ImportError:
            reason = None
        if reason is not None:
            refused.append(f"{pattern}: {reason}")
    return refused
