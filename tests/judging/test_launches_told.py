"""D2 of launches that wait for one another, by what the log says that the same took without."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

SET = "+ export CUDA_LAUNCH_BLOCKING=1\n"
TOLD = "previous run without it: 240 ms/step\n"


@pytest.mark.parametrize(
    ("head", "step_ms", "found"),
    [
        (SET + TOLD, 610, True),
        (SET + TOLD, 245, False),
        (TOLD, 610, False),
        (SET + "warm-up done: 240 ms/step\n", 610, False),
        (SET + "without compression: 240 ms/batch saved\n", 610, False),
    ],
    ids=["far slower", "as fast", "it is not set", "of this run", "of something else"],
)
def test_by_the_logs_own_words(tmp_path: Path, head: str, step_ms: int, found: bool) -> None:
    steps = "".join(f"step {n} loss {6 - n / 90:.3f} {step_ms + n % 7} ms/step\n"
                    for n in range(10, 400, 10))  # fmt: skip
    (tmp_path / "train.log").write_text(head + steps)
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.fault_class == "launch-blocking") == found
    assert verdict.confidence < 0.8
