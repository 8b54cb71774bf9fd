"""The clock that a progress bar prints: what lies between steps is in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.judging.by_steps import Spent
from flatline.judging.by_work import started_s
from flatline.judging.own_clock import own_clock
from flatline.model import NOWHERE, Progress, Verdict
from flatline.parsers._bars import shown_s
from flatline.tracks import Track

STEPS, EVERY = 400, 20
RECORD = "JobID|JobName|State|ExitCode|Start|End|NodeList\n77|sft|COMPLETED|0:0|{}|{}|gpu1\n"


def shown(seconds: float) -> str:
    hours, rest = divmod(int(seconds), 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else (
        f"{rest // 60:02d}:{rest % 60:02d}")  # fmt: skip


def run(folder: Path, pause_s: float, step_s: float = 4.0, said: bool = True) -> Verdict:
    """A bar of steps that took alike, with a pause after every twentieth of which a line may say
    that it saves."""
    at, lines = 0.0, [f"  Total optimization steps = {STEPS}"]
    for step in range(1, STEPS + 1):
        at += step_s
        lines.append(f" 10%|#         | {step}/{STEPS} [{shown(at)}<10:00,  {step_s:.2f}s/it]")
        lines.append(f"{{'loss': {2 + 40 / step:.4f}, 'learning_rate': 1e-05, 'epoch': 0.1}}")
        if step % EVERY == 0:
            at += pause_s
            lines += [f"Saving model checkpoint to /out/checkpoint-{step}"] * said
    lines.append("Training completed. Do not forget to share your model on huggingface.co/models")
    (folder / "train.log").write_text("\n".join(lines) + "\n")
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize(("pause_s", "step_s"), [(50.0, 4.0), (9.0, 0.4)])
def test_saves_that_take_a_third_of_the_time(
    tmp_path: Path, pause_s: float, step_s: float
) -> None:
    """No line is dated and no record read; a step may be shorter than the clock's second."""
    verdict = run(tmp_path, pause_s, step_s)

    assert (verdict.code, verdict.fault_class) == ("D2", "checkpoint-storm")


def test_saves_that_take_little_are_none(tmp_path: Path) -> None:
    """A twentieth of the time."""
    assert run(tmp_path, 4.0).code == "G1"


def test_pauses_of_which_nothing_is_said_leave_doubt(tmp_path: Path) -> None:
    """They may be evaluations."""
    verdict = run(tmp_path, 50.0, said=False)

    assert verdict.code == "G1"
    assert any("no step accounts for" in line for line in verdict.cannot_decide)


def track(rows: list[tuple[int, float | None]], step_s: float = 1.0) -> Track:
    out = Track("job.log", NOWHERE, None, "tqdm")
    for line, (step, since_s) in enumerate(rows, 1):
        out.add(Progress("train", step=step, step_s=step_s, since_s=since_s), line, None, 0)
    return out


def test_steps_are_spread_between_whole_seconds_and_pauses_kept() -> None:
    """Five steps a second, one of them followed by nine seconds of something else."""
    rows = [(n, float(n // 5 + (9 if n > 50 else 0))) for n in range(1, 101)]
    made = track(rows, 0.2)
    times = own_clock(made, range(len(made)))
    took = [times[i] - times[i - 1] for i in range(1, 100)]

    assert max(took) == took[49] == pytest.approx(9, abs=0.3)
    assert all(0.1 < one < 0.4 for n, one in enumerate(took) if abs(n - 49) > 4)


@pytest.mark.parametrize(
    "rows",
    [
        [(n, 60.0) for n in range(1, 101)],
        [(n, float(n % 50)) for n in range(1, 101)],
        [(n % 50, float(n)) for n in range(1, 101)],
        [(n, float(n) if n < 50 else None) for n in range(1, 101)],
    ],
)
def test_what_is_no_clock_of_the_run(rows: list[tuple[int, float | None]]) -> None:
    """One that stands still, one of a bar an epoch, steps counted anew, one that is cut off."""
    made = track(rows)

    assert own_clock(made, range(len(made))) == {}


@pytest.mark.parametrize(
    ("text", "seconds"), [("00:07", 7), ("59:58", 3598), ("101:02:03", 363723), ("?", None)]
)
def test_what_a_bar_says_it_has_run(text: str, seconds: float | None) -> None:
    assert shown_s(text) == seconds


def test_what_ran_before_the_first_steps_is_not_laid_on_work() -> None:
    """A bar begins with loading and compiling, while no GPU works."""
    track = Track("train.log", NOWHERE, None, "tqdm")
    for n, since in ((2, 164.0), (4, 178.0), (6, 193.0)):
        track.add(Progress("train", step=n, step_s=7.0, since_s=since), n, None, 0)
    by_clock = Spent((0, 1, 2), (164.0, 178.0, 193.0), seconds=True, clocked=True)

    assert started_s(track, by_clock) == 150.0
    assert started_s(track, Spent((0, 1, 2), (14.0, 28.0, 42.0), seconds=True)) == 0.0
