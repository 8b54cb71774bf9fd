"""A service that saves as it is stopped, and looks in vain there when it is begun again."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

UNIT = "Apr 02 {at} box3 {who}: "
SAVES = "got SIGTERM, saving checkpoint /srv/f/ckpt/epoch=8-last.ckpt"
LOOKS = "/srv/f/ckpt: no usable checkpoint (0 files match best_*.pt), initialising weights"


def epochs(hour: int, last: int, loss: float = 0.8) -> list[str]:
    """Five minutes and 900 batches each."""
    return [
        UNIT.format(at=f"{hour:02d}:{5 * n + 5:02d}:03", who="tft[77]") + f"Epoch {n}: 100%|"
        f"██████████| 900/900 [04:58<00:00,  3.0it/s, train_loss={loss * 0.9**n:.4f}]"
        for n in range(last)
    ]


def judged(folder: Path, last: int = 9, saves: str = SAVES, looks: str = LOOKS) -> Verdict:
    lines = [
        UNIT.format(at="08:00:00", who="systemd[1]") + "Started forecasts.",
        *epochs(8, last),
        UNIT.format(at="08:47:00", who="systemd[1]") + "Stopping forecasts...",
        UNIT.format(at="08:47:01", who="tft[77]") + saves,
        UNIT.format(at="08:47:04", who="systemd[1]") + "Stopped forecasts.",
        UNIT.format(at="08:59:00", who="systemd[1]") + "Started forecasts.",
        UNIT.format(at="08:59:03", who="tft[77]") + looks,
        *epochs(9, 4),
    ]
    (folder / "journal.txt").write_text("\n".join(lines) + "\n")
    return diagnose(collect(Request((str(folder),))))


def test_what_it_saved_was_not_found(tmp_path: Path) -> None:
    """It need not have said whether it found one the first time."""
    verdict = judged(tmp_path)
    assert verdict.code == "E2"
    assert verdict.confidence < 0.8
    assert "had come to epoch 9" in verdict.headline


@pytest.mark.parametrize(
    "told",
    [
        {"saves": SAVES.replace("ckpt/epoch", "other/epoch")},
        {"saves": "got SIGTERM, leaving without a checkpoint in /srv/f/ckpt/"},
        {"looks": "initialising weights"},
        {"last": 1},
    ],
    ids=["another folder", "nothing saved", "looked for none", "in its first epoch"],
)
def test_near_misses(tmp_path: Path, told: dict[str, object]) -> None:
    assert judged(tmp_path, **told).code != "E2"  # type: ignore[arg-type]
