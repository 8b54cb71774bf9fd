"""A machine that is taken back in the middle of a log that goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

STATE = "WARNING: TPU node trial-7 state: {}\n"
LOADS = (
    "2026-06-14T04:26:46 - 0 - levanter.checkpoint - checkpoint.py:520 - INFO :: Loading"
    " checkpoint from gs://lv/run9/step-400\n"
)


def steps(first: int, last: int) -> str:
    return "".join(
        f"2026-06-14T{3 + n // 360:02d}:{n // 6 % 60:02d}:{n % 6 * 10:02d} step {n}/9000"
        f" loss {5 - n / 900:.4f}\n"
        for n in range(first, last)
    )


@pytest.mark.parametrize(
    ("between", "attempts"),
    [
        (STATE.format("PREEMPTED") + LOADS, 2),
        (STATE.format("READY") + LOADS, 1),
        (STATE.format("PREEMPTED"), 1),  # the steps go on as if of another's machine
    ],
)
def test_a_rerun_behind_it(tmp_path: Path, between: str, attempts: int) -> None:
    """Steps that go on where a checkpoint was loaded are another try's."""
    (tmp_path / "train.log").write_text(steps(1, 401) + between + steps(401, 600))
    facts = collect(Request((str(tmp_path),)))
    verdict = diagnose(facts)

    assert len(facts.attempts) == attempts
    assert (verdict.code == "F2") is (attempts == 2)
    if attempts == 2:
        assert "the rerun came to step 599" in verdict.headline
