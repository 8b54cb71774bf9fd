"""Flight-recorder dumps made by hand, as the processes of a run would have written them."""

from __future__ import annotations

import pickle
from typing import Any

from flatline.model.dumps import Dump
from flatline.parsers.flight_recorder import parse_dump

WORLD = {"0": ("default_pg", (0, 1, 2, 3))}


def entry(seq: int, op: str = "nccl:all_reduce", **said: Any) -> dict[str, Any]:
    """One pending collective of group 0; `said` replaces what it says."""
    return {
        "record_id": seq + 100, "pg_id": 0, "process_group": ("0", "default_pg"),
        "collective_seq_id": seq, "p2p_seq_id": 0, "op_id": seq, "profiling_name": op,
        "time_created_ns": 1_760_000_000_000_000_000 + seq, "input_sizes": [[1000]],
        "input_dtypes": ["Float"], "output_sizes": [[1000]], "output_dtypes": ["Float"],
        "state": "scheduled", "retired": False, "timeout_ms": 600_000, "is_p2p": False, **said,
    }  # fmt: skip


def left(seq: int, op: str = "nccl:all_reduce", **said: Any) -> dict[str, Any]:
    """One completed collective of group 0."""
    return entry(seq, op, state="completed", retired=True, **said)


def counters(enqueued: int, completed: int) -> dict[str, int]:
    return {
        "last_enqueued_collective": enqueued,
        "last_started_collective": -1,
        "last_completed_collective": completed,
    }


def raw(
    *entries: dict[str, Any],
    status: dict[str, dict[str, int]] | None = None,
    config: dict[str, tuple[str, tuple[int, ...]]] | None = None,
) -> dict[str, Any]:
    """A dump as the process holds it, before it is written."""
    groups = WORLD if config is None else config
    return {
        "version": "2.10",
        "comm_lib_version": "2.27.3",
        "pg_config": {
            name: {"name": name, "desc": desc, "ranks": str(list(ranks))}
            for name, (desc, ranks) in groups.items()
        },
        "pg_status": {} if status is None else status,
        "entries": list(entries),
    }


def written(rank: int, held: dict[str, Any]) -> Dump:
    """The dump of a rank, read back from the pickle it would have written."""
    return parse_dump(pickle.dumps(held, protocol=2), f"dumps/_dump_{rank}")


def waits(rank: int, seq: int, op: str = "nccl:all_reduce", **said: Any) -> Dump:
    """A rank that entered collective `seq` of the world and did not leave it."""
    held = raw(left(seq - 1), entry(seq, op, **said), status={"0": counters(seq, seq - 1)})
    return written(rank, held)


def rests(rank: int, seq: int) -> Dump:
    """A rank that left collective `seq` of the world and entered nothing since."""
    return written(rank, raw(left(seq - 1), left(seq), status={"0": counters(seq, seq)}))
