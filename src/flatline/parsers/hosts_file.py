"""
A file of addresses and names, as /etc/hosts and `getent hosts` have it: which host an address is.

Read only where every line but comments is an address and names behind it, two lines at least; the
loopback's and multicast's lines tell of no host.  Of several names the first without a domain is
taken.

Source: hosts(5).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import ip_address

from flatline.errors import FormatError
from flatline.model import Records, Scalar
from flatline.parsers._rows import decoded

FORMAT = "hosts-file"
LEAST = 2
_LINE = re.compile(
    r"\s*([0-9a-fA-F.:]{3,45})[ \t]+([A-Za-z][\w.-]{0,252}(?:[ \t]+[\w.-]{1,253}){0,15})\s*"
)
_BEGINS = re.compile(
    rb"\s*(?:#|\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}[ \t]+[A-Za-z]|[0-9a-fA-F]{0,4}::?)"
)


def recognise(name: str, head: bytes) -> bool:
    """Whether all its whole lines are such ones."""
    if _BEGINS.match(head) is None or b"\0" in head:
        return False
    lines = list(_lines(head[: head.rfind(b"\n") + 1] or head))
    return len(lines) >= LEAST and all(line is not None for line in lines)


def parse(data: bytes, source: str) -> Records:
    """Raises `FormatError` where a line is something else."""
    lines = list(_lines(data))
    if len(lines) < LEAST or None in lines:
        raise FormatError("no file of addresses and the names of hosts")
    return Records(addresses=dict(line for line in lines if line is not None and line[1]))


def resolve(data: bytes, pointer: str) -> Scalar:
    """The name of the address that the pointer is."""
    told = dict(line for line in _lines(data) if line is not None)
    if pointer not in told:
        raise FormatError(f"{pointer!r} is no address in this file")
    return told[pointer]


def _lines(data: bytes) -> Iterator[tuple[str, str] | None]:
    """(address, host), the host empty where the address is of no one host; None for a line of
    something else."""
    for line in decoded(data).split("\n"):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        found = _LINE.fullmatch(text)
        try:
            address = ip_address(found[1]) if found else None
        except ValueError:
            address = None
        if found is None or address is None:
            yield None
            continue
        names = found[2].split()
        own = not (address.is_loopback or address.is_multicast or address.is_unspecified)
        name = next((n for n in names if "." not in n), names[0].partition(".")[0])
        yield str(address), name if own and not name.startswith("ip6-") else ""
