"""A run that says that it stopped before its planned end."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.families.healthy import EARLY
from flatline.model import Verdict

STOPS = "early stopping triggered, best val loss 0.412"
CRASH = (
    "Traceback (most recent call last):\n"
    '  File "fit.py", line 90, in <module>\n    report(best)\n'
    "KeyError: 'val_loss'\n"
)


def steps(first: int, last: int) -> str:
    return "".join(
        f"2026-03-04 08:{n // 60:02d}:{n % 60:02d},000 INFO fit: step {10 * n}/9000"
        f" loss {0.3 + 3 * 0.99**n:.4f}\n"
        for n in range(first, last)
    )


def judged(folder: Path, text: str, state: str | None = "COMPLETED") -> Verdict:
    (folder / "train.log").write_text(text)
    if state is not None:
        code = "0:0" if state == "COMPLETED" else "1:0"
        (folder / "sacct.psv").write_text(
            "JobID|JobName|State|ExitCode|Start|End|NNodes|NodeList\n"
            f"44|seg|{state}|{code}|2026-03-04T07:59:00|2026-03-04T08:05:10|1|n1\n"
        )
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize(
    "line",
    [
        f"2026-03-04 08:05:00,000 INFO fit: {STOPS}",
        "Early stopping at step 2990, best dice 0.81",
        "Training stopped early at epoch 7.",
        "Val loss did not improve for 8 rounds, early stopping triggered",
        "Monitored metric val/dice did not improve in the last 8 records. Best score: 0.810."
        " Signaling Trainer to stop.",
    ],
)
def test_its_record_bears_out_that_it_stopped_early(tmp_path: Path, line: str) -> None:
    """Not with confidence: what it goes by was not read."""
    verdict = judged(tmp_path, steps(1, 300) + line + "\n")

    assert (verdict.code, verdict.confidence < 0.8) == ("G1", True)
    assert EARLY in verdict.cannot_decide
    assert line.lstrip("# ")[:30] in verdict.shows[0].cites[0].text


@pytest.mark.parametrize(
    ("text", "state"),
    [
        (steps(1, 300) + STOPS + "\n", None),
        (steps(1, 300) + STOPS + "\n", "FAILED"),
        (steps(1, 300) + STOPS + "\n" + CRASH, "COMPLETED"),
        (steps(1, 150) + STOPS + "\n" + steps(150, 300), "COMPLETED"),
        (STOPS + "\n" + steps(1, 300), "COMPLETED"),
        (steps(1, 300) + "runs until: early stopping triggered\n", "COMPLETED"),
        (steps(1, 300) + "Early stopping patience: 10\n", "COMPLETED"),
    ],
    ids=["no record", "failed", "raised behind it", "a stage", "a stage before", "no statement",
         "a setting"],
)  # fmt: skip
def test_near_misses_are_no_end(tmp_path: Path, text: str, state: str | None) -> None:
    """A fold or a stage stops early as well, and what follows may fail or be cut off."""
    assert judged(tmp_path, text, state).code != "G1"
