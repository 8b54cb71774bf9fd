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


def log(save_s: float, *, last: bool = True, files_s: float | None = None) -> str:
    """Thirty times ten steps of 6 s, and a save behind each, of which the files that are told of
    may be but a part, and whose time is in the average of the bar."""
    text, second = "", 0.0
    for n in range(1, 31):
        second += 60
        elapsed = timedelta(seconds=int(second))
        each = 6.0 if files_s is None else second / n / 10
        text += f"  {n}%|#   | {10 * n}/3000 [{elapsed}<9:00:00,  {each:.2f}s/it]\n"
        text += f"{{'loss': {3 * 0.98**n:.4f}, 'learning_rate': 1e-05, 'epoch': {n / 100:.2f}}}\n"
        text += line(second, f"Saving model checkpoint to /out/checkpoint-{10 * n}")
        told = save_s if files_s is None else files_s
        text += line(second + told, f"config file saved in /out/checkpoint-{10 * n}/c.json") * last
        second += save_s
        if files_s is not None:
            text += line(second, "Deleting older checkpoint [/out/checkpoint-1] due to args")
    return text + ENDED


@pytest.mark.parametrize(
    ("text", "code"),
    [(log(240), "D2"), (log(3), None), (log(240, last=False), None),
     (log(70, files_s=4), "D2"), (log(3, files_s=1), None)],
    ids=["most of the time", "hardly any", "none says when it had ended",
         "by what is done behind it", "hardly any by that"],
)  # fmt: skip
def test_saves_behind_every_line_of_steps(tmp_path: Path, text: str, code: str | None) -> None:
    """No step is without one: only the dates of their files tell what they take."""
    (tmp_path / "train.log").write_text(text)
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code == "D2") is (code == "D2")


@pytest.mark.parametrize(("save_s", "code"), [(70, "D2"), (3, None)])
def test_in_a_zone_that_other_lines_tell(tmp_path: Path, save_s: float, code: str | None) -> None:
    """The record's times are local, and an hour away."""
    (tmp_path / "train.log").write_text(log(save_s, files_s=1).replace(ENDED, ""))
    second = 30 * (60 + save_s)
    began, ended = BEGAN + timedelta(hours=1), BEGAN + timedelta(hours=1, seconds=second)
    (tmp_path / "sacct.psv").write_text(
        "JobID|State|ExitCode|Start|End|NNodes|NodeList\n"
        f"7|TIMEOUT|0:0|{began:%Y-%m-%dT%H:%M:%S}|{ended:%Y-%m-%dT%H:%M:%S}|1|n1\n"
    )
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code == "D2") is (code == "D2")
