"""A warning of what may come, and a run that came to its end or did not."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

WARNED = (
    "(raylet, ip=10.3.3.22) [2026-03-10 22:08:36,210 E 9911 9911] (raylet)"
    " file_system_monitor.cc:116: /tmp/ray/session_2026-03-10 is over 95% full, available space:"
    " 42.1 GB; capacity: 879.0 GB. Object creation will fail if spilling is required.\n"
)
FAILED = "ray.exceptions.OutOfDiskError: Local disk is full\n"


def steps(last: int) -> str:
    return "".join(f"step {n}/48 loss {3 * 0.97**n:.4f}\n" for n in range(1, last + 1))


@pytest.mark.parametrize(
    ("log", "fault"),
    [
        (steps(48) + WARNED, False),
        (steps(30) + WARNED, True),
        (steps(30) + WARNED + FAILED, True),
    ],
    ids=["behind the last step", "the last that is heard", "and it came"],
)
def test_a_disk_that_is_nearly_full(tmp_path: Path, log: str, fault: bool) -> None:
    (tmp_path / "train.log").write_text(log)
    code = diagnose(collect(Request((str(tmp_path),)))).code

    assert (code == "C6") is fault
