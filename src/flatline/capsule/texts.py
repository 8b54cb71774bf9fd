"""
Logs, records and dumps as a capsule holds them: the same lines, pointers and entries, no secret.

Nothing is copied as it is.  A log is written as it is read (unpacked, UTF-8, an event file as its
lines), each line masked by itself as `diagnose` and `verify` mask what they quote, a private key
as the block it is.  A record in JSON is masked text by text, one in columns cell by cell, and
must say the same as before when it is parsed again.  A dump is written as JSON of what the safe
reader reads: a pickle may hold anything, JSON nothing that runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from flatline.collect.masking import masked
from flatline.errors import FormatError
from flatline.logs.reading import open_text
from flatline.model import Records
from flatline.parsers import parsed, record_format_of
from flatline.parsers.flight_recorder import masked_dump
from flatline.redact import MASK, mask, mask_value, unescaped

Text = Callable[[str], str]
Value = Callable[[str, str], str]
"""Of a text under its name."""

KEY_LINES = 512
"""Lines a private key may span: one of 16,384 bits has 210 of 64 letters."""
_KEY_BEGINS = re.compile(rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY")
_KEY_ENDS = b"-----END"
_HEADING = re.compile(r"[A-Za-z]\w*([^\w\s]{1,8}|\t)[A-Za-z]\w*(?:\1\w*){2,}")


def write_log(path: Path, source: str, into: BinaryIO, read: Callable[[int], None]) -> int:
    """The lines of a log, masked; the number of lines that were changed.  `read` is told how many
    bytes are done. Raises OSError, SourceError."""
    changed = 0
    with open_text(path, source) as text:
        key: list[bytes] = []
        for line in _lines(text.blocks(), read):
            if key or _KEY_BEGINS.search(line):
                key.append(line)
                if _KEY_ENDS not in line and len(key) < KEY_LINES:
                    continue
                changed += len(key)
                into.write(_block(key))
                key = []
                continue
            shown = hidden(line)
            changed += shown is not line
            into.write(shown)
        into.write(_block(key))
    return changed + len(key)


def _lines(blocks: Any, read: Callable[[int], None]) -> Iterator[bytes]:
    """Whole lines with their ends, of blocks that may cut one."""
    held = b""
    for block in blocks:
        read(len(block.data))
        *whole, held = (held + block.data).split(b"\n") if block.data else (held,)
        for line in whole:
            yield line + b"\n"
    if held:
        yield held


def hidden(line: bytes) -> bytes:
    """The line with its secrets masked; itself, with its colours and all, where it has none."""
    parts = [part.decode("utf-8", "surrogateescape") for part in line.split(b"\r")]
    shown = list(map(mask, parts))
    if not any(MASK in part for part in shown):
        return line
    return "\r".join(shown).encode("utf-8", "surrogateescape")


def _block(lines: list[bytes]) -> bytes:
    """A private key, its lines kept in number; what surrounds it masked line by line."""
    text = b"".join(lines).decode("utf-8", "surrogateescape")
    return mask(text).encode("utf-8", "surrogateescape")


# --- records ------------------------------------------------------------------------------------


def masked_record(name: str, data: bytes) -> bytes:
    """
    A record without secrets that parses to what it parsed to, secrets masked.

    Raises FormatError where it is no record, or where masking would change what it says.
    """
    form = record_format_of(name, data)
    if form is None:
        raise FormatError("it is no scheduler record that is known")
    shown = _rewritten(data, mask, mask_value)
    bare = _rewritten(data, unescaped, lambda _, text: unescaped(text))
    before = masked(parsed(form, bare, name))
    again = form.recognise(name, shown[:65_536])
    if not again or not _alike(before, masked(parsed(form, shown, name))):
        raise FormatError("it could not be masked without changing what it says")
    return shown


def _rewritten(data: bytes, text: Text, value: Value) -> bytes:
    if data.lstrip()[:1] in (b"{", b"["):
        try:
            return orjson.dumps(_json(orjson.loads(data), text, value))
        except (orjson.JSONDecodeError, TypeError):
            pass
    table = data.decode("utf-8", "surrogateescape")
    return _table(table, text).encode("utf-8", "surrogateescape")


def masked_json(value: Any) -> Any:
    """The same structure, every text masked by the name it stands under."""
    return _json(value, mask, mask_value)


def _json(held: Any, text: Text, value: Value, name: str = "") -> Any:
    if isinstance(held, str):
        return value(name, held)
    if isinstance(held, dict):
        return {
            text(key) if isinstance(key, str) else key: _json(item, text, value, str(key))
            for key, item in held.items()
        }
    if isinstance(held, list | tuple):
        return [_json(item, text, value, name) for item in held]
    return held


def _table(table: str, text: Text) -> str:
    """Line by line; in rows of columns cell by cell, so that no mask swallows a delimiter."""
    heading = _HEADING.match(table.lstrip("\ufeff"))
    delimiter = heading[1] if heading else None
    out = []
    for line in table.split("\n"):
        if delimiter is None:
            out.append(text(line))
        else:
            out.append(delimiter.join(map(text, line.split(delimiter))))
    return "\n".join(out)


def _alike(one: Records, other: Records) -> bool:
    return (one.jobs, one.node_events, one.addresses) == (
        other.jobs, other.node_events, other.addresses)  # fmt: skip


def masked_dump_of(data: bytes, source: str) -> bytes:
    """A flight-recorder dump as JSON, its texts masked. Raises FormatError."""
    return masked_dump(data, source, masked_json)
