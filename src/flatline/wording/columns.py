"""Text in columns of a terminal: measured, wrapped, cut down to what tells."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from itertools import pairwise

MAX_QUOTED, MAX_HITS = 20_000, 300
"""Characters and telling words looked at when a line is cut down."""
_TELLING = re.compile(
    r"(?i)\b(?:\w*(?:error|exception|fault)\w*|fatal|fail\w*|kill\w*|abort\w*|signal|xid|sxid|ecc"
    r"|timed?.?out|out of memory|oom\w*|nan|inf|lost|dead|down|unreachable|refused|denied"
    r"|exit\w*)\b"
)
WORD = re.compile(r"[\w.\-]{3,60}")
"""What counts as a word when a claim and a line are compared."""


def cells(text: str) -> int:
    """Columns a terminal gives to the text: two for wide characters, none for combining ones."""
    if text.isascii():
        return len(text)
    return sum(
        0
        if unicodedata.category(char) in ("Mn", "Me")
        else 2
        if unicodedata.east_asian_width(char) in ("W", "F")
        else 1
        for char in text
    )


def _cut(text: str, width: int) -> int:
    """How many characters fit into `width` columns; at least one."""
    if text.isascii():
        return max(width, 1)
    used = 0
    for at, char in enumerate(text):
        used += cells(char)
        if used > width:
            return max(at, 1)
    return len(text)


def _joint(word: str, at: int) -> int:
    """Where to cut a long word at or before `at`: behind punctuation if it stands near the end,
    since a query or a list may be broken there and still be read."""
    behind = max(word.rfind(mark, at // 2, at) for mark in ",;({/&|") + 1
    return behind or at


def wrap(text: str, width: int) -> list[str]:
    """Lines of at most `width` columns; a word longer than a line is cut, at a joint if it can."""
    lines: list[str] = []
    line, used = "", 0
    for word in text.split(" "):
        size = cells(word)
        if line and used + 1 + size <= width:
            line, used = f"{line} {word}", used + 1 + size
            continue
        if line:
            lines.append(line)
        while size > width:
            at = _joint(word, _cut(word, width))
            lines.append(word[:at])
            word = word[at:]
            size = cells(word)
        line, used = word, size
    return [*lines, line] if line or not lines else lines


def break_command(command: str, width: int) -> list[str]:
    """A shell command in lines that can be pasted: broken at unquoted spaces only."""
    spaces, quote, escaped = [0], "", False
    for at, char in enumerate(command):
        if escaped:
            escaped = False
        elif char == "\\" and quote != "'":
            escaped = True
        elif quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char == " " and at:
            spaces.append(at)
    lines, start = [], 0
    for at, after in pairwise([*spaces, len(command)]):
        if at > start and after - start > width - 2:
            lines.append(command[start:at].strip() + " \\")
            start = at
    return [*lines, command[start:].strip()]


def elided(text: str, width: int, ellipsis: str) -> str:
    """At most `width` columns of a text whose both ends tell, as a query's do: its middle goes."""
    if cells(text) <= width:
        return text
    room = max(width - cells(ellipsis), 2)
    head = text[: _cut(text, (room + 1) // 2)]
    tail = text[-1 : -_cut(text[::-1], room // 2) - 1 : -1][::-1]
    return head + ellipsis + tail


def words_of(texts: Iterable[str]) -> frozenset[str]:
    """The words that citing texts repeat, by which `excerpt` knows what tells."""
    return frozenset(found[0].lower() for text in texts for found in WORD.finditer(text))


def excerpt(text: str, width: int, words: frozenset[str], ellipsis: str) -> str:
    """
    At most `width` columns of the text, the telling part kept.

    What tells is what the citing claim repeats, and the words failures are reported in.  The
    window with most of that wins, the earliest of equals, and reaches further back where the text
    ends within it: what failed stands before the word.  An ellipsis stands for each part left out.
    """
    if cells(text) <= width:
        return text
    text = text[:MAX_QUOTED]
    room = max(width - 2 * len(ellipsis), 1)
    hits = [(m.start(), m.end(), 3) for m in _TELLING.finditer(text)]
    hits += [(m.start(), m.end(), 2) for m in WORD.finditer(text) if m[0].lower() in words]
    best, start, end = 0, 0, 0
    hits = sorted(hits)[:MAX_HITS]
    for begin, _, _ in hits:
        within = [(last, w) for first, last, w in hits if first >= begin and last <= begin + room]
        told = sum(w for _, w in within)
        if told > best:
            best, start, end = told, begin, max(within)[0]
    start = max(text.rfind(" ", 0, start) + 1, start - room // 4)
    earliest = len(text) - _cut(text[::-1], room)
    if start > earliest:
        start = text.find(" ", earliest - 1, earliest + room // 4) + 1 or earliest
    start = 0 if start < room // 3 and end <= room else start
    shown = text[start : start + _cut(text[start:], room)]
    if start and start + len(shown) == len(text):
        return ellipsis + shown
    return ellipsis * bool(start) + shown.rstrip() + ellipsis
