"""
Slurm's compact host lists, written out.

`gpu[01-02,04],login1` is four names: a comma outside brackets separates hosts, brackets hold
numbers and ranges, zero padding is kept, a name may have several brackets (`rack[1-2]n[01-04]`,
last one running fastest) and text after them (`n[1-2]-ib0`).  Brackets do not nest in Slurm's
grammar.  Source: slurm.conf(5), `NodeName`; `scontrol show hostnames` prints the same names.

A list is telemetry, so it may be hostile: what would name more than `LIMIT` hosts is refused
before anything is written out.
"""

from __future__ import annotations

import re

from flatline.errors import FormatError

LIMIT = 65_536  # MAX_SLURM_NODES: no Slurm cluster is larger
TEXT_LIMIT = 4_000_000
UNASSIGNED = {"", "(null)", "none", "none assigned", "n/a", "unknown"}
_PART = re.compile(r"\[([^\[\]]*)\]|([^\[\],]+)|(.)", re.DOTALL)
_RANGE = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?")


def _numbers(inner: str, text: str) -> list[str]:
    names: list[str] = []
    for piece in inner.split(","):
        found = _RANGE.fullmatch(piece.strip())
        if found is None:
            raise FormatError(f"host list {text[:80]!r}: {piece[:40]!r} is no number or range")
        low, high = found[1], found[2] or found[1]
        count = int(high) - int(low) + 1
        if count < 1 or len(names) + count > LIMIT:
            raise FormatError(f"host list {text[:80]!r}: [{piece[:40]}] names {count} hosts")
        width = len(low) if low[0] == "0" else 0
        names.extend(f"{number:0{width}d}" for number in range(int(low), int(high) + 1))
    return names


def _grown(names: list[str], suffixes: list[str], text: str) -> list[str]:
    if len(names) * len(suffixes) > LIMIT:
        raise FormatError(f"host list {text[:80]!r} names more than {LIMIT} hosts")
    return [name + suffix for name in names for suffix in suffixes]


def expand(text: str) -> tuple[str, ...]:
    """
    Every host of a Slurm host list, in its order; a host named twice stands twice.

    Empty for Slurm's ways of saying none ("None assigned", "(null)").  Raises `FormatError` for
    an open bracket, a range that is none, or more than `LIMIT` hosts.
    """
    if text.strip().lower() in UNASSIGNED:
        return ()
    if len(text) > TEXT_LIMIT:
        raise FormatError(f"a host list of {len(text)} characters is not read")
    hosts: list[str] = []
    current = [""]
    for found in _PART.finditer(text.strip()):
        inner, literal, other = found.groups()
        if inner is not None:
            current = _grown(current, _numbers(inner, text), text)
        elif literal is not None:
            current = [name + literal.strip() for name in current]
        elif other == ",":
            hosts.extend(name for name in current if name)
            current = [""]
        else:
            raise FormatError(f"host list {text[:80]!r}: {other!r} is not closed or not opened")
        if len(hosts) + len(current) > LIMIT:
            raise FormatError(f"host list {text[:80]!r} names more than {LIMIT} hosts")
    hosts.extend(name for name in current if name)
    return tuple(hosts)
