"""
Lines of logs that match a pattern, asked for by somebody who is not trusted, within bounds.

Patterns run on Hyperscan's automata, whose time is linear in the text whatever the pattern: look-
around and back references are refused, and so are counts whose automaton takes seconds to build.
A line is only a hit where the pattern matches what is shown of it: cleaned of terminal escapes and
masked, so that no secret can be guessed a character at a time.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import prod

from flatline.collect.files import Found
from flatline.collect.line_reader import KEY_LINES
from flatline.errors import SourceError, UsageError
from flatline.logs.reading import TextFile, clean, open_text, plain, segments
from flatline.redact import mask

PATTERN_CHARS = 160
LARGEST_COUNT = 64
"""Of a pattern's counts multiplied, as nested ones are: three of 64 took 190 s to build, within
this bound the worst that was found takes 0.3 s."""
SEARCH_S = 5.0
"""Reading that takes longer ends early and says where to go on."""
BLOCK_BYTES = 1 << 20
TEXT_CHARS = 300
LINE_CHARS = 64 << 10
"""What of a long line is looked at."""
_COUNT = re.compile(r"\{(\d{0,9})(?:,(\d{0,9}))?\}")


@dataclass(frozen=True, slots=True)
class Hit:
    """A line that matches, masked; of a long one the part around the match."""

    source: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Searched:
    """`follows` is where to go on, (file, line); None where everything was searched."""

    hits: tuple[Hit, ...]
    follows: tuple[int, int] | None
    timed_out: bool = False
    unread: tuple[str, ...] = ()


class Pattern:
    """A pattern, compiled for one search; letters of any case are equal."""

    def __init__(self, pattern: str) -> None:
        """Raises `UsageError` with what to write instead."""
        import hyperscan  # only searches and scans need it

        _refuse_costly(pattern)
        self._database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
        try:
            self._database.compile(
                expressions=[pattern.encode("utf-8", "replace")],
                ids=[0],
                elements=1,
                flags=[hyperscan.HS_FLAG_MULTILINE | hyperscan.HS_FLAG_CASELESS],
            )
        except (hyperscan.error, ValueError) as fault:
            raise UsageError(
                f"the pattern is not taken: {fault}. Write plain words, ., .*, [a-z], \\d, (a|b),"
                " ^ and $; look-around and back references do not exist here"
            ) from fault
        self._scratch = hyperscan.Scratch(self._database)

    def ends(self, data: bytes, most: int) -> list[int]:
        """Where matches end, at most one a line and `most` in all, in order."""
        found: list[int] = []
        reached = -1

        def note(_: int, start: int, end: int, flags: int, context: object) -> bool:
            nonlocal reached
            if end - 1 <= reached:
                return False
            line_end = data.find(b"\n", max(end - 1, 0))
            reached = len(data) if line_end < 0 else line_end
            found.append(end)
            return len(found) >= most

        self._scan(data, note)
        return found

    def within(self, text: bytes) -> int | None:
        """Where in one line a match ends first; None where there is none."""
        found: list[int] = []

        def note(_: int, start: int, end: int, flags: int, context: object) -> bool:
            found.append(end)
            return True

        self._scan(text, note)
        return found[0] if found else None

    def _scan(self, data: bytes, note: Callable[[int, int, int, int, object], bool]) -> None:
        import hyperscan

        with suppress(hyperscan.ScanTerminated):  # the callback has seen enough
            self._database.scan(data, note, scratch=self._scratch)


def _refuse_costly(pattern: str) -> None:
    if not pattern.strip():
        raise UsageError("the pattern is empty; give a word or a regular expression")
    if len(pattern) > PATTERN_CHARS:
        raise UsageError(
            f"the pattern has {len(pattern)} characters; give {PATTERN_CHARS} at most"
        )
    counts = (max(int(n or 0) for n in pair) for pair in _COUNT.findall(pattern))
    if prod(max(count, 2) for count in counts) > LARGEST_COUNT:
        raise UsageError(
            f"the pattern counts too far, beyond {LARGEST_COUNT} where its counts are multiplied;"
            " write * or + instead"
        )


def search(
    files: Sequence[Found],
    pattern: str,
    most: int,
    begin: tuple[int, int] = (0, 1),
    clock: Callable[[], float] = time.monotonic,
) -> Searched:
    """
    At most `most` lines of the files that match, from (file, line) on.

    Raises `UsageError` for a pattern that is not taken.
    """
    matcher = Pattern(pattern)
    hits: list[Hit] = []
    unread: list[str] = []
    deadline = clock() + SEARCH_S
    at, line = begin
    while at < len(files):
        try:
            with open_text(files[at].path, files[at].source) as text:
                follows = _in_file(text, matcher, most - len(hits), line, hits, deadline, clock)
        except SourceError as fault:
            unread.append(str(fault))
            follows = None
        if follows is not None:
            return Searched(tuple(hits), (at, follows), clock() >= deadline, tuple(unread))
        at, line = at + 1, 1
        if len(hits) >= most and at < len(files):
            return Searched(tuple(hits), (at, 1), False, tuple(unread))
    return Searched(tuple(hits), None, False, tuple(unread))


def _in_file(
    text: TextFile,
    matcher: Pattern,
    most: int,
    begin: int,
    hits: list[Hit],
    deadline: float,
    clock: Callable[[], float],
) -> int | None:
    """Adds the hits of one file; the line to go on at, None where it was searched to its end."""
    wanted = len(hits) + most
    for block in text.blocks(BLOCK_BYTES):
        data = plain(block.data).replace(b"\r\n", b"\n")
        line, start = block.first_line, 0
        if line + data.count(b"\n") < begin:
            continue
        while line < begin:
            start, line = data.find(b"\n", start) + 1, line + 1
        while start < len(data):
            if clock() >= deadline or len(hits) >= wanted:
                return line
            need = wanted - len(hits)
            ends = matcher.ends(data[start:], need)
            line, start = _kept(text, matcher, data, (line, start), ends, hits)
            if len(ends) < need:
                break
    return None


def _kept(
    text: TextFile,
    matcher: Pattern,
    data: bytes,
    place: tuple[int, int],
    ends: Sequence[int],
    hits: list[Hit],
) -> tuple[int, int]:
    """Looks at each candidate as it would be shown; (line, offset) behind the last of them."""
    line, start = place
    base = start
    for end in ends:
        stop = max(base + end - 1, start)
        line += data.count(b"\n", start, stop)
        shown = _shown(text, matcher, line)
        if shown is not None:
            hits.append(Hit(text.source, line, shown))
        following = data.find(b"\n", stop)
        if following < 0:
            return line + 1, len(data)
        start, line = following + 1, line + 1
    return line, start


def _shown(text: TextFile, matcher: Pattern, line: int) -> str | None:
    """What is shown of the line where it matches still, masked together with the lines before it,
    since a key may span many; of one drawn over itself the part that matches."""
    begin = max(line - KEY_LINES, 1)
    rows = text.window(begin, line - begin + 1)
    if not rows or rows[-1][0] != line:
        return None
    before = [clean(segments(row)[-1])[:LINE_CHARS] for _, row in rows[:-1]]
    for part in segments(rows[-1][1]):
        own = clean(part)[:LINE_CHARS]
        masked = mask("\n".join([*before, own])).split("\n")[-1].encode("utf-8", "replace")
        end = matcher.within(masked)
        if end is not None:
            return _around(masked, end)
    return None


def _around(text: bytes, end: int) -> str:
    """At most `TEXT_CHARS` of the line, the end of the match among them."""
    first = max(0, end - TEXT_CHARS * 2 // 3)
    cut = text[first : first + TEXT_CHARS].decode("utf-8", "ignore").strip()
    return "…" * bool(first) + cut + "…" * (first + TEXT_CHARS < len(text))
