"""What the watchdog says last, where nothing says what it waited for."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

DOWN = (
    "[rank6]:[E624 04:14:29.224 ProcessGroupNCCL.cpp:684] [Rank 6] Some NCCL operations"
    " have failed or timed out. Due to the asynchronous nature of CUDA kernels, subsequent GPU"
    " operations might run on corrupted/incomplete data.\n"
)
STEPS = "".join(f"step {n}/9000 loss {8 - n / 100:.3f}\n" for n in range(1, 60))
RAISED = (
    "[rank6]: Traceback (most recent call last):\n"
    '[rank6]:   File "train.py", line 9, in <module>\n'
    "[rank6]:     loss = model(batch)\n"
    "[rank6]: IndexError: index 9 is out of range\n"
)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param(STEPS + DOWN, "C2", id="after-steps"),
        pytest.param(DOWN, None, id="before-any"),
        pytest.param(STEPS + RAISED + DOWN, "A3", id="beside-an-exception"),
        pytest.param(STEPS + DOWN + STEPS.replace("step ", "step 1"), None, id="gone-on"),
    ],
)
def test_a_process_taken_down(tmp_path: Path, text: str, code: str | None) -> None:
    (tmp_path / "train.log").write_text(text)
    told = diagnose(collect(Request((str(tmp_path),))))

    assert told.code == code or (code is None and told.code not in ("C2", "A3"))
    if code == "C2":
        assert told.confidence < 0.8
        assert "timed out or failed" in str(told.cannot_decide)
