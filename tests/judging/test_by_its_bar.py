"""A run that goes on by a bar in a file of its own, beside the losses in another."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

LOSSES = "".join(
    f"{{'loss': {1.7 * 0.99**n:.4f}, 'grad_norm': 1.2, 'learning_rate': 1e-05,"
    f" 'epoch': {n / 40:.2f}}}\n"
    for n in range(1, 61)
)
RECORD = "JobID|JobName|State|ExitCode|Start|End|NodeList\n881|sft|RUNNING|0:0|{}|Unknown|n1\n"
LOOKED = (
    "# Tue Mar 03 11:00:10 UTC 2026\n"
    "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"
    "               881      l40s      sft    kolar  R    2:41:30      1 n1\n"
)


def bar(step: int, total: int = 4200) -> str:
    clock = f"{step * 4 // 3600}:{step * 4 // 60 % 60:02d}:{step * 4 % 60:02d}"
    return f" {100 * step // total}%|##  | {step}/{total} [{clock}<9:00:00,  4.00s/it]"


def judged(folder: Path, drawn: str, began: str) -> Verdict:
    (folder / "sft-881.out").write_text(LOSSES)
    (folder / "sft-881.err").write_text("a warning of some library\n" + drawn)
    (folder / "sacct.txt").write_text(RECORD.format(began))
    (folder / "squeue.txt").write_text(LOOKED)
    return diagnose(collect(Request((str(folder),), job="881")))


STEPS = "\r".join(map(bar, range(0, 2400)))


@pytest.mark.parametrize(
    ("drawn", "began", "goes_on"),
    [
        (STEPS, "2026-03-03T08:18:40", True),
        (STEPS, "2026-03-03T07:18:40", False),
        ("\r".join((STEPS, bar(1, 200), bar(2, 200))), "2026-03-03T08:18:40", False),
        ("\r".join(map(bar, range(2390, 2400))), "2026-03-03T08:18:40", False),
    ],
    ids=["to the moment", "an hour before", "another bar is drawn", "one of its moments"],
)
def test_how_long_it_has_run(tmp_path: Path, drawn: str, began: str, goes_on: bool) -> None:
    """What the bar has run and the job's start leave hardly any time for a stop."""
    verdict = judged(tmp_path, drawn, began)

    assert (verdict.code == "G1") is goes_on
    assert verdict.confidence < 0.8
