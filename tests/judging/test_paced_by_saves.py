"""Steps that waited for the saves between them, which the rate that they print counts as steps."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

BEGAN = datetime(2026, 3, 4, 8, tzinfo=UTC)


def judged(folder: Path, *, waits: bool, save_s: float = 35.0, apart: float = 1.5) -> Verdict:
    """Fifty updates of 0.6 s and a save, sixty times over."""
    dice, now, lines, took = random.Random(7), BEGAN, list[str](), save_s
    for n in range(1, 61):
        length = 30 + dice.gauss(0, 0.2) + (took if waits else save_s)
        took = max(1.0, dice.gauss(save_s, apart))
        now += timedelta(seconds=length)
        lines += [
            f"[{now:%F %T},{now.microsecond // 1000:03d}][train_inner][INFO] - "
            f'{{"epoch": 1, "update": 0.{n:03d}, "loss": "{6 - n / 20:.3f}",'
            f' "wps": "105079.7", "ups": "{50 / length:.2f}", "num_updates": "{50 * n}",'
            f' "lr": "3.1e-06", "gnorm": "0.8", "train_wall": "30", "wall": "{n * 60}"}}',
            f"[{now:%F %T},{now.microsecond // 1000:03d}][fairseq.checkpoint_utils][INFO] - "
            f"Saved checkpoint checkpoints/checkpoint_1_{50 * n}.pt (epoch 1 @ {50 * n} updates,"
            f" score None) (writing took {took:.3f} seconds)",
        ]
    (folder / "train.log").write_text("\n".join(lines) + "\n")
    (folder / "sacct.psv").write_text(
        "JobID|State|ExitCode|Start|End|NNodes|NodeList\n"
        "7|RUNNING|0:0|2026-03-04T07:59:00|Unknown|2|n[1-2]\n"
    )
    return diagnose(collect(Request((str(folder),))))


def test_the_time_from_step_to_step_goes_with_the_saves(tmp_path: Path) -> None:
    verdict = judged(tmp_path, waits=True)

    assert verdict.code == "D2"
    assert any("goes up and down with them" in one.text for one in verdict.shows)


@pytest.mark.parametrize(
    ("waits", "save_s", "apart"),
    [(False, 35.0, 1.5), (True, 1.5, 0.5), (True, 35.0, 0.01)],
    ids=["written beside them", "short ones", "all alike: nothing tells"],
)
def test_saves_that_are_not_known_to_hold_the_steps(
    tmp_path: Path, waits: bool, save_s: float, apart: float
) -> None:
    assert judged(tmp_path, waits=waits, save_s=save_s, apart=apart).code != "D2"
