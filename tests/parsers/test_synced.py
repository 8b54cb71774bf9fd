"""Waits for other ranks that programs add to the lines of a framework."""

from __future__ import annotations

import pytest

from flatline.parsers.icefall import Reader

LINE = (
    "2026-03-10 11:27:40,335 INFO [train.py:1034] (13/16) Epoch 1, batch 1250, loss[loss=0.5375,"
    " over 21437.00 frames. ], tot_loss[loss=0.54, over 363.71 frames. ], batch size: 83,"
    " lr: 3.18e-02, time: data 0.275 {}"
)


@pytest.mark.parametrize(
    ("said", "waited"),
    [("sync 0.192", 0.192), ("sync_time: 0.192", 0.192), ("sync=0.192", 0.192),
     ("sync 192.0 ms", None), ("async 0.192", None), ("synced 3", None), ("", None)],
)  # fmt: skip
def test_seconds_of_a_step(said: str, waited: float | None) -> None:
    (point,) = Reader().feed(LINE.format(said))

    assert getattr(point, "sync_s", None) == waited
