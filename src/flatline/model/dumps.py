"""What a collective flight recorder holds: one process's view of every collective it entered."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """
    How far one process came in one process group.

    `name` is the group's name, the same on every rank; it is empty where the dump does not say
    which group it is.  `pg_id` is the number this process gave it, which no other rank shares.
    `ranks` are global and empty where the dump names none.  The counters are sequence numbers of
    collectives; None is "not said".  A group that also carries point-to-point operations counts
    these among its collectives, so that its counters cannot be compared between ranks.
    """

    name: str
    desc: str
    ranks: tuple[int, ...]
    pg_id: int | None
    last_enqueued: int | None
    last_started: int | None
    last_completed: int | None

    def __str__(self) -> str:
        return f"{self.name}({self.desc})"


@dataclass(frozen=True, slots=True)
class Entry:
    """
    One operation that a process put in the queue of a group.

    `seq` counts the collectives of the group, or its point-to-point operations where `is_p2p`.
    `sizes` and `dtypes` are those of the inputs.  `pending` holds where the operation did not
    complete: neither does its `state` say so nor was it retired from the list of those awaited,
    or it was retired because it timed out.
    """

    group: str
    seq: int
    op: str
    sizes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    state: str
    retired: bool
    is_p2p: bool
    record_id: int
    at: datetime | None
    pending: bool
    backend: str = ""

    @property
    def profiling_name(self) -> str:
        """The operation as the dump spells it."""
        return f"{self.backend}:{self.op}" if self.backend else self.op


@dataclass(frozen=True, slots=True)
class Dump:
    """
    One file of a flight recorder. `rank` is read from the file's name: the content has none.

    `entries` holds what is pending and the last few of every group, oldest first; `recorded`
    and `pending` count all that the file holds.
    """

    source: str
    rank: int | None
    version: str
    groups: tuple[GroupStatus, ...]
    entries: tuple[Entry, ...]
    recorded: int
    pending: int
