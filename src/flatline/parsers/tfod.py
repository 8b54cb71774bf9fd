"""
TensorFlow 2's Object Detection API: a step's line, and its losses in a dict of several lines.

    INFO:tensorflow:Step 100 per-step time 0.303s
    INFO:tensorflow:{'Loss/classification_loss': 0.42,
     'Loss/total_loss': 0.87,
     'learning_rate': 0.0133}

Read is the total, with the step that was said above it.  `Step 100 per-step time 0.303s
loss=0.870`, which earlier versions print, is read as any loop's line is.

Source: `eager_train_step` and `train_loop` of research/object_detection/model_lib_v2.py,
tensorflow/models.
"""

from __future__ import annotations

from collections.abc import Iterable

from flatline.model import Progress
from flatline.parsers._rules import NUMBER, Late, number

FORMAT = "tfod"
FRAMEWORK = "tensorflow"
TRIGGERS = (r"Step [0-9]+ per-step time [0-9.]+s$", r"'Loss/total_loss': ")
_STEP = Late(r"\bStep ([0-9]{1,12}) per-step time ([0-9.]{1,12})s\s*$")
_TOTAL = Late(rf"'Loss/total_loss': ({NUMBER})")


class Reader:
    """Reads one stream; holds the step whose losses come below."""

    def __init__(self) -> None:
        self._step: tuple[int, float | None] | None = None

    def feed(self, text: str) -> Iterable[Progress]:
        """One point for each dict."""
        if found := _STEP.search(text[-200:]):
            self._step = int(found[1]), number(found[2])
        elif self._step is not None and (total := _TOTAL.search(text)):
            (step, seconds), self._step = self._step, None
            return (Progress("train", step, loss=number(total[1]), loss_name="total_loss",
                             step_s=seconds),)  # fmt: skip
        return ()
