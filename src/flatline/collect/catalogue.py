"""Everything that is looked for in a line, compiled into one scanner."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from functools import cache

from flatline import signatures
from flatline.errors import CatalogueError
from flatline.logs.database import default_cache, keep, kept
from flatline.logs.scan import Scanner
from flatline.model import Signature
from flatline.parsers import LineFormat, line_formats

PLACEMENT = "placement"
TRACEBACK = r"(?:Traceback \(most recent call last\)|Exception has occurred: [A-Za-z_])"
BARE = r"(?:(?:[A-Za-z]Error|Exception|RayTaskError\([\w.]{1,80}\)): |[a-z]Error\s*$)"
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
    aside: frozenset[int] = frozenset()
    """Signatures of lines that every rank prints once as it starts: they date no other line."""


@cache
def confirming(pattern: str) -> re.Pattern[str]:
    """The pattern that decides a hit and gives its groups, compiled when it is first hit."""
    return re.compile(pattern, re.ASCII)


@cache
def catalogue() -> Catalogue:
    known = _signatures()
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
        aside=frozenset(n for n, one in enumerate(known) if one.origin == PLACEMENT),
    )


def _signatures() -> tuple[Signature, ...]:
    """All of them, as `signatures.load` gives them.  Their tables are kept as JSON beside the
    scanner's database, to be read in 14 ms instead of 72."""
    texts = signatures.texts()
    digest = hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:32]
    folder, name = default_cache(), f"signatures-{digest}.json"
    payload = kept(folder, name) if folder is not None else None
    if payload is not None:
        try:
            return signatures.made(json.loads(payload))
        except (ValueError, TypeError, LookupError, AttributeError, CatalogueError):
            pass  # written by something else after all
    tables = {origin: signatures.tables(text, origin) for origin, text in texts.items()}
    if folder is not None:
        keep(folder, name, json.dumps(tables).encode())
    return signatures.made(tables)
