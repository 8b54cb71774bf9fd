"""A job that is told to resume, behind one that was not, and begins with a new model's loss."""

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
SET = (
    "Arguments: Namespace(config_file='conf/det_s.py', resume={}, num_gpus=4, num_machines=1,"
    " opts=['OUTPUT_DIR', '{}'])\n"
)
OUT, WRONG, OTHER = "/nfs/det_s/run4", "/nfs/det-s/run4", "/nfs/det_s_long"
COMMAND = "+ torchrun --nproc_per_node=4 fit.py --conf det_s.py {}--out {}\n"


def steps(hour: int, first: int, last: int, loss: float) -> str:
    return "".join(
        f"{DAY[:-1]} {hour:02d}:{n // 60:02d}:{n % 60:02d} step {n}"
        f" loss {loss * 0.9985 ** (n - first):.4f}\n"
        for n in range(first, last)
    )


def judged(
    folder: Path,
    *,
    before: str = SET.format(False, OUT),
    now: str = SET.format(True, WRONG),
    state: str = "TIMEOUT",
    saved: str = f"Saved checkpoint at step 900 to {OUT}/step_900\n",
    first: int = 1,
    loss: float = 6.0,
    name: str = "det_s",
) -> Verdict:
    (folder / "slurm-51.out").write_text(before + steps(8, 1, 1000, 6.1) + saved)
    (folder / "slurm-64.out").write_text(now + steps(14, first, first + 700, loss))
    (folder / "sacct.txt").write_text(
        f"{HEAD}51|det_s|ann|{state}|0:0|01:00:00|{DAY}07:50:00|{DAY}08:00:00|{DAY}09:00:00|1|n1\n"
        f"64|{name}|ann|RUNNING|0:0|08:00:00|{DAY}13:10:00|{DAY}14:00:00|Unknown|1|n1\n"
    )
    return diagnose(collect(Request((str(folder),), job="64")))


@pytest.mark.parametrize(
    ("changed", "sure"),
    [
        ({}, True),
        ({"now": SET.format(True, OUT)}, True),
        ({"now": SET.format(True, OTHER)}, False),
        ({"state": "PREEMPTED"}, True),
        ({"before": COMMAND.format("", OUT), "now": COMMAND.format("--resume ", WRONG)}, True),
        ({"before": COMMAND.format("", OUT), "now": COMMAND.format("--resume=auto ", OTHER)},
         False),
    ],
    ids=["misspelt", "the same folder", "another", "taken back", "a command", "elsewhere"],
)  # fmt: skip
def test_told_to_resume_and_begun_anew(
    tmp_path: Path, changed: dict[str, str], sure: bool
) -> None:
    """Another folder may have been meant; a misspelt one was not."""
    verdict = judged(tmp_path, **changed)  # type: ignore[arg-type]

    assert (verdict.code, verdict.resubmit) == ("E2", "fix_first")
    assert (verdict.confidence >= 0.8) == sure
    assert any("asks for a resume" in shown.text for shown in verdict.shows)
    assert all(check.ok for check in verify(json.loads(render(verdict)), (str(tmp_path),)))


@pytest.mark.parametrize(
    "changed",
    [
        {"before": SET.format(True, OUT)},
        {"now": SET.format(False, WRONG)},
        {"now": SET.format(True, OUT.replace("4", "5"))},
        {"now": SET.format(True, WRONG).replace("num_machines=1", "num_machines=1, lr=0.3"),
         "before": SET.format(False, OUT).replace("num_machines=1", "num_machines=1, lr=0.1")},
        {"state": "FAILED"},
        {"state": "CANCELLED"},
        {"saved": ""},
        {"first": 901, "loss": 1.6},
        {"loss": 1.6},
        {"name": "det_s_b"},
        {"before": COMMAND.format("", OUT),
         "now": COMMAND.format("--resume ", WRONG).replace("det_s.py", "det_l.py")},
    ],
    ids=["always asks", "does not ask", "the next of a sweep", "another rate", "failed",
         "ended by hand", "saved nothing", "went on", "weights were loaded", "another name",
         "another command"],
)  # fmt: skip
def test_near_misses(tmp_path: Path, changed: dict[str, str]) -> None:
    assert judged(tmp_path, **changed).code != "E2"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("place", "code"), [(f"{OUT}_cont", "E2"), (f"{OUT}_wide", None), (f"{OTHER}_cont", None)]
)
def test_a_folder_that_is_named_for_going_on(tmp_path: Path, place: str, code: str | None) -> None:
    """Neither prints what it was set to."""
    verdict = judged(
        tmp_path,
        before=f"checkpoints directory : {OUT}\n",
        now=f"checkpoints directory : {place}\n",
    )

    assert (verdict.code if verdict.code == "E2" else None) == code
    assert verdict.confidence < 0.8
