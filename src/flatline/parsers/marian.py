"""
Marian: `Ep. 1 : Up. 1000 : Sen. 12,345 : Cost 5.4 * 1,234 @ 99 after 5,678 : Time 43.5s : ...`.

`Up.` counts the updates of the run, over which the cost is a mean since the line before; `Time` is
that of all of them.  `[valid]` lines are evaluations, with a loss where they measure one.  How
far it is to go is printed with its options, 0 where no end is set; it may stop sooner.

Source: `Scheduler::update` and `Scheduler::validate` of src/training/scheduler.h,
marian-nmt/marian;
`--after` of src/common/config_parser.cpp; 1.4 to 1.12.
"""

from __future__ import annotations

from flatline.parsers._rules import RuleReader, fields, rule

FORMAT = "marian"
FRAMEWORK = "marian"
TRIGGERS = (r"Ep\. [0-9.]+ : Up\. [0-9,]+ : ", r"\[config\] after(-batches|-epochs)?: ")
_PLACE = r"\bEp\. (?P<epoch>[0-9.]{1,12}) : Up\. (?P<step>[0-9,]{1,15}) : "
RULES = (
    rule("eval", r"\[valid\] " + _PLACE + r"(?=(?:cross-entropy|ce-mean\S{0,12}) : )",
         says=fields(loss=r"\b(?:cross-entropy|ce-mean\S{0,12}) : #")),
    rule("eval", r"\[valid\] " + _PLACE),
    rule("train", _PLACE + r"(?=Sen\. )", unit="words/s", loss_name="cost",
         says=fields(loss=r" : Cost #", speed=r" : # words/s", norm=r" : gNorm #",
                     lr=r" : L\.r\. #")),
    rule("config", r"\[config\] after-batches: (?P<planned>[1-9][0-9]{0,11})\s*$"),
    rule("config", r"\[config\] after-epochs: (?P<epochs>[1-9][0-9]{0,6})\s*$"),
    rule("config", r"\[config\] after: \W?(?P<planned>[1-9][0-9]{0,11})u\W?\s*$"),
    rule("config", r"\[config\] after: \W?(?P<epochs>[1-9][0-9]{0,6})e\W?\s*$"),
)  # fmt: skip


def Reader() -> RuleReader:
    return RuleReader(RULES)
