"""What a shell shows below a run that found no checkpoint and began anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

NONE = "No checkpoint found in /ck/lm1, starting from scratch"
ROW = "2026-03-0{day} 08:{n:02d}:00 step {step}/90000 loss {loss:.3f}\n"
LISTED = "ckpt_0030000  ckpt_0031000  latest.tmp\n"


def row(step: int, day: int = 4, plan: int = 90000) -> str:
    return ROW.format(day=day, n=step % 60, step=step, loss=9 - step / 9000).replace(
        "90000", str(plan)
    )


def judged(folder: Path, shell: str, said: str = NONE, head: str = "") -> Verdict:
    steps = "".join(row(step) for step in range(1, 50))
    (folder / "train.log").write_text(f"{head}{said}\n{steps}{shell}")
    return diagnose(collect(Request((str(folder),))))


def test_checkpoints_in_the_folder_it_looked_in(tmp_path: Path) -> None:
    """They are of steps to which this run has not come."""
    verdict = judged(tmp_path, f"^C\n(env) ann@login:~$ ls -t /ck/lm1/\n{LISTED}")

    assert verdict.code == "E2"
    assert verdict.confidence < 0.8


@pytest.mark.parametrize(
    "shell",
    [f"$ ls /ck/lm2\n{LISTED}", f"$ ls /ck/lm1/old\n{LISTED}", "$ ls /ck/lm1\nckpt_0000040\n",
     f"$ ls /ck/lm1\nlatest.tmp\n$ ls /ck/lm2\n{LISTED}"],
    ids=["another folder", "one within it", "those it saved itself", "the next command's"],
)  # fmt: skip
def test_checkpoints_that_are_no_others(tmp_path: Path, shell: str) -> None:
    assert judged(tmp_path, shell).code != "E2"


def test_one_that_did_not_look(tmp_path: Path) -> None:
    assert judged(tmp_path, f"$ ls /ck/lm1\n{LISTED}", said="model: lm1").code != "E2"


def test_the_log_of_an_earlier_run(tmp_path: Path) -> None:
    """By its date; whose it is, a shell does not say."""
    verdict = judged(tmp_path, f"$ grep step ../a.log | tail -1\n{row(31000, day=3)}")

    assert verdict.code == "E2"
    assert verdict.confidence < 0.8


@pytest.mark.parametrize(
    "shell",
    [f"$ tail -1 ../a.log\n{row(31000, day=5)}", f"$ tail -1 ../a.log\n{row(31000, 3, 40000)}",
     f"$ tail -1 out/train.log\n{row(31000, day=3)}", f"$ tail -1 ../a.log\n{row(60, day=3)}"],
    ids=["made later", "of another length", "of this very log", "no farther"],
)  # fmt: skip
def test_a_log_that_shows_no_earlier_run(tmp_path: Path, shell: str) -> None:
    assert judged(tmp_path, shell).code != "E2"


@pytest.mark.parametrize(("head", "code"), [("SLURM_RESTART_COUNT=2\n", "E2"), ("", None)])
def test_a_log_without_dates(tmp_path: Path, head: str, code: str | None) -> None:
    """It is of an earlier run where the scheduler had started the job again."""
    steps = "".join(row(step)[20:] for step in (*range(1, 50), 31000))
    begun, _, shown = steps.rpartition("step ")
    text = f"{head}{NONE}\n{begun}$ tail -1 ../a.log\nstep {shown}"
    (tmp_path / "train.log").write_text(text)

    assert diagnose(collect(Request((str(tmp_path),)))).code == code


def test_the_folder_in_which_deepspeed_looked_for_a_name(tmp_path: Path) -> None:
    said = (
        "[2026-03-04 08:00:00,120] [WARNING] [engine.py:2732:load_checkpoint] Unable to find"
        " latest file at {}/latest, if trying to load latest checkpoint please ensure this file"
        " exists or pass an explicit checkpoint tag when loading a checkpoint."
    )
    shown = "> ls /ck/lm1\nglobal_step31000  global_step30000\n"

    assert judged(tmp_path, shown, said.format("/ck/lm1")).code == "E2"
    assert judged(tmp_path, shown, said.format("/ck/lm2")).code != "E2"
