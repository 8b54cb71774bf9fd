"""
A folder that Prometheus writes its samples into, read in place.

Prometheus's own, an agent's, a snapshot, or blocks as Thanos and Mimir keep them; live, left
behind by a server that was killed, cut off, or in the middle of a compaction.  Nothing is written,
locked or started.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flatline.series.engine import Engine

_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
_LOG = re.compile(r"\d{8}|checkpoint\.\d{8}")


def recognise(folder: Path, folders: list[str]) -> bool:
    """
    Whether a folder, with these folders inside, is a database, blocks of one, or one block.

    Told by the names the format prescribes; only names are looked at.
    """
    if "chunks_head" in folders:
        return True
    if _ULID.fullmatch(folder.name) and "chunks" in folders:
        return True
    if any(_ULID.fullmatch(name) and (folder / name / "index").is_file() for name in folders):
        return True
    return "wal" in folders and _is_log(folder / "wal")


def _is_log(folder: Path) -> bool:
    from flatline.series.tsdb.files import listed

    try:
        names = listed(folder)
    except OSError:
        return False
    return bool(names) and all(_LOG.fullmatch(name) for name in names)


def database(folder: Path, source: str) -> Engine:
    """The folder behind the embedded evaluator. Raises OSError where it cannot be looked at."""
    from flatline.series.engine import Embedded
    from flatline.series.masked import masked
    from flatline.series.tsdb.database import Database

    return Embedded(masked(Database(folder, source)), source)
