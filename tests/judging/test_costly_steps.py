"""What saves cost, by lines that only say that one begins."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose


@pytest.mark.parametrize(("cost_s", "code"), [(30.0, "D2"), (1.0, None)])
def test_saves_that_only_begin_are_timed(tmp_path: Path, cost_s: float, code: str | None) -> None:
    """Half of the time, or a fiftieth; the last save alone is said to have ended."""
    at, lines = datetime(2026, 3, 4, 8, tzinfo=UTC), []
    for step in range(1, 201):
        at += timedelta(seconds=3.0)
        loss = 2 + 40 / step
        lines.append(f"{at:%Y-%m-%d %H:%M:%S},000 INFO step {step}/900 loss {loss:.4f}")
        if step % 10 == 0:
            lines.append(f"{at:%Y-%m-%d %H:%M:%S},000 saving checkpoint to /ckpt/step{step}")
            at += timedelta(seconds=cost_s)
    lines.append(f"{at:%Y-%m-%d %H:%M:%S},000 INFO checkpoint saved at step 200")
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    verdict = diagnose(collect(Request((str(tmp_path),))))
    assert verdict.code == code
    if code:
        assert verdict.fault_class == "checkpoint-storm"
        assert "saving checkpoint" in str(verdict.shows[0].cites[0])
