"""A job that begins as the one before it had, set alike, though that had left a checkpoint."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict
from flatline.render.json import render
from flatline.verify import verify

DAY = "2026-03-04T"
HEAD = "JobID|JobName|User|State|ExitCode|Timelimit|Submit|Start|End|NNodes|NodeList\n"
COMMAND = "+ torchrun --nproc_per_node=8 fit.py conf/b16.yaml --lr 3e-4 --seed 11\n"
SAVED = "Saved checkpoint at step 900 to /ckpt/b16/step_900\n"


def steps(hour: int, first: int, last: int, loss: float, plan: int) -> str:
    """Of a model that learns from `loss` on."""
    return "".join(
        f"{DAY[:-1]} {hour:02d}:{n // 60:02d}:{n % 60:02d} step {n}/{plan}"
        f" loss {loss * 0.9985 ** (n - first):.4f}\n"
        for n in range(first, last)
    )


def judged(
    folder: Path,
    *,
    state: str = "TIMEOUT",
    id: str = "733",
    before: str = COMMAND,
    now: str = COMMAND,
    saved: str = SAVED,
    said: str = "",
    first: int = 1,
    loss: float = 6.0,
    plan: int = 3000,
    nodes: int = 1,
    name: str = "b16",
    limit: str = "01:00:00",
    submitted: str = "09:10:00",
    other: str = "",
    saves: str = "",
    end: str = "09:00:00",
) -> Verdict:
    """A job of one hour that came to step 999, and the next one of its name."""
    folder.mkdir(exist_ok=True)
    (folder / "slurm-700.out").write_text(before + steps(8, 1, 1000, 6.1, 3000) + saved)
    (folder / f"slurm-{id}.out").write_text(now + said + steps(10, first, 900, loss, plan) + saves)
    (folder / "sacct.txt").write_text(
        f"{HEAD}700|{name}|ann|{state}|0:0|01:00:00|{DAY}07:50:00|{DAY}08:00:00|{DAY}{end}|1|n1\n"
        f"{other}"
        f"{id}|{name}|ann|RUNNING|0:0|{limit}|{DAY}{submitted}|{DAY}10:00:00|Unknown|{nodes}|n1\n"
    )
    return diagnose(collect(Request((str(folder),), job=id)))


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"state": "PREEMPTED"},
        {"state": "COMPLETED", "saved": SAVED.replace("900", "999") + "exiting program at"
         " iteration 999\n", "end": "08:50:00"},
        {"now": COMMAND.replace("seed 11", "seed 12")},
        {"before": COMMAND + "out: /runs/700\n", "now": COMMAND + "out: /runs/733\n",
         "saved": SAVED.replace("b16/", "700/"),
         "saves": SAVED.replace("b16/step_900", "733/step_800")},
        {"before": "num_layers: 24\n", "now": "num_layers: 24\n"},
        {"limit": "2-00:00:00", "name": "b16_cont"},
    ],
    ids=["cut off", "taken back", "left of itself", "another seed at once",
         "folders of their own ids", "settings alone", "more time, by a name that goes on"],
)  # fmt: skip
def test_no_line_says_that_it_looked_for_a_checkpoint(
    tmp_path: Path, changed: dict[str, str]
) -> None:
    """Its loss is a new model's; whether that was meant nobody says."""
    verdict = judged(tmp_path, **changed)  # type: ignore[arg-type]

    assert (verdict.code, verdict.resubmit) == ("E2", "fix_first")
    assert verdict.confidence < 0.8
    assert any("The loss began at 6;" in shown.text for shown in verdict.shows)
    assert all(check.ok for check in verify(json.loads(render(verdict)), (str(tmp_path),)))


BESIDE = f"720|b16|ann|COMPLETED|0:0|01:00:00|{DAY}07:50:00|{DAY}08:30:00|{DAY}09:20:00|1|n2\n"


@pytest.mark.parametrize(
    "changed",
    [
        {"state": "FAILED"},
        {"state": "CANCELLED"},
        {"state": "COMPLETED", "end": "08:50:00"},
        {"saved": ""},
        {"now": COMMAND.replace("3e-4", "1e-4")},
        {"now": COMMAND.replace("b16.yaml", "l16.yaml")},
        {"before": "", "now": ""},
        {"now": COMMAND.replace("seed 11", "seed 12"), "submitted": "07:52:00"},
        {"saves": SAVED.replace("b16/step_900", "b16-warm/step_800")},
        {"state": "COMPLETED", "saved": SAVED.replace("900", "999") + "exiting program at"
         " iteration 999\n", "end": "08:50:00",
         "said": "No checkpoint found in /ckpt/again, starting from scratch\n"},
        {"plan": 1000},
        {"first": 901, "loss": 1.6},
        {"loss": 1.6},
        {"nodes": 2},
        {"limit": "2-00:00:00"},
        {"other": BESIDE},
        {"submitted": "09:59:00", "said": "Resuming from checkpoint /ckpt/b16/step_900\n",
         "first": 901, "loss": 1.6},
    ],
    ids=["failed", "ended by hand", "done", "saved nothing", "another rate", "another model",
         "nothing tells how it is set", "a seed of a sweep", "saves elsewhere", "looked elsewhere",
         "another plan", "went on", "of a model that was loaded", "another shape", "time enough",
         "one beside it", "says that it goes on"],
)  # fmt: skip
def test_another_run_of_that_name(tmp_path: Path, changed: dict[str, object]) -> None:
    """Or one that goes on, or had nothing to go on from."""
    assert judged(tmp_path, **changed).code != "E2"  # type: ignore[arg-type]


def epochs(hour: int, first: int, loss: float, folder: str) -> str:
    """Four of WeNet's, each of which is saved."""
    lines = []
    for n in range(80):
        epoch, at = first + n // 20, f"{DAY[:-1]} {hour:02d}:{n // 2:02d}:{n % 2 * 30:02d},100"
        lines.append(f"{at} DEBUG TRAIN Batch {epoch}/{n % 20 * 100} loss {loss - n / 200:.6f}"
                     " lr 0.00001000 grad_norm 1.3 rank 0")  # fmt: skip
        if n % 20 == 19:
            lines.append(f"{at} INFO [Rank 0] Checkpoint: save to checkpoint"
                         f" {folder}/epoch_{epoch}_whole.pt")  # fmt: skip
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("first", "folder", "before", "again"),
    [
        (60, "/exp/tts", "", True),
        (60, "/exp/tts-b", "", False),
        (0, "/exp/tts", "", False),
        (60, "/exp/tts", COMMAND.replace("3e-4", "1e-4"), False),
    ],
    ids=["saves over it", "saves elsewhere", "not cut", "by another command"],
)
def test_what_was_before_in_a_log_without_its_head(
    tmp_path: Path, first: int, folder: str, before: str, again: bool
) -> None:
    """By what command that was nobody knows; it saved where this one saves."""
    judged(tmp_path)
    (tmp_path / "slurm-700.out").write_text(before + epochs(8, first, 2.5, "/exp/tts"))
    (tmp_path / "slurm-733.out").write_text(COMMAND + epochs(10, 0, 5.9, folder))
    verdict = diagnose(collect(Request((str(tmp_path),), job="733")))

    assert (verdict.code == "E2") is again
    assert verdict.confidence < 0.8


def test_tasks_of_one_array(tmp_path: Path) -> None:
    """Each is a run of its own, also where they run one by one."""
    folder = tmp_path / "a"
    judged(folder, id="700_2")
    record = (folder / "sacct.txt").read_text().replace("\n700|", "\n700_1|")
    (folder / "sacct.txt").write_text(record)
    (folder / "slurm-700.out").rename(folder / "slurm-700_1.out")

    assert diagnose(collect(Request((str(folder),), job="700_2"))).code != "E2"


def test_the_one_before_it_made_all_its_steps(tmp_path: Path) -> None:
    """Its script was cut off behind them."""
    verdict = judged(tmp_path, plan=999)
    log = tmp_path / "slurm-700.out"
    log.write_text(log.read_text().replace("/3000", "/999"))
    assert verdict.code != "E2"

    assert diagnose(collect(Request((str(tmp_path),), job="733"))).code != "E2"
