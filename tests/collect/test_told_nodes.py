"""The hosts of a run as its log prints them."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.collect.told_nodes import told_nodes

STEPS = "".join(f"step {n}/90 loss {3 - n / 50}\n" for n in range(40))


def hosts(folder: Path, head: str) -> tuple[str, ...]:
    (folder / "train.log").write_text(head + "\n" + STEPS)
    return collect(Request((str(folder),))).hosts


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("SLURM_JOB_ID=9 SLURM_JOB_NODELIST=n[01-03] SLURM_NNODES=3", ("n01", "n02", "n03")),
        ("0: JOB_NODELIST=mi300-[07-08]\n1: JOB_NODELIST=mi300-[07-08]", ("mi300-07", "mi300-08")),
        ('declare -x SLURM_NODELIST="a,b"', ("a", "b")),
        ("SLURM_JOB_NODELIST=n[01-03]\nSLURM_JOB_NODELIST=n[07-09]", ()),
        (
            "SLURM_JOB_NODELIST=n01\nSLURM_JOB_NODELIST_HET_GROUP_0=n01\n"
            "SLURM_JOB_NODELIST_HET_GROUP_1=n[02-04]",
            (),
        ),
        ("SLURM_JOB_NODELIST=n[01-", ()),
        ("SLURM_STEP_NODELIST=n01", ()),
        ("SLURM_JOB_NODELIST=" + ",".join(f"gpu-rack7-node{n:03d}" for n in range(30)), ()),
        ("SLURM_JOB_NODELIST=n[1-99999999]", ()),
        ("echo $SLURM_JOB_NODELIST; MY_NODELIST=n[01-03]", ()),
    ],
)
def test_one_list_is_believed(tmp_path: Path, head: str, expected: tuple[str, ...]) -> None:
    """Two lists that differ, half a list and a hostile one are not."""
    assert hosts(tmp_path, head) == expected


def test_the_record_goes_first(tmp_path: Path) -> None:
    (tmp_path / "sacct.txt").write_text(
        "JobID|JobName|State|ExitCode|NodeList\n77|train|COMPLETED|0:0|gpu[1-2]\n"
    )
    assert hosts(tmp_path, "SLURM_JOB_NODELIST=n[01-03]") == ("gpu1", "gpu2")


NCCL = "".join(f"n{n}:31{n}:32{n} [0] NCCL INFO Using network Socket\n" for n in range(4))
RANKS = "".join(
    f"n{n // 2}:3{n}:4{n} [{n % 2}] NCCL INFO comm 0x55 rank {n} nranks 8 cudaDev {n % 2} busId"
    " 1b000 - Init COMPLETE\n"
    for n in range(8)
)


@pytest.mark.parametrize(
    ("head", "found"),
    [
        ("run gpt on 4 hosts, 32 ranks\n" + NCCL, 4),
        ("run gpt on 8 hosts, 64 ranks\n" + NCCL, 0),
        ("Config: run=gpt world_size=32\n" + NCCL, 0),
        ("Config: run=gpt world_size=8\n" + RANKS, 4),
        ("Config: run=gpt world_size=16\n" + RANKS, 0),
        (NCCL, 0),
    ],
    ids=["as many", "of more", "one card of each", "all ranks", "half of them", "nothing counts"],
)
def test_hosts_that_spoke_are_all_where_they_are_counted(
    tmp_path: Path, head: str, found: int
) -> None:
    """Others may print nothing, and would be left out of what is looked at."""
    (tmp_path / "train.log").write_text(head + STEPS)
    matches = collect(Request((str(tmp_path),))).matches

    assert told_nodes(matches) == tuple(f"n{n}" for n in range(found))
