"""Workers that Ray finds gone behind the last word of the program they worked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

LAST = (
    "(TaskRunner pid=5150) ('Final validation metrics: '\n"
    "(TaskRunner pid=5150)  \"{'val-core/math/reward/mean@1': 0.62}\")\n"
)
INITIAL = "(TaskRunner pid=5150) (\"Initial validation metrics: {'val-core/math': 0.21}\")\n"
GONE = (
    "(raylet) A worker died or was killed while executing a task by an unexpected system error. To"
    " troubleshoot the problem, check the logs for the dead worker. Worker exit type: SYSTEM_ERROR"
    " Worker exit detail: {}\n"
)
UNSAID = GONE.format("Worker unexpectedly exits with a connection error code 2. End of file.")
ENDED = GONE.format("Worker exits with an exit code 1.")


def steps(first: int, last: int) -> str:
    return "".join(
        f"(TaskRunner pid=5150) step:{n} - actor/kl_loss:{n / 2000:.4f} - actor/grad_norm:0.31"
        f" - critic/rewards/mean:{0.3 + n / 100:.4f} - timing_s/step:61.20\n"
        for n in range(first, last + 1)
    )


BAR = "Training Progress: 100%|##########| 40/40 [40:48<00:00, 61.2s/it]\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (steps(1, 40) + BAR + LAST + UNSAID, "G1"),
        (steps(1, 40) + BAR + LAST + ENDED, None),
        (steps(1, 40) + BAR + UNSAID, "A2"),
        (steps(1, 40) + UNSAID + BAR + LAST, "G1"),
        (INITIAL + steps(1, 31) + UNSAID, "A2"),
        (LAST + steps(1, 31) + UNSAID, "A2"),
    ],
    ids=["behind it", "by an error of its own", "nothing is said", "before it, and it went on",
         "within training", "of an earlier run"],
)  # fmt: skip
def test_a_worker_that_is_gone(tmp_path: Path, text: str, code: str | None) -> None:
    """All is saved by then; before, it is what ended training."""
    (tmp_path / "driver.log").write_text(text)

    assert diagnose(collect(Request((str(tmp_path),)))).code == code
