"""
modded-nanogpt: `step:125/1770 val_loss:4.61 train_time:14266ms step_avg:114.13ms`.

Most lines tell a time, of all steps and their mean, and no loss.  Every so many steps that of
held-out text is measured, which is the run's loss where no other is printed: no text of training
is seen twice, so the two fall alike.
Who goes by a budget of time says so as it stops: `stopping_early: wallclock_cap train_time:...`.

Source: train_gpt.py of KellerJordan/modded-nanogpt, and what was made from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from flatline.model import Progress
from flatline.parsers._rules import RuleReader, fields, rule

FORMAT = "modded_nanogpt"
FRAMEWORK = "modded-nanogpt"
TRIGGERS = (r"train_time:[0-9]",)
_STEP = r"(?<![\w:])step:(?P<step>[0-9]{1,12})/(?P<planned>[0-9]{1,12}) "
_TIMES = r"train_time:[0-9.]{1,16}m?s"
RULES = (
    rule("eval", _STEP + rf"(?=val_loss:\S{{1,24}} .{{0,80}}?{_TIMES})", loss_name="val_loss",
         says=fields(loss=r"\bval_loss:#")),
    rule("train", _STEP + rf"(?=(?:train_loss:\S{{1,24}} )?{_TIMES})", loss_name="train_loss",
         says=fields(loss=r"\btrain_loss:#")),
    rule("finished", rf"^stopping_early: wallclock_cap {_TIMES} step:(?P<step>[0-9]{{1,12}})/"),
)  # fmt: skip


class Reader:
    """Knows whether a training loss is printed."""

    def __init__(self) -> None:
        self._rules = RuleReader(RULES)
        self._trained = False

    def feed(self, text: str) -> Iterable[Progress]:
        """A point of training, an evaluation, or one for the other."""
        for said in self._rules.feed(text):
            self._trained |= said.kind == "train" and said.loss is not None
            alone = said.kind == "eval" and not self._trained
            yield replace(said, kind="train") if alone else said
