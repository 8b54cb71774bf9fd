"""
MindSpore: `epoch: 1 step: 1875, loss is 0.05`; MindFormers' `{ Epoch:[  1/  5], step:[...], ...`.

Both count epochs and the steps of an epoch from 1.  LossMonitor prints no length of an epoch, so
only the first epoch's steps are steps of the run: later ones keep their epoch alone.

Source: `LossMonitor.on_train_step_end` and `TimeMonitor` of mindspore/train/callback, and
`MFLossMonitor.print_output_info` of mindformers/core/callback/callback.py; 1.x and 2.x, of which
the later print a comma.
"""

from __future__ import annotations

from flatline.parsers._rules import RuleReader, fields, rule

FORMAT = "mindspore"
FRAMEWORK = "mindspore"
TRIGGERS = (
    r"epoch: +[0-9]+,? step: +[0-9]+, loss is ",
    r"Epoch: ?\[ *[0-9]+/ *[0-9]+\], step: ?\[ *[0-9]+/ *[0-9]+\]",
)
RULES = (
    rule("train", r"\bepoch: +(?P<epoch>1),? step: +(?P<step>[0-9]{1,12})(?=, loss is )",
         says=fields(loss=r", loss is #")),
    rule("train", r"\bepoch: +(?P<epoch>[0-9]{1,7}),? step: +[0-9]{1,12}(?=, loss is )",
         says=fields(loss=r", loss is #")),
    rule("train", r"\bEpoch: ?\[ *(?P<epoch>[0-9]{1,7})/ *(?P<epochs>[0-9]{1,7})\], "
         r"step: ?\[ *(?P<n>[0-9]{1,12})/ *(?P<of>[0-9]{1,12})\]", zero=1, unit="samples/s/NPU",
         says=fields(loss=r"(?<![\w])loss: ?\[?#", ms=r"\bper_step_time: ?#ms", lr=r"\blr: ?\[?#",
         norm=r"\bglobal_norm: ?\[?#", speed=r"\btrain_throughput_per_npu: ?#")),
)  # fmt: skip


def Reader() -> RuleReader:
    return RuleReader(RULES)
