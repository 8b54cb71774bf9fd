"""
nnU-Net: `2023-01-01 10:00:00.12: Epoch 3`, its losses in lines of their own below.

The losses are means over the epoch, a cross-entropy and a Dice term that falls towards -1; 250
batches, the epoch of nnU-Net, are one point and give no step.

Source: `nnUNetTrainer.on_epoch_end` of nnunetv2/training/nnUNetTrainer/nnUNetTrainer.py and
`NetworkTrainer.run_training` of nnunet/training/network_training/network_trainer.py,
MIC-DKFZ/nnUNet 1.6 to 2.5.
"""

from __future__ import annotations

from collections.abc import Iterable

from flatline.model import Progress
from flatline.parsers._rules import LONGEST, NUMBER, Late, number

FORMAT = "nnunet"
FRAMEWORK = "nnunet"
TRIGGERS = (
    r": Epoch [0-9]+ *$",
    r"epoch:  [0-9]+ *$",
    r": (train_loss|val_loss) ",
    r": (train|validation) loss ?: ",
    r"no checkpoint available to continue from",
)
_EPOCH = Late(r"^(?:[0-9 :.-]{10,30}: Epoch |(?:[0-9 :.-]{10,30}: ?)?\s?epoch:  )([0-9]{1,7})\s*$")
_LOSS = Late(
    r"^[0-9 :.-]{10,30}: (?:(train_loss|train loss :)|val_loss|validation loss:) ("
    + NUMBER
    + r")\s*$"
)
_ANEW = Late(
    r"^(?:WARNING: )?Cannot continue training because there seems to be no checkpoint available to"
    r" continue from\. Starting a new training"
)
"""What it says where `--c` asked it to continue."""


class Reader:
    """Reads one stream; keeps the epoch its losses belong to."""

    def __init__(self) -> None:
        self._epoch: float | None = None

    def feed(self, text: str) -> Iterable[Progress]:
        """At most one value a line."""
        text = text[:LONGEST]
        if found := _EPOCH.match(text):
            self._epoch = float(found[1])
            return ()
        if _ANEW.match(text):
            return (Progress("fresh"),)
        loss = _LOSS.match(text) if self._epoch is not None else None
        if loss is None:
            return ()
        if loss[1]:
            return (Progress("train", epoch=self._epoch, loss=number(loss[2])),)
        return (Progress("eval", epoch=self._epoch, loss=number(loss[2])),)
