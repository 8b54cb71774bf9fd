"""
OpenMMLab: mmengine's `Epoch(train) [1][ 50/1000]  lr: ...` and mmcv's `Epoch [1][50/1000]`.

Epochs count from 1 and iterations from 1; `Iter(train) [ 50/80000]` and mmcv's `Iter [50/80000]`
count the whole run and carry its plan.  mmcv names its plan in "workflow: [('train', 1)], max: 12
epochs"; an `eta` of nought with the last batch of an epoch shows that this was the last one, and
so does one that leaves no more than the rest of the epoch.
`(val)` and `(test)` lines, and mmcv's `Epoch(val)`, are evaluation.

Source: `LogProcessor.get_log_after_iter` and `get_log_after_epoch`, open-mmlab/mmengine
runner/log_processor.py; `find_latest_checkpoint`, runner/checkpoint.py;
`TextLoggerHook._log_info` and `EpochBasedRunner.run`, open-mmlab/mmcv 1.x runner;
`CheckpointHook` ("Saving checkpoint at 3 epochs", said before it is written, is no
proof of one).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from flatline.model import Progress
from flatline.parsers._rules import LONGEST, Late, RuleReader, fields, rule

FORMAT = "openmmlab"
FRAMEWORK = "openmmlab"
TRIGGERS = (
    r"Epoch(\(train\))? +\[ *[0-9]+\] ?\[ *[0-9]+/[0-9]+\]",
    r"Iter(?: |  +)\[ *[0-9]+/[0-9]+\]",
    r"Iter\(train\) +\[ *[0-9]+/[0-9]+\]",
    r"(Epoch|Iter)\((val|test)\) +\[",
    r"workflow: \[.*max: [0-9]+ (epochs|iters)",
    r"resumed (from )?epoch: [0-9]+, iter:? [0-9]+",
    r"Did not find last_checkpoint to be resumed",
)
_FIELDS = {
    "s": r"\btime: #",
    "loss": r"(?<![\w.])loss: #",
    "norm": r"\bgrad_norm: #",
    "lr": r"\b(?:base_)?lr: #",
    "data": r"\bdata_time: #",
}
RULES = (
    rule("eval", r"\b(?:Epoch|Iter)\((?:val|test)\) +\[", says=fields(loss=r"\b(?:val/)?loss: #")),
    rule("train", r"\bEpoch(?:\(train\))? +\[ *(?P<epochs>(?P<epoch>[0-9]{1,7}))\] ?\[ *"
         r"(?P<n>[0-9]{1,12})/(?P<of>(?P=n))\](?=.{1,200}\beta: 0:00:00\b)",
         zero=1, says=fields(**_FIELDS)),
    rule("train", r"\bEpoch(?:\(train\))? +\[ *(?P<epoch>[0-9]{1,7})\] ?\[ *(?P<n>[0-9]{1,12})/"
         r"(?P<of>[0-9]{1,12})\]", zero=1, says=fields(**_FIELDS)),
    rule("train", r"\bIter(?:\(train\))? +\[ *(?P<step>[0-9]{1,12})/(?P<planned>[0-9]{1,12})\]",
         says=fields(**_FIELDS)),
    rule("plan", r"\bworkflow: \[.{1,200}\], max: (?P<epochs>[0-9]{1,7}) epochs"),
    rule("plan", r"\bworkflow: \[.{1,200}\], max: (?P<planned>[0-9]{1,12}) iters"),
    rule("resume", r"\bresumed (?:from )?epoch: (?P<epoch>[0-9]{1,7}), iter:? "
         r"(?P<step>[0-9]{1,12})"),
    rule("fresh", r"\bDid not find last_checkpoint to be resumed"),
)  # fmt: skip


_ETA = Late(r"\beta: (?:(\d{1,4}) days?, )?(?:(\d{1,5}):)?(\d{1,2}):(\d{2})\b")
LAST_PART, ALIKE = 0.2, 3
"""Of an epoch: by so much the time that is left may say more than is left of the epoch at hand, in
so many lines one after the other, where no further epoch is to come."""


class Reader(RuleReader):
    """Knows in how many lines on end the time left was no more than the epoch's."""

    def __init__(self) -> None:
        super().__init__(RULES)
        self._alike = 0

    def feed(self, text: str) -> Iterable[Progress]:
        """At most one value a line."""
        return tuple(self._last(said, text) for said in super().feed(text))

    def _last(self, said: Progress, text: str) -> Progress:
        """With the plan, where by its `eta` the run ends with this epoch."""
        of, epoch, eta = said.per_epoch, said.epoch, _ETA.search(text[:LONGEST])
        if said.kind != "train" or not of or not epoch or not said.step_s or eta is None:
            return said
        days, hours, minutes, seconds = (int(part or 0) for part in eta.groups())
        left = (86400 * days + 3600 * hours + 60 * minutes + seconds) / said.step_s
        rest = epoch * of - (said.step or 0)
        self._alike = self._alike + 1 if abs(left - rest) <= LAST_PART * of else 0
        if said.planned is not None or self._alike < ALIKE:
            return said
        return replace(said, planned=int(epoch) * of, epochs=epoch)
