"""
Lines that differ in their digits alone.

A pattern that asks for digits and for none in particular matches all lines of one layout, in the
same places, or none: what it says of one need not be asked of the others, of which a log has
thousands.
"""

from __future__ import annotations

from collections.abc import Sequence

ALIKE = bytes.maketrans(b"123456789", b"000000000")
OTHER = bytes.maketrans(b"0123456789", b"1234567890")
"""Every digit becomes another one."""


def layout(text: str) -> bytes:
    """The same of all lines that differ in their digits alone, digit for digit."""
    return text.encode("utf-8", "surrogatepass").translate(ALIKE)


def layouts(lines: Sequence[str]) -> list[bytes]:
    """The same of many lines, at once."""
    found = layout("\n".join(lines)).split(b"\n")
    return found if len(found) == len(lines) else list(map(layout, lines))
