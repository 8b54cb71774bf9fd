"""Which of two agents' processes ended first, where each agent tells of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

ABORTED, KILLED = (6, "SIGABRT"), (9, "SIGKILL")


def agent(stamp: str, host: str, rank: int, pid: int, ended: tuple[int, str]) -> str:
    """torchrun's lines: dated where it saw the process end, the summary far below and undated."""
    signal, name = ended
    closing = "".join(
        f"W0309 {stamp} {pid - 1} torch/distributed/elastic/multiprocessing/api.py:897] Sending"
        f" process {pid + n} closing signal SIGTERM\n"
        for n in range(1, 4)
    )
    frames = "".join(f'  File "/env/lib/launch{n}.py", line {n}, in run\n' for n in range(1, 20))
    return (
        f"{closing}E0309 {stamp} {pid - 1} torch/distributed/elastic/multiprocessing/api.py:869]"
        f" failed (exitcode: -{signal}) local_rank: {rank % 4} (pid: {pid}) of binary: /env/py\n"
        f"Traceback (most recent call last):\n{frames}"
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
        "fit.py FAILED\nFailures:\n  <NO_OTHER_FAILURES>\nRoot Cause (first observed failure):\n"
        f"[0]:\n  time      : 2026-03-09_04:00:00\n  host      : {host}\n"
        f"  rank      : {rank} (local_rank: {rank % 4})\n  exitcode  : -{signal} (pid: {pid})\n"
        f"  error_file: <N/A>\n  traceback : Signal {signal} ({name}) received by PID {pid}\n"
    )


def judged(folder: Path, aborts: str, kills: str, oom: str = "", stepped: bool = True) -> Verdict:
    steps = "".join(
        f"2026-03-09 04:1{n // 60}:{n % 60:02d} step {n}/900 loss {3 * 0.99**n:.4f}\n"
        for n in range(1, 200)
    )
    (folder / "n1.log").write_text(
        (steps if stepped else "") + agent(aborts, "n1", 1, 4101, ABORTED)
    )
    (folder / "n2.log").write_text("starting\n" + agent(kills, "n2", 6, 7302, KILLED))
    if oom:
        (folder / "kern.log").write_text(
            f"2026-03-09T04:13:29+0000 {oom} kernel: Out of memory: Killed process 88 (python3)"
            " total-vm:912kB, anon-rss:812kB, file-rss:1kB, shmem-rss:1kB, UID:0\n"
        )
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize(
    ("aborts", "kills", "rank"),
    [
        ("04:13:41.100000", "04:13:29.200000", 6),
        ("04:13:29.200000", "04:13:41.100000", 1),
    ],
    ids=["killed before", "aborted before"],
)
def test_the_agents_own_times_put_them_in_order(
    tmp_path: Path, aborts: str, kills: str, rank: int
) -> None:
    """The summaries bear none of their own, and the files are read in another order."""
    verdict = judged(tmp_path, aborts, kills)

    assert verdict.code == "A2"
    assert {place.rank for place in verdict.culprits} == {rank}


@pytest.mark.parametrize(("oom", "rank"), [("n2", 6), ("n3", 1), ("", 1)])
def test_the_host_whose_kernel_told_of_a_kill(tmp_path: Path, oom: str, rank: int) -> None:
    """In the same second the clocks of two hosts tell no order: the kernel's word does."""
    verdict = judged(tmp_path, "04:13:29.200000", "04:13:29.700000", oom)

    assert {place.rank for place in verdict.culprits} == {rank}
