"""A process that is killed after it said that it was done may have lost nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

STEPS = "".join(f"step {n}/600 loss {3 * 0.9985**n:.4f}\n" for n in range(1, 601))
KILLED = "run.sh: line 12: 41822 Killed                  python train.py\n"
EDITOR = "Process finished with exit code 137 (interrupted by signal 9: SIGKILL)\n"


@pytest.mark.parametrize("end", [KILLED, EDITOR])
@pytest.mark.parametrize(("said", "sure"), [("Training completed\n", False), ("", True)])
def test_a_kill_behind_the_end(tmp_path: Path, said: str, sure: bool, end: str) -> None:
    """It is told, and not with confidence."""
    (tmp_path / "train.log").write_text(STEPS + said + end)
    found = diagnose(collect(Request((str(tmp_path),))))
    assert found.code == "A2"
    assert (found.confidence >= 0.8) is sure


def test_a_stage_that_was_done_is_no_end(tmp_path: Path) -> None:
    """Steps that follow show that the run went on."""
    first = "".join(f"step {n}/600 loss {3 * 0.9985**n:.4f}\n" for n in range(1, 301))
    rest = STEPS[len(first) :]
    (tmp_path / "train.log").write_text(f"{first}Training completed\n{rest}{KILLED}")
    found = diagnose(collect(Request((str(tmp_path),))))
    assert found.code == "A2"
    assert found.confidence >= 0.8
