"""
OLMo and OLMo-core: a heading `[step=41/739328]` of its trainer, its numbers a line each below.

The heading is the step; the lines below give it its loss, gradient norm, rate and speed, as
further points of the same step.  `[eval_step=...]` and what stands below it is left out.

Source: `Trainer.log_metrics_to_console` of olmo/train.py, allenai/OLMo 0.2 to 0.6;
`ConsoleLoggerCallback` of olmo_core/train/callbacks/console_logger.py, allenai/OLMo-core 1 and 2.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flatline.model import Progress
from flatline.parsers._rules import LONGEST, NUMBER, Late, number

FORMAT = "olmo"
FRAMEWORK = "olmo"
ANCHORED = True
TRIGGERS = (
    r"olmo(_core)?\.train.{1,80}\[(eval_)?step=[0-9]+/[0-9]+",
    r"train/(CrossEntropyLoss|CE loss)=",
    r"optim/(total_grad_norm|total grad norm)=",
    r"optim/(LR|learning_rate_group0)=",
    r"throughput/device/(TPS|tokens_per_second)=",
)
_HEADING = Late(
    r"\bolmo(?:_core)?\.train[^\[\]]{1,60}[^\[]{0,40}"
    r"\[step=([0-9]{1,12})/([0-9]{1,12})(?:,epoch=([0-9]{1,7})(?:/[0-9]{1,7})?)?[^\]]{0,60}\]\s*$"
)
_OTHER = Late(r"\bolmo(?:_core)?\.train.{1,80}\[eval_step=")
_BELOW = Late(
    rf"\s*(?:(train/CrossEntropyLoss|train/CE loss)|(optim/total[_ ]grad[_ ]norm)"
    rf"|(optim/LR|optim/learning_rate_group0)|(throughput/device/(?:TPS|tokens_per_second)))"
    rf"=({NUMBER})\s*$"
)


class Reader:
    """Reads one stream; keeps the step its lines stand below."""

    def __init__(self) -> None:
        self._step: int | None = None

    def feed(self, text: str) -> Iterable[Progress]:
        """At most one value a line."""
        text = text[:LONGEST]
        if found := _HEADING.search(text):
            self._step = int(found[1])
            epoch = float(found[3]) if found[3] else None
            return (Progress("train", self._step, int(found[2]), epoch),)
        if _OTHER.search(text):
            self._step = None
        below = _BELOW.match(text) if self._step is not None else None
        if below is None:
            return ()
        value = number(below[5])
        said: dict[str, Any] = {"grad_norm": value} if below[2] else {"lr": value}
        if below[1]:
            said = {"loss": value, "loss_name": below[1].removeprefix("train/")}
        elif below[4]:
            said = {"throughput": value, "throughput_unit": "tokens/s/GPU"}
        return (Progress("train", self._step, **said),)
