"""Runs that print no loss, and what they measure of their model instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict


def judged(folder: Path, lines: list[str]) -> Verdict:
    (folder / "train.log").write_text("\n".join([*lines, ""]))
    return diagnose(collect(Request((str(folder),))))


def epochs(rewards: dict[int, float]) -> list[str]:
    lines = []
    for n in range(1, 81):
        fps = (
            f"fps step: {9000 + n} fps step and policy inference: {7000 + n} fps total: {4000 + n}"
        )
        lines.append(f"{fps} epoch: {n}/80 frames: {n * 2048}")
        if n in rewards:
            lines.append(f"saving next best rewards:  [{rewards[n]}]")
            lines.append(
                f"=> saving checkpoint 'runs/Hop/nn/last_Hop_ep_{n}_rew_{rewards[n]}.pth'"
            )
    return [*lines, "MAX EPOCHS NUM!"]


def ticks(distances: list[float], end: list[str]) -> list[str]:
    lines = ["Training for 480 kimg...", ""]
    for n in range(121):
        tick = f"tick {n:<5d} kimg {4.0 * n:<8.1f} time {n}m 00s       sec/tick 60.1    "
        lines.append(f"{tick}sec/kimg {15 + n % 3 / 100:<7.2f} maintenance 0.1    cpumem 5.1 ")
        if n % 40 == 0:
            key = f'"fid50k_full": {distances[n // 40]}'
            lines.append(f'{{"results": {{{key}}}, "metric": "fid50k_full", "num_gpus": 2}}')
    return [*lines, *end]


def rounds(first: float, last: float, name: str = "auc") -> list[str]:
    values = [first + (last - first) * (n / 60) ** 0.5 for n in range(61)]
    return [f"[{n}]\ttrain-{name}:{value:.5f}\teval-{name}:{value - 0.01:.5f}"
            for n, value in enumerate(values)]  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "state"),
    [
        (epochs({10: 12.5, 30: 88.0, 75: 140.25}), "healthy"),
        (epochs({10: 12.5, 30: 88.0, 75: 140.25})[:-4], "undetermined"),  # it does not end
        (epochs({10: 12.5, 20: 13.0, 30: 88.0}), "undetermined"),  # what it was since is not told
        (epochs({10: 12.5, 75: 88.0}), "undetermined"),
        (epochs({}), "undetermined"),
        (ticks([310.5, 120.0, 44.1, 22.9], ["", "Exiting..."]), "healthy"),
        (ticks([310.5, 44.1, 22.9, 280.0], ["", "Exiting..."]), "undetermined"),  # it collapsed
        (ticks([310.5, 120.0, 44.1, 22.9], ["Aborting...", "", "Exiting..."]), "undetermined"),
        (["Exiting..."], "undetermined"),
        ([*rounds(0.5, 0.93), "best_iteration: 52, best_score: 0.91"], "healthy"),
        ([*rounds(0.5, 0.93), "Stopping. Best iteration:"], "healthy"),
        ([*rounds(0.93, 0.5), "Stopping. Best iteration:"], "undetermined"),
        ([*rounds(0.5, 0.505), "Stopping. Best iteration:"], "undetermined"),
        ([*rounds(0.5, 0.93, "error"), "Stopping. Best iteration:"], "undetermined"),
    ],
)  # fmt: skip
def test_what_became_better(tmp_path: Path, lines: list[str], state: str) -> None:
    """It says of a run that came to its end that it learnt, as a loss that falls would."""
    verdict = judged(tmp_path, lines)

    assert verdict.state == state
    assert verdict.confidence < 0.8


def monitored(name: str, *values: float, steps: int = 20) -> list[str]:
    """Lightning's, of a model that prints no loss beside its bar."""
    lines = []
    for epoch, value in enumerate(values):
        lines += [f"Epoch {epoch}: {n * 100 // steps:3d}%|x| {n}/{steps} [00:{n:02d}<00:10, "
                  " 1.00it/s, v_num=0]" for n in range(1, steps + 1)]  # fmt: skip
        lines.append(
            f"Epoch {epoch}, global step {steps * (epoch + 1)}: '{name}' reached {value:.5f}"
            f" (best {value:.5f}), saving model to '/c/e{epoch}.ckpt' as top 2"
        )
    return [*lines, f"`Trainer.fit` stopped: `max_epochs={len(values)}` reached."]


@pytest.mark.parametrize(
    ("lines", "state"),
    [
        (monitored("val_cer", 0.62, 0.3), "healthy"),
        (monitored("val_wer", 0.62, 0.55), "undetermined"),  # by chance
        (monitored("val_wer", 0.3, 0.62), "undetermined"),
        (monitored("val_wer", 0.3), "undetermined"),
        (monitored("val_acc", 0.1, 0.2), "undetermined"),  # a guess may be as good
        (monitored("val_acc", 0.1, 0.4, 0.6), "healthy"),
        (monitored("val_speed", 0.62, 0.3), "undetermined"),
        (monitored("train_wer", 0.62, 0.3), "undetermined"),
    ],
    ids=["fell by half", "fell a little", "rose", "one", "rose, of two", "rose, of three",
         "of another kind", "not held out"],
)  # fmt: skip
def test_what_a_checkpoint_callback_monitors(tmp_path: Path, lines: list[str], state: str) -> None:
    """Of two values only an error that fell far tells that it learnt."""
    assert judged(tmp_path, lines).state == state
