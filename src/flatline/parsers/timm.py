"""
timm's training script: `Train: 0 [ 50/1251 (  4%)]  Loss: 6.9 (6.9)  Time: 0.52s, ...`.

Epochs count from 0, updates from 0; older versions print no percentage's blank and put the loss in
the other order.  "Scheduled epochs: N" is the plan.  A `Test:` line is evaluation, and the summary
`*** Best metric` ends the run.  The wait for a batch is part of its time.

Source: `train_one_epoch`, `validate` and `main` of train.py, huggingface/pytorch-image-models,
0.4 to 1.0.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from flatline.model import Progress
from flatline.parsers._rules import RuleReader, fields, rule

FORMAT = "timm"
FRAMEWORK = "timm"
TRIGGERS = (
    r"Train: [0-9]+ \[ *[0-9]+/[0-9]+ +\(",
    r"Test(?: \(EMA\))?: \[ *[0-9]+/[0-9]+\] +Time: ",
    r"Scheduled epochs: [0-9]",
    r"\*\*\* Best metric: ",
    r"Loaded checkpoint '[^']+' \(epoch [0-9]+\)",
)
RULES = (
    rule(
        "train",
        r"\bTrain: (?P<epoch>[0-9]{1,7}) \[ *(?P<n>[0-9]{1,12})/ *(?P<of>[0-9]{1,12}) +\(",
        unit="images/s",
        says=fields(
            loss=r"\bLoss: +#",
            s=r"\bTime: +#s",
            speed=r"\bTime: [^/]{1,40}?, +#/s",
            lr=r"\bLR: #",
            data=r"\bData: +#",
        ),
    ),
    rule(
        "eval",
        r"\bTest(?: \(EMA\))?: \[ *[0-9]+/[0-9]+\] +Time: ",
        says=fields(loss=r"\bLoss: +#"),
    ),
    rule("plan", r"\bScheduled epochs: (?P<epochs>[0-9]{1,7})"),
    rule("finished", r"\*\*\* Best metric: <#> \(epoch (?P<epoch>[0-9]{1,7})\)"),
    rule("checkpoint_loaded", r"Loaded checkpoint '[^']{1,400}' \(epoch (?P<epoch>[0-9]{1,7})\)"),
)


class Reader(RuleReader):
    """Reads one stream."""

    def __init__(self) -> None:
        super().__init__(RULES)

    def feed(self, text: str) -> Iterable[Progress]:
        """At most one value a line."""
        return tuple(map(_within, super().feed(text)))


def _within(said: Progress) -> Progress:
    if said.step_s is None or said.data_s is None:
        return said
    return replace(said, data_s=min(said.data_s, said.step_s))
