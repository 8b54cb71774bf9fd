"""
OpenMMLab: mmengine's `Epoch(train) [1][ 50/1000]  lr: ...` and mmcv's `Epoch [1][50/1000]`.

Epochs count from 1 and iterations from 1; `Iter(train) [ 50/80000]` and mmcv's `Iter [50/80000]`
count the whole run and carry its plan.  mmcv names its plan in "workflow: [('train', 1)], max: 12
epochs"; an `eta` of nought with the last batch of an epoch shows that this was the last one.
`(val)` and `(test)` lines, and mmcv's `Epoch(val)`, are evaluation.

Source: `LogProcessor.get_log_after_iter` and `get_log_after_epoch`, open-mmlab/mmengine
runner/log_processor.py; `find_latest_checkpoint`, runner/checkpoint.py;
`TextLoggerHook._log_info` and `EpochBasedRunner.run`, open-mmlab/mmcv 1.x runner;
`CheckpointHook` ("Saving checkpoint at 3 epochs", said before it is written, is no
proof of one).
"""

from __future__ import annotations

from flatline.parsers._rules import RuleReader, fields, rule

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


def Reader() -> RuleReader:
    return RuleReader(RULES)
