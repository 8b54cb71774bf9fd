"""
A line as its numbers and what is called what: `| s   150 | ce  4.418 |   8.75 s |` holds 150,
which is "s", 4.418, which is "ce", and 8.75 of the unit "s".

Nothing is known of the line's program.  A word before a number is its name, one behind it a unit
where it touches the number, or where the number has no other name.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

_NUMBER = (
    r"[-+]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+|(?=\.[0-9]))(?:\.[0-9]*)?"
    r"(?:e[-+]?[0-9]{1,3})?(?![0-9])"
)
_OF_DAY = r"[0-9]{2}:[0-9]{2}(?::[0-9]{2})?"
_TIME = (
    rf"[0-9]{{4}}[-/.][0-9]{{2}}[-/.][0-9]{{2}}(?:[t ,_-]{{1,2}}{_OF_DAY})?"
    rf"|[0-9]{{1,2}}[-/. ](?:[0-9]{{2}}|[a-z]{{3}})[-/. ][0-9]{{4}}[t :,]{{1,2}}{_OF_DAY}"
    r"|[0-9]{1,3}:[0-9]{2}"
)
_LENGTH = (
    r"(?:(?P<days>[0-9]{1,4}) days?, )?(?P<h>[0-9]{1,3}):(?P<m>[0-9]{2})"
    r":(?P<s>[0-9]{2}(?:\.[0-9]{1,9})?)"
)
_TOKEN = re.compile(
    rf"(?P<length>(?<![\w.:-]){_LENGTH}(?![\w:-]|[.,][0-9]))"
    rf"|(?P<time>(?<![\w.])(?:{_TIME}|{_OF_DAY})(?:[.,][0-9]{{1,9}})?(?:z|[+-][0-9]{{2}}:?[0-9]{{2}})?(?![0-9]))"
    r"|(?P<number>(?:(?<![\w.])|(?<=[\s(\[|,:/@#<][a-z])(?=[0-9]+[/\s,|\])]))"
    rf"(?:{_NUMBER}|[-+]?(?:nan|inf)(?![\w])))"
)
_TOUCHES = re.compile(r"[a-zµ%]{1,6}(?:/[a-z]{1,8})?(?![\w])")
_A_TIME = re.compile(r"(?:m?s|secs?|seconds|minutes|min|hours)(?![\w/=:])")
_PARTS = re.compile(r"[|,;()\[\]{}<>\"]+|\s{2,}|: | - |::")
_SIGNS = " \t'\"=:@#~*≈‖-+/\\."
_SAID = re.compile(r".*[=:]\S* ")
"""What another word has already been said to be: `phase=train n`."""
_DIGITS = str.maketrans("0123456789", "0" * 10)
LEAST_COMMAS = 3
MOST_WORDS = 5
SPARE = 2
"""Cells that a heading may have beyond its rows': when it was printed."""
LONGEST = 1_024
"""Characters of a line that are read."""


@dataclass(frozen=True, slots=True)
class Number:
    """`text` as it stands there, `at` some place; `name` and `unit` in lower case, "" where there
    is none; `gap` is what stands between it and the number before."""

    text: str
    name: str
    unit: str
    gap: str
    at: int
    clocked: bool = False
    """Whether it stands there as hours, minutes and seconds; `text` is in seconds."""

    @property
    def value(self) -> float:
        return float(self.text.replace(",", ""))

    @property
    def count(self) -> int | None:
        """The number, where it is printed as a whole one."""
        if self.clocked:
            return None
        plain = self.text.replace(",", "")
        return int(plain) if plain.isdecimal() and len(plain) <= 15 else None


@dataclass(frozen=True)
class Row:
    """A line's numbers in order; the text around them has every digit in it as 0."""

    low: str
    numbers: tuple[Number, ...]
    end: str

    @cached_property
    def shape(self) -> tuple[str, ...]:
        return (*(number.gap for number in self.numbers), self.end)

    @cached_property
    def text(self) -> str:
        return " ".join(self.shape)


_FILLED = dict.fromkeys(range(0x2580, 0x25A0), " ")
"""What fills a bar: how much of it is no part of what a line says."""


def row(text: str) -> Row:
    """Reads a line, in any case."""
    low = text[:LONGEST].lower()
    if "%|" in low:
        low = low.translate(_FILLED)
    if low.count(",") >= LEAST_COMMAS and ", " not in low:  # a table's separators, not thousands
        low = low.replace(",", " , ")
    tokens = list(_TOKEN.finditer(low))
    gaps = [low[a.end() : b.start()] for a, b in pairwise(tokens)]
    gaps = [low[: tokens[0].start()], *gaps, low[tokens[-1].end() :]] if tokens else [low]
    numbers, before = [], ""
    for n, token in enumerate(tokens):
        before += gaps[n]
        if token.lastgroup == "time":
            before += " 0:0 "
            continue
        name = _name(gaps[n], first=n == 0 or tokens[n - 1].lastgroup == "time")
        unit = _unit(gaps[n + 1], named=bool(name), last=n + 1 == len(tokens))
        text, clocked = token["number"], token.lastgroup == "length"
        if clocked:
            text = str(_seconds(token))
        numbers.append(Number(text, name, unit, _plain(before), token.start(), clocked))
        before = ""
    return Row(low, tuple(numbers), _plain(before + gaps[-1]))


def _seconds(token: re.Match[str]) -> float:
    days, hours, minutes = (int(token[part] or 0) for part in ("days", "h", "m"))
    return 86_400.0 * days + 3_600.0 * hours + 60.0 * minutes + float(token["s"])


def _plain(gap: str) -> str:
    return " ".join(gap.translate(_DIGITS).split())


def _name(gap: str, *, first: bool) -> str:
    """The words right before a number; none where they are the unit of the one before."""
    rest = gap
    if not first and (touches := _TOUCHES.match(gap)):
        rest = gap[touches.end() :]
    parts = [part.strip(_SIGNS) for part in _PARTS.split(rest.rstrip(_SIGNS + "([<{|,"))]
    if not parts or not parts[-1]:
        return ""
    last = parts[-1]
    if said := _SAID.match(last):
        last = last[said.end() :]
    return " ".join(last.split()[-3:]).strip(_SIGNS)


def _unit(gap: str, *, named: bool, last: bool) -> str:
    """The unit right behind a number: it touches it, or stands alone before the next part."""
    if touches := _TOUCHES.match(gap):
        return touches[0]
    parts = _PARTS.split(gap, maxsplit=1)
    word = parts[0].strip()
    if _A_TIME.match(word):
        return " ".join(word.split()[:2])
    alone = len(parts) > 1 or last or not named
    return word if alone and len(word.split()) <= 2 and not word.endswith("=") else ""


def headed(row: Row, heading: str) -> list[str] | None:
    """The names that a table's heading, in any case, gives the numbers of a row, "" for those that
    are not the first of their cell; None where it has fewer cells."""
    names = [name for _, name in cells(heading.lower())]
    wanted = len(cells(row.low))
    own = sum(bool(number.name) for number in row.numbers)
    if not wanted <= len(names) <= wanted + SPARE or 2 * own > len(row.numbers):
        return None
    if any(len(name.split()) > MOST_WORDS for name in names[:wanted]):
        return None
    return [names[cell] if cell >= 0 else "" for cell in cell_of(row)]


def cells(low: str) -> list[tuple[int, str]]:
    """The cells of a table's line, in lower case, that hold something, and where each begins."""
    between = "|" if "|" in low else "," if low.count(",") >= LEAST_COMMAS else None
    pattern = re.escape(between) if between else r"\t|\s{2,}"
    found, at = [], 0
    for gap in [*re.finditer(pattern, low), None]:
        end = gap.start() if gap else len(low)
        cell = low[at:end]
        if cell.strip():
            found.append((at + len(cell) - len(cell.lstrip()), cell.strip()))
        at = gap.end() if gap else end
    return found


def cell_of(row: Row) -> list[int]:
    """Of each number the cell of the line that it is the first of; -1 for any further one."""
    begins = [at for at, _ in cells(row.low)]
    seen: set[int] = set()
    found = []
    for number in row.numbers:
        n = bisect_right(begins, number.at) - 1
        found.append(-1 if n in seen else n)
        seen.add(n)
    return found
