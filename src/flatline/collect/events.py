"""What one log file holds, before files are put together into a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from flatline.facts import Marker, Track
from flatline.model import Crash, Gap, LogCite, Match, ProcessExit


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
    last_seen: datetime | None = None
    zone_assumed: bool = False
