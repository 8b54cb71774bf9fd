"""What torch_npu and HCCL print, by the phase it is printed in."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

STEPS = "".join(f"step {n}/900 loss {3 * 0.9985**n:.4f}\n" for n in range(1, 300))
SYNC = "RuntimeError: npuSynchronizeDevice:NPUStream.cpp:435 NPU function error: aclrtSynchronize"
NOTIFY = "EI0002: The wait execution of the Notify register times out.\n"
SOCKET = (
    "RuntimeError: createHCCLCommOrigin:ProcessGroupHCCL.cpp:2117 HCCL function error:"
    " hcclCommInitRootInfoConfig(numRanks, &rootInfo, rank), error code is 7\n"
    "EI0006: Getting socket times out. Reason: Remote Rank did not send the data in time.\n"
)
STREAM = "RuntimeError: ACL stream synchronize failed, error code"
TAKES = "RuntimeError: SetDevice:x.ts:118 NPU function error: aclrtSetDevice, error code is"
OPENS = "EL0004: [PID: 9] 2026-02-11-08:10:02.004.118 Failed to open device, deviceId=2.\n"
MEMORY = (
    "NPU function error: aclrtMalloc, error code is 207001\n"
    "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 0; 60.96 GiB total)\n"
)


@pytest.mark.parametrize(
    ("log", "code"),
    [
        (SOCKET, "C1"),
        (STEPS + SOCKET, "C2"),
        (STEPS + NOTIFY, "C2"),
        (f"{STEPS}{SYNC}, error code is 507046\n", "A3"),
        (f"{STEPS}{SYNC}, error code is 507046\n{NOTIFY}", "C2"),
        (f"{STEPS}{SYNC}, error code is 507048\n{NOTIFY}", "C2"),
        (f"{STEPS}{SYNC}, error code is 507015\n", "A3"),
        (f"{STEPS}{SYNC}, error code is 507015\n{NOTIFY}", "A3"),
        (f"{STEPS}{STREAM}:107020\n{NOTIFY}", "C2"),
        (f"{STEPS}{STREAM}:107020\n", "A3"),
        (f"{STEPS}{STREAM}:507015\n{NOTIFY}", "A3"),
        (f"{TAKES} 107001\n{OPENS}", "A1"),
        (f"{TAKES} 107001\n", "A1"),
        (f"{STEPS}{TAKES} 507033\n", "A3"),
        (
            f"{MEMORY}EL0004: [PID: 9] 2026-02-11-08:10:02.004.118 Failed to allocate memory.\n",
            "B1",
        ),
        (STEPS + MEMORY, "B1"),
        ("the notify wait timeout is 1836 s\nthe socket timeout is set to 120 s\nloading\n", None),
        ("dataset of 3 classes: EI0002 EI0006 EI0009\nloading\n", None),
    ],
)
def test_a_fault_in_its_phase(tmp_path: Path, log: str, code: str | None) -> None:
    """A communicator that is never built is no frozen run, and one NPU's slow stream no
    collective."""
    (tmp_path / "train.log").write_text(log)

    assert diagnose(collect(Request((str(tmp_path),)))).code == code
