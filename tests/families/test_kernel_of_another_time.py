"""What a kernel told of hours before the end of a run that nothing else says it ended, and what it
tells of late."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

FAULT = (
    "[Fri Jan 30 {} 2026] NVRM: Xid (PCI:0000:43:00): 31, pid=100821, name=python3, Ch 00000008,"
    " intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_2 faulted @ 0x7f20_1c000000.\n"
    "[Fri Jan 30 {} 2026] nvidia-modeset: probe ok\n"
)
STEPS = "".join(f"step {n}/2400 loss {3 * 0.999**n:.4f} grad 0.4\n" for n in range(1, 640))
SACCT = (
    "JobID|JobName|State|ExitCode|Start|End|NodeList\n"
    "48102|dpo|{}|{}|2026-01-30T21:00:00|2026-01-30T22:16:26|n[01-02]\n"
)


def judged(folder: Path, state: str, code: str, at: str, said: str) -> Verdict:
    (folder / "slurm-48102.out").write_text(STEPS + said)
    (folder / "sacct.txt").write_text(SACCT.format(state, code))
    (folder / "dmesg-n01.txt").write_text(FAULT.format(at, at))
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize(
    ("state", "exit_code", "at", "said", "code"),
    [
        ("NODE_FAIL", "0:0", "19:03:20", "srun: error: Node failure on n02\n", "F1"),
        ("FAILED", "1:0", "22:15:20", "RuntimeError: CUDA error: an illegal memory access was"
         " encountered\n", "A3"),
    ],
    ids=["a node was lost", "it failed then"],
)  # fmt: skip
def test_a_fault_of_a_program_hours_before(
    tmp_path: Path, state: str, exit_code: str, at: str, said: str, code: str
) -> None:
    """A kernel that touched a bad address ends its process at once."""
    assert judged(tmp_path, state, exit_code, at, said).code == code


LUSTRE = (
    "[Fri Jan 30 {} 2026] Lustre: lfs2-OST0007-osc-ffff9d1c: Connection to lfs2-OST0007 (at"
    " 10.41.200.17@tcp) was lost; in progress operations using this service will wait for recovery"
    " to complete\n"
    "[Fri Jan 30 {} 2026] nvidia-modeset: probe ok\n"
)


@pytest.mark.parametrize(("at", "late"), [("20:10:50", True), ("20:25:00", False)])
def test_a_server_that_a_client_tells_of_late(tmp_path: Path, at: str, late: bool) -> None:
    """Its requests were out for a while when it says so: a freeze before may be of it."""
    rows = "".join(
        f"2026-01-30 20:{n // 60:02d}:{n % 60:02d} [rank{r}] step {n}/9000"
        f" loss {3 * 0.999**n:.4f}\n"
        for n in range(0, 641, 10)
        for r in range(2)
    )
    (tmp_path / "slurm-48102.out").write_text(rows)
    (tmp_path / "sacct.txt").write_text(
        SACCT.format("CANCELLED by 1000", "0:15").replace("T21:00", "T19:59")
    )
    (tmp_path / "dmesg-n01.txt").write_text(LUSTRE.format(at, at))

    told = diagnose(collect(Request((str(tmp_path),))))

    assert (told.code == "C6") is late
