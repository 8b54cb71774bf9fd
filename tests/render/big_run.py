"""A run of 16,384 ranks as `collect` would hand it over: one stopped, its peers waited."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

from flatline.facts import DUMPS, LOG, Facts, FileRead, Track
from flatline.model import Attempt, LogCite, Place, ProcessExit, Progress, Verdict
from flatline.model.dumps import Dump, Entry, GroupStatus
from render import verdicts

RANKS, GPUS, STEPS, CULPRIT = 16_384, 8, 60_000, 9_001
START = datetime(2026, 3, 1, 1, 0, tzinfo=UTC)
END = START + timedelta(hours=3)


def place(rank: int) -> Place:
    return Place(host=f"node{rank // GPUS + 1:04d}", gpu=str(rank % GPUS), rank=rank)


def dump(rank: int) -> Dump:
    """Entered the 88,123rd all-reduce and waits there; the culprit completed the one before."""
    late = rank == CULPRIT
    pending = Entry("default_pg", 88_123, "all_reduce", (), (), "started", False, False, 1, None,
                    True, "nccl")  # fmt: skip
    group = GroupStatus("default_pg", "default", (), 0, 88_123 - late, 88_123 - late, 88_122)
    entries = () if late else (pending,)
    return Dump(f"fr/rank_{rank}", rank, "2.4", (group,), entries, len(entries), len(entries))


def track() -> Track:
    made = Track("node0001.out", place(0), "Megatron-LM", "megatron")
    for step in range(1, STEPS + 1):
        loss = math.nan if step == 31_234 else 2.0 + 9.0 / step**0.3 + (4.0 if step == 777 else 0)
        at = START + timedelta(seconds=step / 6)
        made.add(Progress("train", step=step, loss=loss, step_s=0.166), step, at, 0)
    return made


def facts() -> Facts:
    hosts = RANKS // GPUS
    logs = [
        FileRead(
            f"node{n + 1:04d}.out", LOG, 900, 90_000, Place(f"node{n + 1:04d}", rank=n * GPUS)
        )
        for n in range(hosts)
    ]
    exits = [
        ProcessExit(
            "torchelastic",
            LogCite("node0001.out", 70_000 + rank, f"rank {rank} ended"),
            place(rank),
            None if rank == CULPRIT else 1,
            9 if rank == CULPRIT else None,
            at=END - timedelta(seconds=rank % 60),
        )
        for rank in range(RANKS)
    ]
    return Facts(
        targets=["run"],
        files=[*logs, FileRead("fr/rank_0", DUMPS, 0, 1)],
        tracks=[track()],
        exits=exits,
        dumps=[dump(rank) for rank in range(RANKS)],
        attempts=[Attempt(0, "failed")],
        now=END,
        read_lines=lambda source, first, count: tuple(
            f"line {n} of {source}" for n in range(first, first + count)
        ),
    )


def verdict() -> Verdict:
    return verdicts.huge()
