"""The work of a step that grew: what is quoted of it, and what is advised."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import LogCite

LONGER = Path(__file__).parents[1] / "scenarios" / "sequences_longer_as_pace_falls" / "run"


def test_the_line_right_before_the_change_is_quoted() -> None:
    """Step 1190 stands at the old size and 1200 at the new one; nothing lies between them."""
    verdict = diagnose(collect(Request((str(LONGER),))))
    before, after = verdict.shows[0].cites[:2]

    assert isinstance(before, LogCite)
    assert isinstance(after, LogCite)
    assert (verdict.code, verdict.fault_class) == ("D6", "size")
    assert ("step 1190/" in before.text, "step 1200/" in after.text) == (True, True)
    assert after.line == before.line + 1


def test_steps_of_another_size_are_compared_at_the_same_size() -> None:
    """Tokens a second as printed may be reckoned by the size that was set, not by the real one."""
    verdict = diagnose(collect(Request((str(LONGER),))))

    assert "same size" in verdict.actions[0].text
    assert "tokens a second" not in verdict.actions[0].text


@pytest.mark.parametrize(
    ("size", "took_ms", "code"),
    [
        ("seq length: {n}", 6800.0, "D6"),
        ("seq length: {n}", 6000.0, "D6"),
        ("global batch size: {n}", 6000.0, "G1"),
        ("global batch size: {n}", 6800.0, "D6"),
    ],
)
def test_work_a_second_that_holds_hides_no_longer_steps(
    tmp_path: Path, size: str, took_ms: float, code: str
) -> None:
    """TFLOP/s count the longer sequence as work; batches that grow are meant to, unless steps grow
    by more."""
    at, lines = datetime(2026, 3, 27, 8, tzinfo=UTC), []
    for step in range(5, 605, 5):
        long = step > 300
        took = took_ms if long else 4000.0 + step % 7
        at += timedelta(milliseconds=5 * took)
        lines.append(
            f" [{at:%Y-%m-%d %H:%M:%S}] iteration {step:8d}/     600 | elapsed time per iteration"
            f" (ms): {took:.1f} | throughput per GPU (TFLOP/s/GPU): {390 + step % 3}.0 |"
            f" {size.format(n=12288 if long else 8192)} | lm loss: {2 + 40 / step:.6E} |"
        )
    lines.append(f"[after training is done] datetime: {at:%Y-%m-%d %H:%M:%S}")
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    assert diagnose(collect(Request((str(tmp_path),)))).code == code
