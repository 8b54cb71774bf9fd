"""What is known of a log before it is read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from flatline.logs.labels import NamePlace


@dataclass(frozen=True, slots=True)
class Setting:
    """Of one file, by its name and the records beside it."""

    name: NamePlace
    year: int | None
    single_node: bool
    attempt: int = 0
    near: datetime | None = None
    """A time near those of stamps without a year, where no year is known."""
    zone: tzinfo = UTC
    """Of stamps that state none."""
