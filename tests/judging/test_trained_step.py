"""A job that failed by a step, or a script, beside or behind the step that trained."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import RecordCite, Verdict

BEGAN = datetime(2026, 5, 5, 5, tzinfo=UTC)
HEADER = "JobID|JobName|State|ExitCode|Start|End|Elapsed|NNodes|NodeList\n"
CODES = {"COMPLETED": "0:0", "FAILED": "1:0", "OUT_OF_MEMORY": "0:125"}
LONG_MIN = 62


def row(of: str, name: str, state: str, first_min: float, until_min: float) -> str:
    begins, ends = (BEGAN + timedelta(minutes=at) for at in (first_min, until_min))
    return f"{of}|{name}|{state}|{CODES[state]}|{begins:%FT%T}|{ends:%FT%T}|01:00:00|1|ux17\n"


def trainer(state: str = "COMPLETED", first_min: float = 0, until_min: float = 60) -> str:
    return row("20771.0", "train", state, first_min, until_min)


def side(state: str = "OUT_OF_MEMORY", first_min: float = 0.2, until_min: float = 31) -> str:
    return row("20771.1", "tensorboard", state, first_min, until_min)


def after(state: str = "FAILED", first_min: float = 60) -> str:
    return row("20771.1", "eval", state, first_min, LONG_MIN)


BATCH = row("20771.batch", "batch", "FAILED", 0, LONG_MIN)


def log(last: str = "Training complete", *, dated: bool = True) -> str:
    """A step of 119 every half minute."""
    lines = []
    for n in range(1, 120):
        at = BEGAN + timedelta(seconds=30 * n)
        stamp = f"{at:%F %T} INFO " if dated else ""
        lines.append(f"{stamp}step {n}/119 loss {4 - n / 50:.3f}")
    return "\n".join([*lines, last]) + "\n"


def metrics() -> str:
    """A card at work for as long as the steps are."""
    dice, lines = random.Random(3), ["# TYPE DCGM_FI_DEV_POWER_USAGE gauge\n"]
    for at in range(0, LONG_MIN * 60, 15):
        works = 30 < at < 59.5 * 60
        for metric, value in (
            ("DCGM_FI_DEV_POWER_USAGE", dice.gauss(600, 9) if works else 90.0),
            ("DCGM_FI_PROF_SM_ACTIVE", dice.gauss(0.8, 0.01) if works else 0.0),
        ):
            stamp = int(BEGAN.timestamp() + at) * 1000
            lines.append(f'{metric}{{gpu="0",UUID="GPU-1",Hostname="ux17"}} {value} {stamp}\n')
    return "".join(lines)


def judged(folder: Path, state: str, *steps: str, text: str) -> Verdict:
    job = row("20771", "det", state, 0, LONG_MIN)
    (folder / "sacct.txt").write_text(HEADER + job + "".join(steps))
    (folder / "slurm-20771.out").write_text(text)
    (folder / "metrics.prom").write_text(metrics())
    return diagnose(collect(Request((str(folder),), job="20771")))


@pytest.mark.parametrize("dated", [True, False])
@pytest.mark.parametrize("state", ["OUT_OF_MEMORY", "FAILED"])
def test_a_step_that_failed_beside_the_one_that_trained(
    tmp_path: Path, state: str, dated: bool
) -> None:
    """The job has its state; the step that trained completed, and the program says so."""
    verdict = judged(tmp_path, state, trainer(), side(state), text=log(dated=dated))
    cited = {c.text for one in verdict.shows for c in one.cites if isinstance(c, RecordCite)}

    assert (verdict.code, verdict.state) == ("G1", "healthy")
    assert "step 1 (tensorboard) failed beside it" in verdict.headline
    assert verdict.confidence >= 0.8
    assert {text.split()[0] for text in cited} == {"JobID=20771", "JobID=20771.0", "JobID=20771.1"}


def test_a_script_that_failed_behind_the_step_that_trained(tmp_path: Path) -> None:
    """What failed in it nothing tells: it is not sure."""
    verdict = judged(tmp_path, "FAILED", trainer(), BATCH, text=log())

    assert verdict.code == "G1"
    assert "its script failed behind it" in verdict.headline
    assert verdict.confidence < 0.8
    assert any("failed in its script" in one for one in verdict.cannot_decide)


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        pytest.param([trainer(), after()], log(), id="a-later-step"),
        pytest.param([trainer(), after(first_min=61), BATCH], log(), id="and-its-script"),
        pytest.param([trainer(), side(), after()], log(), id="a-later-step-and-one-beside"),
        pytest.param([trainer("FAILED"), side("COMPLETED"), BATCH], log(), id="the-trainer"),
        pytest.param([trainer("FAILED"), side("FAILED")], log(), id="the-trainer-and-one-beside"),
        pytest.param([trainer(), side()], log(last=""), id="not-said-to-be-done"),
        pytest.param([trainer(), BATCH], log(last=""), id="a-script-not-said-to-be-done"),
        pytest.param([trainer(until_min=20), side("FAILED", 0.2, 60)], log(), id="points-behind"),
        pytest.param([trainer(first_min=20), side("FAILED", 20, 60)], log(), id="points-before"),
        pytest.param([trainer(until_min=20), side("FAILED", 0.2, 60)], log(dated=False),
                     id="undated-and-short"),
        pytest.param([trainer()], log(), id="nothing-else-failed"),
        pytest.param([BATCH], log(), id="no-step-of-its-own"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("state", ["FAILED", "OUT_OF_MEMORY"])
def test_near_misses(tmp_path: Path, state: str, steps: list[str], text: str) -> None:
    """Another part of the work failed, or nothing says that it was the step that trained."""
    assert judged(tmp_path, state, *steps, text=text).state != "healthy"
