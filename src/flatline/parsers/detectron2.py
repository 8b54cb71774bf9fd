"""
Detectron2 and what is built on it: `eta: 0:10:00  iter: 19  total_loss: 1.2  ...  lr: 0.0001`.

Iterations count from 0 and are printed at 19, 39 ...; `time` is the mean of a step in seconds.
"Starting training from iteration N" is a resume where N is above 0; "Overall training speed" is
printed once the loop is over, by whatever way, and counts as the end only of what it counted.

Source: `CommonMetricPrinter.write`, facebookresearch/detectron2 detectron2/utils/events.py;
`TrainerBase.train` of engine/train_loop.py; `IterationTimer.after_train` of engine/hooks.py.
"""

from __future__ import annotations

from flatline.parsers._rules import RuleReader, fields, rule

FORMAT = "detectron2"
FRAMEWORK = "detectron2"
TRIGGERS = (
    r"iter: [0-9]+ +[^\n]{0,400}loss[a-z0-9_]*: ",
    r"Starting training from iteration [0-9]",
)
RULES = (
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
    rule("fresh", r"\bStarting training from iteration 0\b"),
    rule("resume", r"\bStarting training from iteration (?P<step>[0-9]{1,12})"),
)


def Reader() -> RuleReader:
    return RuleReader(RULES)
