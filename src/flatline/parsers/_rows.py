"""
Rows of Slurm's delimited output (`sacct -P`, `sacctmgr -P`), put together again.

The header names the columns; a value may hold line breaks (a comment, a submit line) and even
the delimiter, and nothing is quoted.  A row is therefore gathered until it has its number of
fields, unless the next line is a whole row by itself, in which case what was gathered is a
broken row and left out.  A row with too many fields is put right where only one place for the
surplus agrees with what its other columns may hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from flatline.errors import FormatError
from flatline.model import Scalar

HEAD_LINES, TOP_LINES = 40, 6
STEPS, WAYS = 4000, 64  # of putting one row right
GATHER = 100  # lines one row may span
RETRIES = 1000  # broken rows after which the lines gathered for one are not looked at again
_HEADER = re.compile(r"([A-Za-z]\w*)([^\w\s]{1,8}|\t)([A-Za-z]\w*)")
_POINTER = re.compile(r"row (\d{1,9}), (\w+)")


@dataclass(frozen=True, slots=True)
class Row:
    """One whole row: its number (from 1, headers not counted) and its values by column name."""

    number: int
    values: Mapping[str, str]

    def __getitem__(self, column: str) -> str:
        return self.values.get(column, "")

    def pointer(self, column: str) -> str:
        return f"row {self.number}, {column}"


@dataclass(frozen=True, slots=True)
class Shape:
    """
    What a table of this kind may hold: its known columns (by lower-case name), those a header
    must have one of, what certain columns' values look like, and which hold free text.
    """

    columns: Mapping[str, str]
    needs: frozenset[str]
    looks: Mapping[str, re.Pattern[str]]
    free: frozenset[str]


@dataclass(frozen=True, slots=True)
class Header:
    columns: tuple[str, ...]
    delimiter: str
    trailing: bool
    """Whether every line ends with the delimiter, as `sacct -p` has it."""


def decoded(data: bytes) -> str:
    """The text, with bytes that are not UTF-8 replaced and line ends made one kind."""
    if _binary(data):
        raise FormatError("binary data, not a table")
    text = data.decode("utf-8-sig", "replace")
    return text.replace("\r\n", "\n") if "\r" in text else text


def _binary(data: bytes) -> bool:
    return b"\0" in data[:4096]


def shown(
    text: str, command: re.Pattern[str], but: Callable[[str], bool] | None = None
) -> Iterator[str]:
    """The lines of what a command printed, without itself as a terminal shows it; one that `but`
    knows stays."""
    said = (line for line in _lines(text) if line.strip())
    return (line for line in said if not command.fullmatch(line) or (but and but(line)))


def under_header(
    lines: Iterable[str],
    columns_of: Callable[[str], Sequence[str] | None],
    cells: re.Pattern[str],
    least: int | None = None,
) -> Iterator[Row]:
    """Rows of a table whose columns stand apart, under their header wherever it stands again; one
    of fewer cells than columns, or than `least`, is left out.  Raises `FormatError` where the
    first line is no header."""
    columns: Sequence[str] | None = None
    number = 0
    for line in lines:
        if (found := columns_of(line)) is not None:
            columns = found
        elif columns is None:
            break
        else:
            number += 1
            values = cells.split(line.strip())
            if (least or len(columns)) <= len(values) <= len(columns):
                yield Row(number, dict(zip(columns, values, strict=False)))
    if columns is None:
        raise FormatError("its first line is not the header of that table")


def _lines(text: str) -> Iterator[str]:
    """One after another: of a file's beginning the first few tell what it is."""
    at = 0
    while (end := text.find("\n", at)) >= 0:
        yield text[at:end]
        at = end + 1
    yield text[at:]


@lru_cache(maxsize=1)  # every format asks for the same
def beginning(head: bytes) -> tuple[str, ...]:
    """The first lines of a file's beginning; none of what is no text."""
    if _binary(head):
        return ()
    pieces = head.split(b"\n", HEAD_LINES)
    first = head[: -len(pieces[-1])] if len(pieces) > HEAD_LINES and pieces[-1] else head
    return tuple(decoded(first).split("\n", HEAD_LINES)[:HEAD_LINES])


@lru_cache(maxsize=1)
def _lowered(head: bytes) -> str:
    return "\n".join(beginning(head)).lower()


def mentions(head: bytes, *names: str) -> bool:
    """Whether the first lines hold one of these names, in whatever letters.  What a header has to
    name few logs do, and this tells without looking at each line."""
    low = _lowered(head)
    return any(name.lower() in low for name in names)


def top(head: bytes, command: re.Pattern[str]) -> list[str]:
    """The first of them that say something, without the command itself."""
    said = (line for line in beginning(head) if line.strip() and not command.fullmatch(line))
    return list(islice(said, TOP_LINES))


def header(line: str, shape: Shape) -> Header | None:
    """The header this line is, or None. Half of its names must be known ones."""
    line = line.strip()
    found = _HEADER.match(line)
    if found is None:
        return None
    names = line.removesuffix(found[2]).split(found[2])
    if not all(name.isidentifier() for name in names):
        return None
    known = [shape.columns.get(name.lower(), name) for name in names]
    recognised = sum(name.lower() in shape.columns for name in names)
    if not shape.needs & set(known) or recognised * 2 < len(names):
        return None
    return Header(tuple(known), found[2], line.endswith(found[2]))


def _agrees(fields: Sequence[str], columns: Sequence[str], shape: Shape) -> bool:
    return all(
        look.fullmatch(field.strip()) is not None
        for field, column in zip(fields, columns, strict=True)
        if (look := shape.looks.get(column)) is not None
    )


def _fits(fields: list[str], head: Header, shape: Shape) -> Iterator[list[str]]:
    """Every way to join surplus fields in free-text columns that agrees with the other columns,
    as far as `STEPS` tries go."""
    columns = head.columns
    stack: list[tuple[int, list[str]]] = [(0, [])]
    for _ in range(STEPS):
        if not stack:
            return
        used, built = stack.pop()
        if len(built) == len(columns):
            if used == len(fields):
                yield built
            continue
        column = columns[len(built)]
        left = len(fields) - used - (len(columns) - len(built) - 1)
        most = left if column in shape.free else min(left, 1)
        look = shape.looks.get(column)
        for size in range(most, 0, -1):
            value = head.delimiter.join(fields[used : used + size])
            if look is None or look.fullmatch(value.strip()):
                stack.append((used + size, [*built, value]))


def _fitted(fields: list[str], head: Header, shape: Shape) -> list[str] | None:
    """The fields with any surplus joined where it came from; None where nothing agrees, or where
    two ways agree that differ in a column whose looks are known."""
    if len(fields) == len(head.columns):
        return fields if _agrees(fields, head.columns, shape) else None
    fits = list(islice(_fits(fields, head, shape), WAYS))
    known = [index for index, column in enumerate(head.columns) if column in shape.looks]
    if fits and all([fit[i] for i in known] == [fits[0][i] for i in known] for fit in fits):
        return fits[0]
    return None


def _whole(line: str, head: Header, shape: Shape) -> bool:
    fields = _fields(line, head)
    return len(fields) == len(head.columns) and _agrees(fields, head.columns, shape)


def _fields(text: str, head: Header) -> list[str]:
    text = text.rstrip().removesuffix(head.delimiter) if head.trailing else text
    return text.split(head.delimiter)


def _gathered(lines: Sequence[str], at: int, head: Header, shape: Shape) -> tuple[str, int]:
    """The text of the row that begins at line `at`, and how many lines it takes."""
    text = lines[at]
    want = len(head.columns) - 1 + head.trailing
    have = text.count(head.delimiter)
    for more in range(1, GATHER):
        if have >= want or at + more >= len(lines):
            return text, more
        line = lines[at + more]
        if _whole(line, head, shape) or header(line, shape):
            return text, more
        text = f"{text}\n{line}"
        have += line.count(head.delimiter)
    return text, GATHER


def _values(
    lines: Sequence[str], at: int, head: Header, shape: Shape
) -> tuple[dict[str, str] | None, int]:
    """The row that begins at line `at`, None where it is none, and how many lines it takes."""
    gathered, taken = _gathered(lines, at, head, shape)
    fields = _fields(gathered, head)
    fitted = _fitted(fields, head, shape) if len(fields) >= len(head.columns) else None
    if fitted is None:
        return None, taken
    return dict(zip(head.columns, fitted, strict=True)), taken


def rows(text: str, shape: Shape) -> Iterator[Row]:
    """
    Every whole row. Raises `FormatError` where the first lines hold no header, since sacct's
    default column order depends on its version.
    """
    lines = text.split("\n")
    head: Header | None = None
    number = at = broken = 0
    while at < len(lines):
        line = lines[at]
        taken = 1
        first = line.split(head.delimiter, 1)[0].strip().lower() if head else ""
        found = header(line, shape) if head is None or first in shape.columns else None
        if found is not None:
            head = found
        elif head is None:
            if at >= HEAD_LINES:
                break
        elif line.strip():
            values, taken = _values(lines, at, head, shape)
            if values is not None:
                number += 1
                yield Row(number, values)
            else:
                broken += 1
                taken = 1 if broken < RETRIES else taken
        at += taken
    if head is None:
        raise FormatError("no header line with known column names: print it with its header")


def resolved(data: bytes, pointer: str, read: Callable[[bytes], Iterator[Row]]) -> Scalar:
    """The value `row N, Column` points at, read again. Raises `FormatError` where it is not."""
    found = _POINTER.fullmatch(pointer)
    if found is None:
        raise FormatError(f"no pointer into a table: {pointer[:80]!r}")
    for row in read(data):
        if row.number == int(found[1]) and found[2] in row.values:
            return row.values[found[2]]
    raise FormatError(f"nothing at {pointer!r}")
