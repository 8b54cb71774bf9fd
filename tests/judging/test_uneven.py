"""Runs that lost time in some of their steps, and are not surely sound."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

BEGAN = datetime(2026, 4, 2, 8, tzinfo=UTC)
STEPS, USUAL_S = 960, 3.0
STYLES = {
    "in whole seconds": "{at:.19} INFO step {step}/960 loss {loss:.3f}",
    "by the clock": "{at} INFO step {step}/960 loss {loss:.3f}",
    "dated and printed": "{at} step {step}/960 loss {loss:.3f} step_time {took:.3f}s",
    "printed": "step {step}/960 loss {loss:.3f} step_time {took:.3f}s",
    "throughput": "step {step}/960 loss {loss:.3f} tokens/s: {speed:.1f}",
}
Took = Callable[[int, float], float]
"""(step, seconds since the beginning) -> seconds."""
LATE = set(random.Random(5).sample(range(20, STEPS), 58))
SOUND, UNROUND = (lambda step, at: USUAL_S), (lambda step, at: 0.44 * USUAL_S)
LOSING: dict[str, Took] = {
    "short spells": lambda step, at: USUAL_S * (2 if at % 60 < 12 else 1),
    "single steps": lambda step, at: USUAL_S * (4 if step in LATE else 1),
    "every twelfth": lambda step, at: USUAL_S * (1 if step % 12 else 2),
    "a few pauses": lambda step, at: USUAL_S + (70 if step in (200, 390, 710) else 0),
    "up and down": lambda step, at: USUAL_S * (1 + (step % 120) / 480),
    "falling": lambda step, at: USUAL_S / (1 - 0.1 * step / STEPS),
    "from the middle": lambda step, at: USUAL_S * (1.06 if step > 500 else 1),
}


def verdict(
    folder: Path, style: str, took: Took, *, noise: float = 0.01, saves: int = 0
) -> Verdict:
    """A run that ended well on one host, beside the power of its GPU."""
    rand, at, lines = random.Random(1), 0.0, []
    for step in range(1, STEPS + 1):
        seconds = took(step, at) * rand.lognormvariate(0, noise) + (20 if step == 1 else 0)
        if saves and step % saves == 0:
            seconds += 15
            lines.append(f"Saving model checkpoint to /out/checkpoint-{step}")
        at += seconds
        stamp = f"{BEGAN + timedelta(seconds=at):%F %T,%f}"[:-3]
        loss, speed = 2 + 7 / (1 + step / 90), 4e5 / seconds
        line = STYLES[style].format(at=stamp, step=step, took=seconds, loss=loss, speed=speed)
        lines.append(line)
    (folder / "train.log").write_text("\n".join(lines) + "\ntraining done\n")
    ended = BEGAN + timedelta(seconds=at + 5)
    (folder / "sacct.txt").write_text(
        "JobID|State|ExitCode|Start|End|NNodes|NodeList\n"
        f"77|COMPLETED|0:0|{BEGAN:%FT%T}|{ended:%FT%T}|1|n1\n"
    )
    times = range(int(BEGAN.timestamp()), int(ended.timestamp()), 30)
    (folder / "metrics.prom").write_text("# TYPE DCGM_FI_DEV_POWER_USAGE gauge\n" + "".join(
        f'DCGM_FI_DEV_POWER_USAGE{{gpu="0",UUID="GPU-0",Hostname="n1"}} 640 {at * 1000}\n'
        for at in times
    ))  # fmt: skip
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("took", LOSING.values(), ids=LOSING)
def test_time_that_was_lost_is_told(tmp_path: Path, style: str, took: Took) -> None:
    found = verdict(tmp_path, style, took)

    assert found.state == "healthy"
    assert found.confidence < 0.8


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("took", [SOUND, UNROUND], ids=["3 s", "1.3 s"])
@pytest.mark.parametrize(("noise", "saves"), [(0.01, 0), (0.1, 0), (0.01, 100)])
def test_noise_and_saves_are_none(
    tmp_path: Path, style: str, took: Took, noise: float, saves: int
) -> None:
    found = verdict(tmp_path, style, took, noise=noise, saves=saves)

    assert found.state == "healthy"
    assert found.confidence >= 0.8
