"""
PaxML: `[PAX STATUS] step_i: 100, training loss: 6.36`.

Source: `Trainer` loop of paxml/train.py and programs.py, google/paxml 1.0 to 1.4; the bracket is
followed by a colon in most versions.
"""

from __future__ import annotations

from flatline.parsers._rules import RuleReader, fields, rule

FORMAT = "paxml"
FRAMEWORK = "paxml"
TRIGGERS = (r"\[PAX STATUS\]:? +step_i: [0-9]",)
RULES = (
    rule(
        "train",
        r"\[PAX STATUS\]:? +step_i: (?P<step>[0-9]{1,12})",
        says=fields(loss=r"training loss: #"),
    ),
)


def Reader() -> RuleReader:
    return RuleReader(RULES)
