"""A rerun of a run whose lines count epochs and no steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

TAKEN = (
    "slurmstepd: error: *** JOB 71 ON n1 CANCELLED AT 2026-03-04T09:05:00 DUE TO PREEMPTION ***\n"
)
NONE = "WARNING directory /home/u/checkpoints is empty, starting from epoch 0\n"
RECORD = (
    "JobID|JobName|State|ExitCode|Start|End|NodeList\n"
    "71|vit|PREEMPTED|0:0|2026-03-04T08:00:00|2026-03-04T09:05:00|n1\n"
    "71|vit|RUNNING|0:0|2026-03-04T09:06:00|Unknown|n2\n"
)


def epochs(hour: int, first: int, until: int, saves: bool = True) -> str:
    return "".join(
        f"2026-03-04 {hour:02d}:{2 * (n - first) + 2:02d}:30 epoch {n} train_loss"
        f" {3 * 0.95**n + 0.2:.4f} time 119.7s\n"
        + (f"saved /scratch/u/checkpoints/epoch_{n:03d}.pt\n" if saves and n % 2 else "")
        for n in range(first, until)
    )


def told(folder: Path, log: str, record: str = RECORD) -> Verdict:
    (folder / "slurm-71.out").write_text(log)
    (folder / "sacct.txt").write_text(record)
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize("says", [NONE, ""], ids=["looked in vain", "says nothing"])
def test_it_began_at_its_first_epoch_though_later_ones_were_saved(
    tmp_path: Path, says: str
) -> None:
    """That the scheduler took it back does not make up for the work that was lost."""
    log = epochs(8, 0, 24) + TAKEN + says + epochs(9, 0, 12)
    verdict = told(tmp_path, log)

    assert (verdict.code, verdict.resubmit) == ("E2", "fix_first")
    assert "Training began at epoch 0" in " ".join(claim.text for claim in verdict.shows)


@pytest.mark.parametrize(
    "log",
    [
        epochs(8, 0, 24) + TAKEN + "INFO resuming from epoch 22\n" + epochs(9, 22, 30),
        epochs(8, 0, 24, saves=False) + TAKEN + NONE + epochs(9, 0, 12),
        # The second stage had just begun: what was saved is of the first.
        epochs(8, 0, 22) + epochs(8, 0, 1) + TAKEN + NONE + epochs(9, 0, 12),
    ],
    ids=["went on", "saved nothing", "a stage that had just begun"],
)
def test_a_rerun_that_lost_no_checkpoint(tmp_path: Path, log: str) -> None:
    """It may begin at its first epoch where nothing of this training had been kept."""
    assert told(tmp_path, log).code != "E2"


def test_a_rerun_that_says_it_found_none_is_not_surely_sound(tmp_path: Path) -> None:
    """Nothing tells that one had been saved: the word on the scheduler stays unsure."""
    verdict = told(tmp_path, epochs(8, 0, 24, saves=False) + TAKEN + NONE + epochs(9, 0, 12))

    assert verdict.code == "F2"
    assert verdict.confidence < 0.8


def test_folds_begin_at_their_first_epoch(tmp_path: Path) -> None:
    """None of them is a rerun of the one before."""
    fold = "INFO no checkpoint found, starting from epoch 0\n"
    log = "".join(fold + epochs(hour, 0, 24) for hour in (8, 9, 10))
    record = RECORD.splitlines()[0] + ("\n71|vit|RUNNING|0:0|2026-03-04T08:00:00|Unknown|n1\n")
    verdict = told(tmp_path, log, record)
    assert verdict.code != "E2"
