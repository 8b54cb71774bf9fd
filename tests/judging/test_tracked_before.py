"""E2 by the tracker of experiments, which knows of an earlier run."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

NONE = "No checkpoint found in /data/out/k3, starting from scratch\n"
RESUMED = "wandb: Resuming run k3-base (last step 42000)\n"
BEHIND = (
    "wandb: WARNING Tried to log to step {} that is less than the current step {}. Steps must be"
    " monotonically increasing, so this data will be ignored.\n"
)


def judged(folder: Path, head: str, said: str = "", at: int = 2, first: int = 1) -> Verdict:
    lines = [head]
    for n in range(300):
        lines.append(f"step {first + n}/90000 | loss {9.5 - n / 90:.4f} | lr 1e-4\n")
        lines.append(said if n == at else "")
    (folder / "train.log").write_text("".join(lines))
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize(("head", "said"), [(NONE + RESUMED, ""), (NONE, BEHIND.format(3, 42000))])
def test_a_tracker_that_had_steps_before(tmp_path: Path, head: str, said: str) -> None:
    """Whether they were saved it does not say."""
    verdict = judged(tmp_path, head, said)

    assert (verdict.code, verdict.confidence < 0.8) == ("E2", True)


@pytest.mark.parametrize(
    ("head", "said", "at", "first"),
    [
        (RESUMED, "", 2, 1),  # none was looked for
        (NONE, "", 2, 1),
        (NONE + "wandb: Resuming run k3-base\n", "", 2, 1),  # it may have come to nothing
        (NONE + RESUMED, "", 2, 42001),
        (NONE, BEHIND.format(3, 90), 2, 1),  # another counter
        (NONE, BEHIND.format(200, 42000), 200, 1),
    ],
)
def test_near_misses(tmp_path: Path, head: str, said: str, at: int, first: int) -> None:
    assert judged(tmp_path, head, said, at, first).code != "E2"
