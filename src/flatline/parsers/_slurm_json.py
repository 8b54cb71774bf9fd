"""
Reading Slurm's JSON, whose dialects spell one thing in several ways.

A number is plain up to 22.05 (null, or NO_VAL as a large integer, where unset) and
`{"set": true, "infinite": false, "number": 3}` later; a state is a word, then a list of words;
an exit code is a wait(2) status, then a table.  `Node` walks such a document and remembers the
JSON pointer (RFC 6901) of where it stands, so that what is read can be cited.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import orjson

from flatline.errors import FormatError
from flatline.model import Disposition, Gap, Scalar
from flatline.parsers._exits import waited
from flatline.parsers._slurm import BASES, FLAGS, NO_VALUE, settled
from flatline.tracks import SCHEDULER

_EXCUSED = re.compile(rb"NaN|Infinity|[\x80-\xff]|\\u[dD]")
"""Only with one of these may a document that orjson refuses be JSON after all; the other reader
takes ten times as long to refuse it."""
DEPTH = 64  # Slurm nests less than 10 deep


def loaded(data: bytes) -> Any:
    """
    The document. Job names may hold any bytes, so invalid UTF-8 is replaced, and NaN or Infinity,
    which Slurm prints and JSON forbids, are read.  Raises `FormatError` for anything else.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as fault:
        if not _EXCUSED.search(data):
            raise FormatError(f"not JSON: {str(fault)[:120]}") from fault
    try:
        return json.loads(data.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError) as fault:
        raise FormatError(f"not JSON: {str(fault)[:120]}") from fault


class Node:
    """A place in a JSON document; everything asked of a missing or odd value is None or empty."""

    __slots__ = ("pointer", "value")

    def __init__(self, value: Any, pointer: str = "") -> None:
        self.value = value
        self.pointer = pointer

    def __getitem__(self, path: str) -> Node:
        """The member at `a/b/c`; keys of Slurm hold no slash."""
        value, pointer = self.value, self.pointer
        for key in path.split("/"):
            value = value.get(key) if isinstance(value, dict) else None
            pointer = f"{pointer}/{key}"
        return Node(value, pointer)

    def __iter__(self) -> Iterator[Node]:
        if isinstance(self.value, list):
            for index, item in enumerate(self.value):
                yield Node(item, f"{self.pointer}/{index}")

    @property
    def text(self) -> str | None:
        """A text that says something; a number as text."""
        if isinstance(self.value, str):
            word = self.value.strip()
            return word or None
        number = self.number
        return None if number is None else f"{number:g}" if number % 1 else str(int(number))

    @property
    def number(self) -> float | None:
        """A number that is set, neither infinite nor Slurm's NO_VAL."""
        value = self.value
        if isinstance(value, dict):
            if value.get("set") is False or value.get("infinite") is True:
                return None
            value = value.get("number")
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return value if 0 <= value < NO_VALUE else None

    @property
    def integer(self) -> int | None:
        number = self.number
        return None if number is None else int(number)

    @property
    def words(self) -> list[str]:
        """A word, or a list of words."""
        if isinstance(self.value, str):
            return [self.value]
        if isinstance(self.value, list):
            return [item for item in self.value if isinstance(item, str)]
        return []


def cited(*places: Node) -> tuple[str, Scalar]:
    """Pointer and value of the first place that holds a value, a set number, or a list of words
    (whose first is the base state); the document's root and None where none does."""
    for place in places:
        value, pointer = place.value, place.pointer
        if isinstance(value, dict) and place.number is not None:
            value, pointer = value.get("number"), f"{pointer}/number"
        if isinstance(value, list) and value:
            value, pointer = value[0], f"{pointer}/0"
        if isinstance(value, str | int | float):
            return pointer, value
    return "", None


def exit_code(node: Node, state: Disposition) -> tuple[int | None, int | None]:
    """
    (exit code, signal) in any dialect.

    A plain number, or one that is `set`, is a wait(2) status.  In a table `status` SUCCESS with
    a *plain* `return_code` of 0 is what Slurm 22.05 and 23.02 (data_parser up to v0.0.39) print
    for every process that exited, whatever its code: it is taken for 0 only where the state is
    COMPLETED, else the code is not known.
    """
    table = node.value
    if not isinstance(table, dict) or "number" in table:
        status = node.integer
        code, sign = (None, None) if status is None else waited(status)
        return settled(code, sign, state)
    for path in ("signal/id", "signal/signal_id"):
        sign = node[path].integer
        if sign:
            return settled(None, sign, state)
    if any(word.upper() in ("PENDING", "CORE_DUMPED") for word in node["status"].words):
        return None, None
    code = node["return_code"].integer
    plain = isinstance(table.get("return_code"), int)
    if plain and code == 0 and state != "completed":
        return None, None
    return settled(code, None, state)


KINDS: dict[str, Callable[[Node], bool]] = {
    "text": lambda node: isinstance(node.value, str) or node.integer is not None,
    "number": lambda node: _is_number(node.value),
    "exit": lambda node: isinstance(node.value, dict) or _is_number(node.value),
    "rows": lambda node: (
        isinstance(node.value, list) and all(isinstance(item, dict) for item in node.value)
    ),
    "state": lambda node: (
        bool(node.words) and all(word.upper() in {*BASES, *FLAGS} for word in node.words)
    ),
}
"""What a field may hold, in any dialect."""


def _is_number(value: object) -> bool:
    """A number, NO_VAL and INFINITE included, plain or in a table, where it may be unset."""
    if isinstance(value, dict):
        if value.get("set") is False or value.get("infinite") is True:
            return True
        value = value.get("number")
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return plain and 0 <= value <= 2**64  # type: ignore[operator]


def odd_fields(rows: Iterable[Node], kinds: Mapping[str, str], source: str) -> tuple[Gap, ...]:
    """One gap for each field that holds what Slurm never prints there: it was passed over."""
    odd: dict[str, tuple[int, object]] = {}
    for row in rows:
        for path, kind in kinds.items():
            node = row[path]
            if node.value not in (None, "", []) and not KINDS[kind](node):
                count, first = odd.get(path, (0, node.value))
                odd[path] = count + 1, first
    return tuple(
        Gap(
            SCHEDULER,
            f"{path} of {count} {'row' if count == 1 else 'rows'} holds what Slurm does not print"
            f" there, as {str(first)[:60]!r}, and was not read",
            source,
        )
        for path, (count, first) in odd.items()
    )


def left_out(count: int, source: str) -> tuple[Gap, ...]:
    """A gap for rows that are none or name no job."""
    if count <= 0:
        return ()
    rows = f"{count} {'row names' if count == 1 else 'rows name'} no job"
    return (Gap(SCHEDULER, f"{rows}, and {'was' if count == 1 else 'were'} not read", source),)


def resolve(data: bytes, pointer: str) -> Scalar:
    """The scalar at a JSON pointer. Raises `FormatError` where nothing, or no scalar, is there."""
    value = loaded(data)
    steps = pointer.split("/")
    if steps[0] or len(steps) > DEPTH:
        raise FormatError(f"no JSON pointer: {pointer[:80]!r}")
    for step in steps[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and int(key[:9]) < len(value):
            value = value[int(key[:9])]
        else:
            raise FormatError(f"nothing at {pointer[:80]!r}")
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise FormatError(f"no single value at {pointer[:80]!r}")
