"""A job that looks for a checkpoint in vain, behind one that had come far and was ended."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict
from flatline.render.json import render
from flatline.verify import verify

DAY = "2026-05-06T"
HEAD = "JobID|JobName|User|State|ExitCode|Timelimit|Submit|Start|End|NNodes|NodeList\n"
SOUGHT = "2026/05/06 {h:02d}:00:20 - mmengine - INFO - Did not find last_checkpoint to be resumed"
SAVING = "2026/05/06 {h:02d}:{m:02d}:59 - mmengine - INFO - Saving checkpoint at {n} epochs\n"


def epochs(hour: int, first: int, last: int, loss: float, *, saves: bool = False) -> str:
    """Epochs of 500 batches, ten lines and ten minutes each."""
    out = []
    for n in range(first, last):
        for at in range(10):
            minute = 10 * (n - first) + at
            fell = loss * 0.97 ** (10 * (n - first) + at)
            out.append(
                f"2026/05/06 {hour:02d}:{minute:02d}:30 - mmengine - INFO - Epoch(train)"
                f"  [{n}][{50 * at + 50:3d}/500]  lr: 2.0000e-04  eta: 1:08:58  time: 1.2000"
                f"  data_time: 0.0100  memory: 51220  loss: {fell:.4f}\n"
            )
        if saves:
            out.append(SAVING.format(h=hour, m=minute, n=n))
    return "".join(out)


def judged(
    folder: Path, before: str, *, state: str = "TIMEOUT", name: str = "det_s", loss: float = 6.0
) -> Verdict:
    (folder / "slurm-51.out").write_text(before)
    (folder / "slurm-64.out").write_text(SOUGHT.format(h=14) + "\n" + epochs(14, 1, 3, loss))
    (folder / "sacct.txt").write_text(
        f"{HEAD}51|det_s|ann|{state}|0:0|01:00:00|{DAY}07:50:00|{DAY}08:00:00|{DAY}09:00:00|1|n1\n"
        f"64|{name}|ann|RUNNING|0:0|08:00:00|{DAY}13:10:00|{DAY}14:00:00|Unknown|1|n1\n"
    )
    return diagnose(collect(Request((str(folder),), job="64")))


@pytest.mark.parametrize(
    ("before", "told"),
    [
        (epochs(8, 1, 6, 6.1, saves=True), "began to save step 2000, went on"),
        (epochs(8, 21, 26, 2.1, saves=True), "began to save step 12000, went on"),
        (epochs(8, 1, 6, 6.1), "The job before this one had come to epoch 5"),
    ],
    ids=["it saved", "the log's tail alone is there", "it says nothing of saves"],
)
def test_it_began_anew(tmp_path: Path, before: str, told: str) -> None:
    verdict = judged(tmp_path, before)

    assert (verdict.code, verdict.resubmit) == ("E2", "fix_first")
    assert verdict.confidence < 0.8
    assert any(told in shown.text for shown in verdict.shows), verdict.shows
    assert all(check.ok for check in verify(json.loads(render(verdict)), (str(tmp_path),)))


@pytest.mark.parametrize(
    ("before", "changed"),
    [
        (epochs(8, 1, 2, 6.1), {}),
        (SOUGHT.format(h=8) + "\n" + epochs(8, 1, 6, 6.1), {}),
        (epochs(8, 21, 26, 2.1), {}),
        (epochs(8, 1, 6, 6.1), {"state": "FAILED"}),
        (epochs(8, 1, 6, 6.1), {"state": "CANCELLED"}),
        (epochs(8, 1, 6, 6.1), {"name": "det_m"}),
        (epochs(8, 1, 6, 6.1), {"loss": 1.4}),
    ],
    ids=["within its first epoch", "always looks", "its own beginning was not read", "failed",
         "ended by hand", "another name", "weights were loaded"],
)  # fmt: skip
def test_near_misses(tmp_path: Path, before: str, changed: dict[str, object]) -> None:
    assert judged(tmp_path, before, **changed).code != "E2"  # type: ignore[arg-type]


ITERATION = (
    " [2026-05-0{d} 08:{m:02d}:30] iteration {n:8d}/{of:8d} | consumed samples: {n:12d} |"
    " elapsed time per iteration (ms): {ms} | learning rate: 1.000E-04 | global batch size: 256"
    " | lm loss: {loss:.6E} | loss scale: 1.0 | number of skipped iterations:   0 |\n"
)


def iterations(day: int, first: int, loss: float, *, ms: float = 3000.0, of: int = 90000) -> str:
    return "".join(
        ITERATION.format(d=day, m=k, n=first + 10 * k, of=of, ms=ms, loss=loss - k / 100)
        for k in range(30)
    )


NO_TRACKER = (
    "WARNING: could not find the metadata file /scr/m7/latest_checkpointed_iteration.txt\n"
    "    will not load any checkpoints and will start from random\n"
)


@pytest.mark.parametrize(
    ("before", "anew"),
    [
        (iterations(3, 31000, 2.4), True),
        (iterations(3, 10, 10.4), False),
        (iterations(3, 31000, 2.4, ms=30.0), False),
        (iterations(3, 31000, 2.4, of=60000), False),
        (NO_TRACKER + iterations(3, 31000, 2.4), False),
    ],
    ids=["a day's steps", "none to speak of", "minutes", "another plan", "it looked in vain too"],
)
def test_iterations_of_a_day_before(tmp_path: Path, before: str, anew: bool) -> None:
    """Whoever has worked for so long has saved something."""
    ended = "slurmstepd: error: *** STEP 88.0 ON n2 CANCELLED AT 2026-05-03T09:00:03 ***\n"
    (tmp_path / "train.log").write_text(before + ended + NO_TRACKER + iterations(4, 10, 10.5))
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code == "E2") is anew
    assert verdict.confidence < 0.8
