"""Failures that name no rank, and the one rank that raised what they lead to."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

STEPS = "".join(f"step {n}/900 loss {4 - n / 300:.4f}\n" for n in range(1, 300, 10))
ASSERTS = "".join(
    "../aten/src/ATen/native/cuda/Indexing.cu:1290: indexSelectLargeIndex: block: [204,0,0],"
    f" thread: [{n},0,0] Assertion `srcIndex < srcSelectDimSize` failed.\n"
    for n in range(4)
)
RAISED = (
    "[rank{0}]: Traceback (most recent call last):\n"
    '[rank{0}]:   File "/proj/fit.py", line 188, in <module>\n'
    "[rank{0}]:     main()\n"
    "[rank{0}]: RuntimeError: CUDA error: device-side assert triggered\n"
)
TERMINATED = "terminate called after throwing an instance of 'c10::Error'\n" + (
    "  what():  CUDA error: device-side assert triggered\n"
)
ENDED = "srun: error: n5: task {0}: Exited with exit code 1\n"


def judged(folder: Path, *parts: str) -> Verdict:
    (folder / "slurm-9.out").write_text(STEPS + ASSERTS + "".join(parts))
    return diagnose(collect(Request((str(folder),))))


def test_the_kernels_assertion_is_that_of_the_one_that_raised_it(tmp_path: Path) -> None:
    """Kernels print without a rank."""
    verdict = judged(tmp_path, RAISED.format(13), ENDED.format(13))

    assert (verdict.code, verdict.fault_class) == ("A3", "cuda")
    assert [(place.host, place.rank) for place in verdict.culprits] == [("n5", 13)]


def test_what_its_process_says_as_it_ends(tmp_path: Path) -> None:
    """Without a label."""
    verdict = judged(tmp_path, RAISED.format(13), TERMINATED, ENDED.format(13))

    assert [(place.host, place.rank) for place in verdict.culprits] == [("n5", 13)]


def test_a_kernel_that_tells_of_the_same_lost_no_peer(tmp_path: Path) -> None:
    """Xid 43 follows from what the program did."""
    xid = "[Wed May  6 07:07:02 2026] NVRM: Xid (PCI:0000:0f:00): 43, pid=812, name=python\n"
    (tmp_path / "dmesg.n5").write_text(xid)
    verdict = judged(tmp_path, RAISED.format(13), ENDED.format(13))

    assert [place.rank for place in verdict.culprits] == [13]
    assert not any("victims" in one.text for one in verdict.implies)


def test_whoever_ends_after_it_is_not_named(tmp_path: Path) -> None:
    """The rank that asserted is aborted, and its victim exits."""
    ends = "srun: error: n1: task 3: Aborted (core dumped)\n" + ENDED.format(13)

    assert judged(tmp_path, RAISED.format(3), ends).culprits[0].rank == 3


@pytest.mark.parametrize(
    "ends",
    [
        ENDED.format(13),
        "srun: error: n1: task 3: Aborted (core dumped)\n" + ENDED.format(13),
        RAISED.format(12) + RAISED.format(13) + ENDED.format(13),
        RAISED.format(13) + 2 * TERMINATED + ENDED.format(13),
        TERMINATED + RAISED.format(13) + ENDED.format(13),
        RAISED.format(13) + RAISED.replace("[rank{0}]: ", "") + ENDED.format(13),
    ],
    ids=["nobody raised it", "the victim's exit", "two raised it", "two terminated",
         "one terminated before", "one without a label"],
)  # fmt: skip
def test_of_several_none_is_named(tmp_path: Path, ends: str) -> None:
    """Which of them asserted nothing says."""
    assert judged(tmp_path, ends).culprits == ()


@pytest.mark.parametrize(("raised", "rank"), [((13,), 13), ((12, 13), None)])
def test_in_the_log_of_one_host_the_host_is_kept(
    tmp_path: Path, raised: tuple[int, ...], rank: int | None
) -> None:
    """By the name of its log; the other host's ranks lost a peer."""
    texts = "".join(map(RAISED.format, raised))
    (tmp_path / "host_n5.log").write_text(STEPS + ASSERTS + texts)
    (tmp_path / "host_n4.log").write_text(STEPS)
    (tmp_path / "sacct.psv").write_text(
        "JobID|JobName|State|ExitCode|Start|End|NNodes|NodeList\n"
        "9|fit|FAILED|1:0|2026-05-06T07:00:00|2026-05-06T07:30:00|2|n[4-5]\n"
    )
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code, verdict.fault_class) == ("A3", "cuda")
    assert {place.host for place in verdict.culprits} == {"n5"}
    assert rank is None or [place.rank for place in verdict.culprits] == [rank]
