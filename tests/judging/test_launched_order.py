"""The rank that the kernel killed, by the list of DeepSpeed's launcher."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

STEPS = "".join(f"[Rank 0] step={n}, skipped=0, lr=[1e-05], loss={3 - n / 50:.4f}\n"
                for n in range(1, 40))  # fmt: skip
PIDS = (5120, 5121, 5122, 5127)
SACCT = (
    "JobID|JobName|State|ExitCode|Start|End|NNodes|NodeList\n"
    "61|sft|OUT_OF_MEMORY|0:125|2026-03-04T08:00:00|2026-03-04T08:40:00|1|q5\n"
)
KERNEL = (
    "[Wed Mar  4 08:39:50 2026] Memory cgroup out of memory: Killed process {0} (python)"
    " total-vm:51200kB, anon-rss:23811kB, file-rss:81kB, shmem-rss:1kB, UID:30 pgtables:50kB"
    " oom_score_adj:0\n"
)


def listed(pids: tuple[int, ...], last: int) -> str:
    head = "[2026-03-04 08:39:5{}] [{}] [launch.py:31{}:sigkill_handler] "
    lines = [
        f"{head.format(n % 9, 'INFO', 5)}Killing subprocess {p}\n" for n, p in enumerate(pids)
    ]
    return "".join(lines) + (
        f"{head.format(9, 'ERROR', 9)}['python', '-u', 't.py', '--local_rank={last}', '--k', '2']"
        " exits with return code = -9\nsrun: error: q5: task 0: Out Of Memory\n"
    )


def nccl(pids: tuple[int, ...]) -> str:
    return "".join(
        f"q5:{pid}:{pid + 90} [{n}] NCCL INFO ncclCommInitRank comm 0x5{n} rank {n} nranks"
        f" {len(pids)} cudaDev {n} nvmlDev {n} busId {n}9000 commId 0x77 - Init COMPLETE\n"
        for n, pid in enumerate(pids)
    )


def ranks(folder: Path, log: str, kernel: str, record: str = SACCT) -> list[int | None]:
    (folder / "slurm-61.out").write_text(STEPS + log)
    (folder / "sacct.psv").write_text(record)
    (folder / "dmesg-q5.txt").write_text(kernel)
    verdict = diagnose(collect(Request((str(folder),))))

    assert (verdict.code, verdict.fault_class) == ("A2", "cgroup-oom")
    return [place.rank for place in verdict.culprits]


@pytest.mark.parametrize("at", [1, 3])
@pytest.mark.parametrize("told", ["", nccl(PIDS)], ids=["alone", "as NCCL numbers them"])
def test_the_rank_is_its_place_in_the_list(tmp_path: Path, at: int, told: str) -> None:
    """The command printed is the last one's, whichever was killed."""
    assert ranks(tmp_path, told + listed(PIDS, 3), KERNEL.format(PIDS[at])) == [at]


@pytest.mark.parametrize(
    ("log", "kernel"),
    [
        (listed(PIDS[1:], 3), KERNEL.format(PIDS[1])),
        (listed(PIDS, 3), KERNEL.format(5180)),
        (listed(PIDS, 3), KERNEL.format(PIDS[1]) + KERNEL.format(PIDS[2])),
        (nccl(PIDS[::-1]) + listed(PIDS, 3), KERNEL.format(PIDS[1])),
        (listed(PIDS, 3) + listed(PIDS, 3), KERNEL.format(PIDS[1])),
    ],
    ids=["not all are listed", "a child of one", "two", "NCCL numbers them otherwise",
         "two launchers"],
)  # fmt: skip
def test_near_misses_name_no_rank(tmp_path: Path, log: str, kernel: str) -> None:
    """srun's task is the launcher's."""
    assert ranks(tmp_path, log, kernel) == [None]


def test_the_ranks_of_several_hosts_are_not_counted_by_one_list(tmp_path: Path) -> None:
    """A launcher numbers those of its own host from 0."""
    record = SACCT.replace("|1|q5", "|2|q[4-5]")

    assert ranks(tmp_path, listed(PIDS, 3), KERNEL.format(PIDS[1]), record) == [None]
