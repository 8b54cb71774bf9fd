"""What one log file holds, before files are put together into a run."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime, tzinfo

from flatline.facts import Marker, Track
from flatline.model import Crash, Gap, LogCite, Match, ProcessExit

_CELL = re.compile(r"\"[\w/.-]{1,80}\": ?\S")
_LEVEL = re.compile(r"\"(?:level|level_?name|severity|lvl|log_?level)\":", re.IGNORECASE)
"""What a logger writes beside its message, and no row of numbers or samples holds."""

_COUNTED = ("checkpoint_saved", "eval")
"""What a program counts among its steps."""


@dataclass(slots=True)
class LogEvents:
    """What one file holds."""

    source: str
    matches: list[Match] = field(default_factory=list)
    crashes: list[Crash] = field(default_factory=list)
    exits: list[ProcessExit] = field(default_factory=list)
    tracks: dict[tuple[str, str], Track] = field(default_factory=dict)
    markers: list[Marker] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    lines: int = 0
    size: int = 0
    last_line: LogCite | None = None
    first_seen: datetime | None = None
    """When the first dated line of its beginning was printed."""
    last_seen: datetime | None = None
    kept: tuple[int, int] | None = None
    """The first and last of its lines that are this run's, where another's stand in it as well."""
    zone_assumed: bool = False
    stated: tzinfo | None = None
    """The zone that its stamps state, where they state one and the same."""
    named: frozenset[float] = frozenset()
    """Hours ahead of UTC that the name of a zone in it may mean."""
    yearless: bool = False
    """Whether stamps stand in it that no year is known for."""
    dayless: bool = False
    """Whether some of them are times alone."""

    def keep_steps(self) -> None:
        """Leaves the progress alone that rows of data tell of: what their texts quote, nobody
        said. A row that a logger wrote, and a line that is no row, stay, and what is read of a
        row's own fields."""
        self.matches = [one for one in self.matches
                        if one.signature.id == OWN_FIELDS or _said(one.cite)]  # fmt: skip
        self.crashes = [one for one in self.crashes if _said(one.head) and _said(one.cite)]
        self.exits = [one for one in self.exits if _said(one.cite)]
        self.markers = [one for one in self.markers if one.kind in _COUNTED or _said(one.cite)]


OWN_FIELDS = "placement-rank-json"
"""A rank and its host as fields of a row, whatever else it holds."""


def _said(cite: LogCite) -> bool:
    return _CELL.search(cite.text) is None or _LEVEL.search(cite.text) is not None
