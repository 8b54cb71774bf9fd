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


COLLECTED = "[GC] Performing periodic GC collection took {:.2f} seconds"
NEMO = "Running garbage collection at train global_step: {}"


@pytest.mark.parametrize(
    ("line", "cost_s", "beside", "code"),
    [
        pytest.param(COLLECTED.format(20), 20.0, None, "D2", id="as-it-says"),
        pytest.param(NEMO, 20.0, None, "D2", id="by-the-clock"),
        pytest.param(COLLECTED.format(20), 2.0, None, None, id="cheap-by-the-clock"),
        pytest.param(COLLECTED.format(0.1), 20.0, None, None, id="cheap-as-it-says"),
        pytest.param(NEMO, 20.0, "checkpoint saved at step {}", None, id="beside-a-save"),
    ],
)
def test_garbage_is_blamed_for_what_it_takes(
    tmp_path: Path, line: str, cost_s: float, beside: str | None, code: str | None
) -> None:
    """A fifth of the time, in intervals in which nothing else is said to be done."""
    at, lines = datetime(2026, 3, 4, 8, tzinfo=UTC), []
    for step in range(1, 401):
        at += timedelta(seconds=2.0 + 0.01 * (step * 7 % 5))
        stamp = f"{at:%Y-%m-%d %H:%M:%S}"
        lines.append(f"{stamp},{at.microsecond // 1000:03d} INFO step {step}/900 loss"
                     f" {2 + 40 / step:.4f}")  # fmt: skip
        if step % 40 == 0:
            at += timedelta(seconds=cost_s)
            lines.append(line.format(step))
            lines += [beside.format(step)] if beside else []
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == code
    if code:
        assert verdict.fault_class == "garbage-collection"
        assert "took 18% of the run's time" in verdict.headline
