"""
TD-MPC2: an episode's return, of training and of evaluations, by the environment's steps.

     train   E: 992          I: 496,000      R: 171.7        T: 9:45:23
     eval    E: 1,000        I: 500,000      R: 168.3        T: 9:47:43

The return is told as what rises; of a task that counts its successes (`S:`) these are the better
measure of evaluations.  No loss is printed here.

Source: `CONSOLE_FORMAT` and `Logger._print` of tdmpc2/common/logger.py, nicklashansen/tdmpc2.
"""

from __future__ import annotations

from flatline.model import RISING
from flatline.parsers._rules import RuleReader, fields, rule

FORMAT = "tdmpc"
FRAMEWORK = "tdmpc2"
TRIGGERS = (
    r"train   +E: [0-9][0-9,]* +I: ",
    r"eval   +E: [0-9][0-9,]* +I: ",
)
_PLACE = r"{3,14}E: [0-9,]{1,12} {1,20}I: (?P<step>[0-9][0-9,]{0,14}) "
RULES = (
    rule("train", rf"^\s*train {_PLACE}", loss_name=RISING, falling=False,
         says=fields(loss=r"\bR: #")),
    rule("eval", rf"^\s*eval {_PLACE}", loss_name="episode's return", falling=False,
         says=fields(loss=r"\bR: #")),
)  # fmt: skip


def Reader() -> RuleReader:
    return RuleReader(RULES)
