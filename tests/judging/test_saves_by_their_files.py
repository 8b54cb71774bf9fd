"""What saves take by the lines that a library dates of their files."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

BEGAN = datetime(2026, 4, 24, 4, 40, tzinfo=UTC)
ENDED = (
    "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-04-24T08:00:00 DUE TO TIME LIMIT ***\n"
)


def line(second: float, said: str) -> str:
    at = f"{BEGAN + timedelta(seconds=second):%Y-%m-%d %H:%M:%S}"
    return f"[INFO|trainer.py:3801] {at},000 >> {said}\n"


def log(save_s: float, *, last: bool = True) -> str:
    """Thirty times ten steps of 6 s, and a save behind each."""
    text, second = "", 0.0
    for n in range(1, 31):
        second += 60
        elapsed = timedelta(seconds=int(second))
        text += f"  {n}%|#   | {10 * n}/3000 [{elapsed}<9:00:00,  6.00s/it]\n"
        text += f"{{'loss': {3 * 0.98**n:.4f}, 'learning_rate': 1e-05, 'epoch': {n / 100:.2f}}}\n"
        text += line(second, f"Saving model checkpoint to /out/checkpoint-{10 * n}")
        second += save_s
        text += line(second, f"config file saved in /out/checkpoint-{10 * n}/c.json") * last
    return text + ENDED


@pytest.mark.parametrize(
    ("text", "code"),
    [(log(240), "D2"), (log(3), None), (log(240, last=False), None)],
    ids=["most of the time", "hardly any", "none says when it had ended"],
)
def test_saves_behind_every_line_of_steps(tmp_path: Path, text: str, code: str | None) -> None:
    """No step is without one: only the dates of their files tell what they take."""
    (tmp_path / "train.log").write_text(text)
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code == "D2") is (code == "D2")
