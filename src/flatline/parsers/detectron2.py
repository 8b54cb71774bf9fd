"""
Detectron2 and what is built on it: `eta: 0:10:00  iter: 19  total_loss: 1.2  ...  lr: 0.0001`.

Iterations count from 0 and are printed at 19, 39 ...; `time` is the mean of a step in seconds.
Its predecessor maskrcnn-benchmark, and FCOS, ATSS and others built on that, print
`maskrcnn_benchmark.trainer INFO: eta: 9:09:41  iter: 720  loss: 0.83 (0.91)  ...  time: 0.3 (0.3)
data: 0.01 (0.02)  lr: 0.02`: the median of the last twenty, the mean in brackets.

"Starting training from iteration N" is a resume where N is above 0; at 0 it does not say that a
checkpoint was looked for.  "Overall training speed" is printed once the loop is over, by whatever
way: it is the end where no time was left before it.  A checkpoint bears the iteration it was saved
after.

Source: `CommonMetricPrinter.write`, facebookresearch/detectron2 detectron2/utils/events.py;
`do_train` of facebookresearch/maskrcnn-benchmark engine/trainer.py and utils/metric_logger.py;
`TrainerBase.train` of engine/train_loop.py; `IterationTimer.after_train` of engine/hooks.py;
`Checkpointer.save` and `PeriodicCheckpointer.step` of facebookresearch/fvcore.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from flatline.model import Progress
from flatline.parsers._rules import LONGEST, RuleReader, fields, rule

FORMAT = "detectron2"
FRAMEWORK = "detectron2"
TRIGGERS = (
    r"iter: [0-9]+ +[^\n]{0,400}loss[a-z0-9_]*: ",
    r"Starting training from iteration [0-9]",
    r"Overall training speed: [0-9]+ iterations",
    r"Saving checkpoint to [^\n]{0,400}/model_[0-9]{7}\.pth",
)
_NONE_LEFT = re.compile(r"(?:^|\s)eta: (?:0:)?00:00 +iter: ")
RULES = (
    rule(
        "train",
        r"\.trainer INFO: eta: .{1,60}?  iter: (?P<step>[0-9]{1,12})(?=  )",
        says=fields(
            loss=r"(?<![a-z_])loss: #",
            s=r"(?<![a-z_])time: #",
            data=r"(?<![a-z_])data: #",
            lr=r"(?<![a-z_])lr: #",
        ),
    ),
    rule(
        "train",
        r"(?:^|\s)iter: (?P<step>[0-9]{1,12})(?=  )",
        loss_name="total_loss",
        says=fields(
            loss=r"\btotal_loss: #",
            s=r"(?<![a-z_])time: #",
            data=r"(?<![a-z_])data_time: #",
            lr=r"(?<![a-z_])lr: #",
            norm=r"\bgrad_norm: #",
        ),
    ),
    rule("fresh", r"\bStarting training from iteration (?P<step>0)\b"),
    rule("resume", r"\bStarting training from iteration (?P<step>[0-9]{1,12})"),
    rule(
        "checkpoint_saved",
        r"\bcheckpoint\b.{0,20}: Saving checkpoint to \S{0,400}/model_(?P<step>[0-9]{7})\.pth$",
    ),
)


class Reader(RuleReader):
    """Remembers whether the last line left no time for another."""

    def __init__(self) -> None:
        super().__init__(RULES)
        self._none_left = False

    def feed(self, text: str) -> Iterable[Progress]:
        if "Overall training speed: " in text:
            return (Progress("finished"),) if self._none_left else ()
        if "iter: " in text:
            self._none_left = _NONE_LEFT.search(text[:LONGEST]) is not None
        return super().feed(text)
