"""The hosts of a run as its log prints them."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect

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
