"""C1 where the first collective of all was waited for in vain; C2 where it was not the first."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

STALLED = (
    "[1,0]<stderr>:[2024-05-06 07:08:{}.112233: W horovod/common/operations.cc:588] One or more"
    " tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are"
    " waiting for remainder of ranks for more than 60 seconds."
)
OLDER = "[1,0]<stderr>:Stalled ops:HorovodBroadcast_{}_0 [missing ranks: {}]"
NEWER = "[1,0]<stderr>:Missing ranks:\n[1,0]<stderr>:2: [{}]"


def verdict(folder: Path, *lines: str, **others: str) -> Verdict:
    (folder / "job.log").write_text("\n".join(lines) + "\n")
    for name, text in others.items():
        (folder / f"{name}.log").write_text(text + "\n")
    return diagnose(collect(Request((str(folder),))))


def expired(rank: int, seq: int = 1, group: str = "", at: str = "") -> str:
    return (
        f"{at}[rank{rank}]:[E ProcessGroupNCCL.cpp:607] [{group}Rank {rank}] Watchdog caught"
        f" collective operation timeout: WorkNCCL(SeqNum={seq}, OpType=ALLREDUCE, NumelIn=1,"
        " NumelOut=1, Timeout(ms)=600000) ran for 600321 milliseconds before timing out."
    )


@pytest.mark.parametrize(
    "report",
    [
        OLDER.format("embed_kernel", 2),
        NEWER.format("broadcast.layer1.weight, broadcast.layer1.bias ..."),
        NEWER.format("group/HorovodBroadcast_embed_kernel_0"),
    ],
)
def test_a_rank_that_does_not_come_to_the_first_broadcast(tmp_path: Path, report: str) -> None:
    """Horovod's ranks exchange their variables before anything else."""
    found = verdict(tmp_path, STALLED.format(10), report)
    assert (found.code, [place.rank for place in found.culprits]) == ("C1", [2])
    assert found.confidence < 0.8


@pytest.mark.parametrize(
    "lines",
    [
        (STALLED.format(10), NEWER.format("allreduce.layer1.weight")),
        (STALLED.format(10), NEWER.format("broadcast.layer1.weight, allreduce.loss")),
        (STALLED.format(10), NEWER.format("a/DistributedSGD_Allreduce/HorovodAllreduce_x_0")),
        ("epoch 3 batch 40 of 90", STALLED.format(10), OLDER.format("embed_kernel", 2)),
        ("step 10 loss 2.5", "step 20 loss 2.1", STALLED.format(10), OLDER.format("state", 2)),
        # Each waits for what the other submitted: all are there.
        (STALLED.format(10), OLDER.format("a", 0), OLDER.format("b", 1)),
    ],
)
def test_what_horovod_does_once_the_ranks_met(tmp_path: Path, lines: tuple[str, ...]) -> None:
    """Gradients are reduced once the variables were broadcast."""
    assert verdict(tmp_path, *lines).code == "C2"


def test_the_first_collective_of_the_group(tmp_path: Path) -> None:
    """No rank is named where none is known to be missing."""
    found = verdict(tmp_path, expired(2), expired(3))
    assert (found.code, found.culprits) == ("C1", ())
    assert found.confidence < 0.8


def test_the_one_that_did_not_report_the_first(tmp_path: Path) -> None:
    """All others waited."""
    found = verdict(tmp_path, *(expired(rank) for rank in (0, 1, 3, 4)))
    assert (found.code, [place.rank for place in found.culprits]) == ("C1", [2])


def test_of_the_group_of_all_ranks(tmp_path: Path) -> None:
    """By its name."""
    told = "[PG ID 0 PG GUID 0(default_pg) Rank 1] Timeout at NCCL work: 1, last enqueued NCCL"
    lines = [expired(rank, group="PG ID 0 PG GUID 0(default_pg) ") for rank in (0, 1)]
    said = f"[rank1]:[E ProcessGroupNCCL.cpp:1785] {told} work: 1, last completed NCCL work: -1."
    assert verdict(tmp_path, *lines, said).code == "C1"


@pytest.mark.parametrize(
    "lines",
    [
        [expired(0, 2), expired(1, 2)],
        [expired(0), expired(1, 12)],
        [expired(0, group="PG ID 3 PG GUID 17(tensor) ")],
        ["train: iteration 400 of 9000, lr 1e-4", expired(0), expired(1)],
        [expired(0), "[rank1]:[E ProcessGroupNCCL.cpp:1785] [PG 0 Rank 1] Timeout at NCCL work: 1,"
         " last enqueued NCCL work: 9, last completed NCCL work: 8."],
        ["Tokenizing (num_proc=8):  31%|###       | 3100/10000 [29:11<58:22]", expired(1)],
    ],
    ids=["second", "another rank's twelfth", "of a part of the ranks", "steps of no known form",
         "others were completed", "data is prepared meanwhile"],
)  # fmt: skip
def test_collectives_that_are_not_the_first_of_cold_ranks(
    tmp_path: Path, lines: list[str]
) -> None:
    found = verdict(tmp_path, *lines)
    assert found.code == "C2"


def test_the_missing_rank_writes_meanwhile(tmp_path: Path) -> None:
    """It came, and has something else to do."""
    lines = [expired(rank, at="2024-05-06 07:30:00,000 ") for rank in (0, 1, 3, 4)]
    said = "[rank2]: 2024-05-06 07:{}:40,000 INFO shard 17 is being written"
    assert verdict(tmp_path, *lines, rank2=said.format(26)).code == "C2"
    assert verdict(tmp_path, *lines, rank2=said.format(12)).code == "C1"


def test_a_bar_that_came_to_its_end(tmp_path: Path) -> None:
    """Nothing was prepared any more."""
    bar = (
        "Loading shards:  33%|###   | 1/3 [00:09<00:18]\rLoading shards: 100%|######| 3/3 [00:29]"
    )
    assert verdict(tmp_path, bar, expired(0), expired(1)).code == "C1"


def test_a_rank_that_died_is_the_cause(tmp_path: Path) -> None:
    """The others wait for it."""
    trace = ("[rank1]: Traceback (most recent call last):\n"
             '[rank1]:   File "train.py", line 9, in <module>\n[rank1]:     main()\n'
             "[rank1]: KeyError: 'train_split'")  # fmt: skip
    assert verdict(tmp_path, trace, expired(0), expired(2), expired(3)).code == "A1"
