"""Citations of flight-recorder dumps, in the pointers that `resolve_dump` follows."""

from __future__ import annotations

import json
from typing import Literal

from flatline.judging.recorder_views import View
from flatline.model.dumps import Dump, Entry
from flatline.model.evidence import DumpCite, Place, Scalar

Key = Literal["profiling_name", "input_sizes", "input_dtypes", "collective_seq_id"]


def counter(view: View, field: Literal["last_enqueued", "last_completed"]) -> DumpCite:
    """A counter of the group, or where the dump has none the entry it would come from."""
    status = view.status
    value = status.last_enqueued if field == "last_enqueued" else status.last_completed
    if value is None and view.collectives:
        left = [e for e in view.collectives if field == "last_enqueued" or not e.pending]
        return entered(view, (left or view.collectives)[-1], "collective_seq_id")
    verb = "entered" if field == "last_enqueued" else "completed"
    return DumpCite(
        source=view.dump.source,
        pointer=f"group {status}, {field}",
        value=value,
        text=f"rank {view.rank} {verb} collective {value} of group {status} last",
        place=Place(rank=view.rank),
    )


def nothing_pending(rank: int, dump: Dump) -> DumpCite:
    return DumpCite(
        source=dump.source,
        pointer="entries, pending",
        value=dump.pending,
        text=f"rank {rank} has no operation pending",
        place=Place(rank=rank),
    )


def entered(view: View, entry: Entry, key: Key) -> DumpCite:
    verb = "waits in" if entry.pending else "completed"
    what = "" if entry.is_p2p else f", collective {entry.seq}"
    return DumpCite(
        source=view.dump.source,
        pointer=f"entry {entry.record_id}, {key}",
        value=values(entry)[key],
        text=f"rank {view.rank} {verb} {entry.op}{what} of group {view.status}",
        place=Place(rank=view.rank),
        at=entry.at,
    )


def values(entry: Entry) -> dict[Key, Scalar]:
    """Fields of an entry as `resolve_dump` reads them again."""
    return {
        "profiling_name": entry.profiling_name,
        "input_sizes": json.dumps(entry.sizes),
        "input_dtypes": json.dumps(entry.dtypes),
        "collective_seq_id": entry.seq,
    }
