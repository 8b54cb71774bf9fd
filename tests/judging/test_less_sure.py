"""What a kernel log alone tells of, and what a rerun leaves open."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

KERNEL = (
    "[Tue Mar 10 07:10:33 2026] NVRM: Xid (PCI:0000:88:00): 79, pid='<unknown>',"
    " name=<unknown>, GPU has fallen off the bus.\n"
    "[Tue Mar 10 07:12:40 2026] python[29011]: segfault at 0 ip 000055d0a4c1 sp 00007ffd2a1c"
    " error 4 in python3.8[55d0a4000000+2b4000]\n"
)
RECORD = (
    "JobID|JobName|State|ExitCode|Start|End|NodeList|Restarts\n"
    "512|lm|{}|{}|2026-03-10T06:00:00|{}|n7|{}\n"
)
RUNNING = RECORD.format("RUNNING", "0:0", "Unknown", 0)
FAILED = RECORD.format("FAILED", "1:0", "2026-03-10T07:13:00", 0)


def judged(folder: Path, **files: str) -> Verdict:
    for name, text in files.items():
        path = folder / name.replace("__", "-").replace("_txt", ".txt").replace("_out", ".out")
        path.write_text(text)
    return diagnose(collect(Request((str(folder),))))


def steps(first: int, last: int, each: int = 10) -> str:
    return "".join(
        f"2026-03-10 {6 + n // 180:02d}:{n // 3 % 60:02d}:{n % 3 * 20:02d} step {n} loss"
        f" {3 * 0.999**n:.4f}\n"
        for n in range(first, last, each)
    )


UNDATED = "".join(f"step {n} loss {3 * 0.999**n:.4f}\n" for n in range(0, 400, 10))
TIMED_OUT = (
    "[rank0]: RuntimeError: CUDA error: unspecified launch failure\n"
    "CUDA kernel errors might be asynchronously reported at some other API call\n"
)


@pytest.mark.parametrize(
    ("record", "log", "sure"),
    [
        pytest.param(None, "", False, id="a kernel's log alone"),
        pytest.param(RUNNING, "", False, id="it goes on"),
        pytest.param(RUNNING, "FutureWarning: of old\n", False, id="a log without a step"),
        pytest.param(FAILED, "", True, id="its record says that it failed"),
        pytest.param(None, steps(0, 210), True, id="its steps end with it"),
        pytest.param(None, UNDATED, False, id="no time of its own"),
        pytest.param(None, UNDATED + TIMED_OUT, True, id="it failed at no known time"),
    ],
)
def test_a_host_whose_kernel_alone_tells(
    tmp_path: Path, record: str | None, log: str, sure: bool
) -> None:
    """Another job's process may have met it."""
    files = {"sacct_txt": record} if record else {}
    files |= {"slurm__512_out": log} if log else {}
    verdict = judged(tmp_path, dmesg__n7_txt=KERNEL, **files)

    assert verdict.code == "B2"
    assert (verdict.confidence >= 0.8) is sure
    assert any("struck this run" in open_ for open_ in verdict.cannot_decide) is not sure


@pytest.mark.parametrize(
    ("log", "sure"),
    [
        pytest.param("", False, id="unheard of"),
        pytest.param(steps(10, 400), False, id="from its first steps on"),
        pytest.param(steps(210, 600), True, id="further on"),
        pytest.param("Resuming from checkpoint step_0\n" + steps(10, 400), True, id="resumed"),
    ],
)
def test_a_rerun_whose_earlier_try_is_not_known(tmp_path: Path, log: str, sure: bool) -> None:
    """It may have begun anew."""
    files = {"slurm__512_out": log} if log else {}
    record = RECORD.format("RUNNING", "0:0", "Unknown", 1)
    verdict = judged(tmp_path, sacct_txt=record, **files)

    assert verdict.code == "F2"
    assert (verdict.confidence >= 0.8) is sure
    assert any("Whether the rerun" in open_ for open_ in verdict.cannot_decide) is not sure


@pytest.mark.parametrize(("day", "then"), [("10", True), ("01", False)])
def test_what_a_kernel_told_of_before_a_log_begins(tmp_path: Path, day: str, then: bool) -> None:
    """A server that was silent nine days before has not failed what began since."""
    kernel = (
        f"[Tue Mar {day} 06:57:51 2026] nfs: server nas3 not responding, still trying\n"
        f"[Tue Mar {day} 06:57:52 2026] nfs: server nas3 not responding, timed out\n"
    )
    log = (
        "2026-03-10 06:58:41,377 INFO loading weights from /mnt/nas3/llm\n"
        "2026-03-10 06:58:41,901 WARNING NCCL version 2.21.5+cuda12.4\n"
        "Traceback (most recent call last):\n"
        '  File "train.py", line 88, in <module>\n'
        "    state = load_file(path)\n"
        "safetensors_rust.SafetensorError: Error while deserializing header:"
        " MetadataIncompleteBuffer\n"
    )
    verdict = judged(tmp_path, dmesg__n7_txt=kernel, train_out=log)

    assert (verdict.code == "C6") is then
