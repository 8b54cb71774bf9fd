"""E2 of a run that went on from a checkpoint of which the epoch alone is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.families.resume_from_scratch import judge
from flatline.model import Cleared

BAR = (
    "Epoch {epoch}:  20%|██        | {n}/900 [{ran}<10:00, 1.00it/s, v_num=4"
    ", train_loss={loss:.3f}]"
)


@pytest.mark.parametrize(
    ("saved", "first", "cleared"), [(1, 2, True), (1, 1, False), (0, 1, False), (2, 3, True)]
)
def test_steps_of_an_epoch_in_which_none_begins_anew(
    tmp_path: Path, saved: int, first: int, *, cleared: bool
) -> None:
    """A first epoch may be 0 or 1, so that steps of epoch 1 tell nothing."""
    said = "Restored all states from the checkpoint at "
    bars = [
        BAR.format(epoch=first, n=n, ran=f"{n // 60:02d}:{n % 60:02d}", loss=2 - n / 1000)
        for n in range(181, 481)
    ]
    lines = [f"{said}/exp/ckpt/ctc--val_wer=0.11-epoch={saved}-last.ckpt", *bars]
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    told = judge(collect(Request((str(tmp_path),))))
    assert isinstance(told, Cleared) == cleared
