"""Undated steps are laid on the clock by the dated lines between them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.collect.by_clock import spans
from flatline.facts import Facts
from flatline.judging.by_dates import laid_by_dates

BEGAN = datetime(2026, 3, 4, 8, tzinfo=UTC)
STEP_S, STEPS = 10, 240


def bar(step: int, at_s: float) -> str:
    left = (STEPS - step) * STEP_S
    ran, to_go = (f"{s // 60:02.0f}:{s % 60:02.0f}" for s in (at_s, left))
    return f" {100 * step // STEPS}%|█| {step}/{STEPS} [{ran}<{to_go}, 10.00s/it]"


def read(folder: Path, saves: tuple[int, ...], late_s: float = 0.0) -> Facts:
    """A bar, and saves whose lines are dated by a clock that is late from the second on."""
    lines = []
    for step in range(1, STEPS + 1):
        lines.append(bar(step, step * STEP_S))
        if step % 5 == 0:
            lines.append(f"{{'loss': {3 - step / 200:.4f}, 'epoch': {step / 100:.2f}}}")
        if step in saves:
            late = late_s if step > saves[0] else 0.0
            at = BEGAN + timedelta(seconds=step * STEP_S + 0.2 + late)
            lines.append(f"[INFO|trainer.py:3984] {at:%F %T},200 >> Saving model checkpoint to"
                         f" /ckpt/checkpoint-{step}")  # fmt: skip
    (folder / "train.log").write_text("\n".join(lines) + "\n")
    return collect(Request((str(folder),)))


def test_where_dated_lines_stand_between_the_steps(tmp_path: Path) -> None:
    known = laid_by_dates(read(tmp_path, (60, 120, 180)))

    assert known is not None
    assert known.times[-1] == pytest.approx((BEGAN.timestamp() + STEPS * STEP_S), abs=3.0)
    assert known.slack_s <= STEP_S + 4.0


@pytest.mark.parametrize(("saves", "late_s"), [((), 0.0), ((60, 120), 300.0), ((STEPS,), 0.0)],
                         ids=["none", "of two clocks", "behind the last step alone"])  # fmt: skip
def test_where_they_do_not_tell(tmp_path: Path, saves: tuple[int, ...], late_s: float) -> None:
    assert laid_by_dates(read(tmp_path, saves, late_s)) is None


def test_when_such_a_run_began_is_told_to_what_is_asked_for_it(tmp_path: Path) -> None:
    read(tmp_path, (60, 120, 180))
    from flatline.collect import read as read_all

    ((first, last),) = [
        s for _, _, e in read_all(Request((str(tmp_path),))).logs for s in spans(e)
    ]
    assert 0 < (first - BEGAN).total_seconds() < 7 * STEP_S
    assert abs((last - BEGAN).total_seconds() - STEPS * STEP_S) < 3
