"""Late parts of runs whose loss falls no more, of models that are good by their own measure."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

DICE = random.Random(5)


def verdict(folder: Path, lines: list[str]) -> Verdict:
    (folder / "train.log").write_text("\n".join(lines) + "\n")
    return diagnose(collect(Request((str(folder),))))


def nnunet(level: float, rise: float = 0.0, noise: float = 0.01) -> list[str]:
    lines = []
    for n in range(40):
        stamp = f"2025-05-06 {7 + n // 30:02d}:{2 * n % 60:02d}:"
        loss = level + rise * n / 40 + DICE.uniform(-noise, noise)
        lines += [f"{stamp}00.100000: Epoch {300 + n}",
                  f"{stamp}58.200000: train_loss {loss:.4f}",
                  f"{stamp}58.300000: Epoch time: 58.10 s"]  # fmt: skip
    return [*lines, "2025-05-06 08:40:00.100000: Training done."]


def clip(top1: str | None, level: float = 1.4) -> list[str]:
    lines = [
        f"2024-02-03,04:{n:02d}:05 | INFO | Train Epoch: 21 [{n * 65536:8d}/2621440"
        f" ({5 * n // 2}%)]"
        f" Data (t): 0.050 Batch (t): 0.611, 6700.1/s LR: 0.000021 Logit Scale: 99.91"
        f" Loss: {level + DICE.uniform(-0.05, 0.05):.5f} (1.40110)"
        for n in range(40)
    ]
    said = f" imagenet-zeroshot-val-top1: {top1}\timagenet-zeroshot-val-top5: 0.61" if top1 else ""
    head = "2024-02-03,04:41:00 | INFO |"
    return [*lines, f"{head} Eval Epoch: 22{said}", f"{head} Final remote sync successful."]


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (nnunet(-0.82), "G1"),
        (nnunet(-0.12), None),
        (nnunet(-0.82, rise=0.2), None),
        (nnunet(-0.82)[:-1], None),
        (clip("0.3912"), "G1"),
        (clip("0.0011"), None),
        (clip(None), None),
        (clip("0.3912")[:-1], None),
    ],
    ids=["most is found", "little is found", "it rises", "no end", "classes are told apart",
         "by chance", "not evaluated", "no end of it"],
)  # fmt: skip
def test_a_loss_that_falls_no_more(tmp_path: Path, lines: list[str], code: str | None) -> None:
    told = verdict(tmp_path, lines)

    assert (told.code == "G1") is (code == "G1")
    assert told.confidence < 0.8
    assert code is None or "still learnt" in str(told.cannot_decide)
