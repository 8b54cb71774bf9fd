"""Which of the jobs that squeue lists is the run's, where its hosts' metrics lie a file each."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect

QUEUE = (
    "# 2026-02-03 11:31:00 UTC\n"
    "JOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON)\n"
    "503 b200 lm mira R 01:30:39 3 gx-[01-03]\n"
    "504 b200 vl mira R 41:10 {}\n"
    "505 b200 sweep mira PD 0:00 4 (Resources)\n"
)


def job(folder: Path, hosts: tuple[str, ...], other: str) -> str | None:
    (folder / "queue.txt").write_text(QUEUE.format(other))
    steps = "".join(f"step {n}/900 loss {3 - n / 90:.4f}\n" for n in range(1, 60))
    (folder / "train.log").write_text(steps)
    for host in hosts:
        lines = (f'DCGM_FI_DEV_POWER_USAGE{{Hostname="{host}",gpu="0"}} 500 {at}000\n'
                 for at in range(1_770_117_000, 1_770_118_200, 30))  # fmt: skip
        (folder / f"{host}.prom").write_text("".join(lines))
    found = collect(Request((str(folder),))).job
    return None if found is None else found.id


WHOLE = ("gx-01", "gx-02", "gx-03")


def test_the_one_that_holds_these_hosts(tmp_path: Path) -> None:
    assert job(tmp_path, WHOLE, "2 gx-[11-12]") == "503"


@pytest.mark.parametrize(
    ("hosts", "other"),
    [(WHOLE[:2], "2 gx-[11-12]"), ((*WHOLE, "gx-11"), "2 gx-[11-12]"), (WHOLE, "2 gx-[03-04]")],
    ids=["not all of them", "another's as well", "a node is shared"],
)  # fmt: skip
def test_hosts_that_tell_no_job(tmp_path: Path, hosts: tuple[str, ...], other: str) -> None:
    assert job(tmp_path, hosts, other) is None
