"""
Formats, one a file; the folder is the registry.

A *line format* module has `FORMAT` (its name), `TRIGGERS` (patterns of the lines it reads) and a
class `Reader` whose `feed(text)` takes such a line, stripped of labels and escapes, and yields
`Progress` or `ProcessExit` values (`ProcessExit.cite` left to the caller: see `Reported`).  One
reader serves one stream: one rank of one file, in order.  Of several formats whose patterns a line
meets the first that says anything of it has it; one with a `GENERIC` above 0 reads what no
framework's own format does and is asked after those, the lowest first.  The lines of one with
`ANCHORED` set are told by how they begin: a stamp that others put before them is taken off.

A *file format* module has `FORMAT`, `recognise(name, head)` and `parse(data, source)`.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Protocol, cast

from flatline.errors import FormatError
from flatline.model import NOWHERE, Place, Progress, Records, Scalar

BROKE = "its reader broke"


@dataclass(frozen=True, slots=True)
class Reported:
    """How a launcher says a process ended, before the line it stands in is known."""

    reporter: str
    place: Place = NOWHERE
    exit_code: int | None = None
    signal: int | None = None
    first: bool = False


@dataclass(frozen=True, slots=True)
class Columns:
    """
    Where a line that is one training step has its numbers, if every line that differs from it in
    digits alone is one too, has them there, and says nothing else.

    `names` are those of `Progress`, "step" first.  A number stands between two places, counted in
    characters, and is multiplied by one number and divided by another.
    """

    names: tuple[str, ...]
    numbers: tuple[tuple[int, int, float, float], ...]
    loss_name: str
    falling: bool


class LineReader(Protocol):
    """One may have a method `columns(text) -> Columns | None`, asked of a line that was just
    fed; what it gives may depend on nothing that was fed before.  One may have a method
    `rows(lines)`, given what follows a line that was just fed as pairs of a token and a text; it
    takes as many as it wants and yields pairs of a token and `Progress`."""

    def feed(self, text: str) -> Iterable[Progress | Reported]:
        """What this line says; an empty iterable where it says nothing."""


class LineFormat(Protocol):
    FORMAT: str
    FRAMEWORK: str | None
    TRIGGERS: tuple[str, ...]

    def Reader(self) -> LineReader: ...


_DAY = (
    r"\d{4}[-/.]\d\d[-/.]\d\d[T _,]{1,2}|\d\d[-/]\d\d(?:[-/]\d{2,4})? {1,2}"
    r"|(?:[A-Z][a-z]{2},? {1,2})?[A-Z][a-z]{2} {1,2}\d{1,2} "
)
_STAMPED = re.compile(
    rf"\s{{0,8}}\[?(?:{_DAY})?\d\d:\d\d:\d\d(?:[.,]\d{{1,9}})?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?"
    r"(?: \d{4})?\]?(?:\s{0,3}(?:[-|:] )?\[?(?:[A-Za-z_][\w.]{0,40} [-|] )?"
    r"(?:DEBUG|INFO|NOTICE|WARNING)\]?(?: ?[-|:])?| ?[-:>])?\s{1,80}(?=\S)"
)
"""`ts` of moreutils, and loggers that a program's output is led through.  A `|` is taken off where
a level stands beside it: rows of tables begin with one."""


class _Unstamped:
    """Reads what stands behind the stamp of a line, if it has one."""

    def __init__(self, reader: LineReader) -> None:
        self._reader = reader

    def feed(self, text: str) -> Iterable[Progress | Reported]:
        stamp = _STAMPED.match(text)
        return self._reader.feed(text if stamp is None else text[stamp.end() :])


def reader_of(form: LineFormat) -> LineReader:
    """A reader of one stream."""
    return _Unstamped(form.Reader()) if getattr(form, "ANCHORED", False) else form.Reader()


class RecordFormat(Protocol):
    """One may have `IN_LINES` set: its lines are searched as a log's are as well.  One with
    `SEVERAL` set holds what others read, and is asked before them.  One may have
    `holds_output(head) -> bool`: whether the job's own log stands in such a file as well."""

    FORMAT: str

    def recognise(self, name: str, head: bytes) -> bool:
        """Whether a file of this name that begins so is of this format."""

    def parse(self, data: bytes, source: str) -> Records:
        """Raises `FormatError` where it is not after all."""

    def resolve(self, data: bytes, pointer: str) -> Scalar:
        """The value a citation's pointer stands for in these bytes."""


def _modules() -> list[ModuleType]:
    names = sorted(found.name for found in pkgutil.iter_modules(__path__))
    return [importlib.import_module(f"{__name__}.{name}") for name in names if name[0] != "_"]


@cache
def line_formats() -> tuple[LineFormat, ...]:
    """Formats in the order they are asked: those of a framework before those of anybody."""
    found = [cast(LineFormat, m) for m in _modules() if hasattr(m, "TRIGGERS")]
    return tuple(sorted(found, key=lambda one: getattr(one, "GENERIC", 0)))


@cache
def record_formats() -> tuple[RecordFormat, ...]:
    found = [cast(RecordFormat, m) for m in _modules() if hasattr(m, "recognise")]
    return tuple(sorted(found, key=lambda one: not getattr(one, "SEVERAL", False)))


def record_format_of(name: str, data: bytes) -> RecordFormat | None:
    """The format of a file of this name that begins so."""
    head = data[:65_536]
    return next((form for form in record_formats() if form.recognise(name, head)), None)


def parsed(form: RecordFormat, data: bytes, source: str) -> Records:
    """Raises `FormatError` alone, be it that the format's reader broke: its fault must hide
    nothing but this file."""
    try:
        return form.parse(data, source)
    except FormatError:
        raise
    except Exception as fault:
        raise FormatError(f"{BROKE}: {type(fault).__name__}: {fault}; please report it") from fault
