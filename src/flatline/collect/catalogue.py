"""Everything that is looked for in a line, compiled into one scanner."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache

from flatline import signatures
from flatline.logs.scan import Scanner
from flatline.model import Signature
from flatline.parsers import LineFormat, line_formats

TRACEBACK = r"Traceback \(most recent call last\)"
BARE = r"[A-Za-z](?:Error|Exception): "
"""An exception line; it counts by itself only at the start of a line, without a traceback."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Patterns of the scanner by number: signatures first, then the line formats' triggers, then
    the head of a traceback."""

    scanner: Scanner
    signatures: tuple[Signature, ...]
    formats: dict[int, LineFormat]
    traceback_id: int
    bare_id: int
    digest: str


@cache
def confirming(pattern: str) -> re.Pattern[str]:
    """The pattern that decides a hit and gives its groups, compiled when it is first hit."""
    return re.compile(pattern, re.ASCII)


@cache
def catalogue() -> Catalogue:
    known = signatures.load()
    patterns = [signature.pattern for signature in known]
    formats: dict[int, LineFormat] = {}
    for line_format in line_formats():
        for trigger in line_format.TRIGGERS:
            formats[len(patterns)] = line_format
            patterns.append(trigger)
    patterns += [TRACEBACK, BARE]
    return Catalogue(
        scanner=Scanner(patterns, None),
        signatures=known,
        formats=formats,
        traceback_id=len(patterns) - 2,
        bare_id=len(patterns) - 1,
        digest=hashlib.sha256("\0".join(patterns).encode()).hexdigest()[:16],
    )
