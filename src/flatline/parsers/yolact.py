"""
YOLACT's training script: `[  1]  2240 || B: 5.4 | C: 3.7 | M: 6.8 | S: 1.5 | T: 17.6 || ETA: ...`.

Iterations count over the whole run; T is the sum of the parts, each a mean over the last hundred
iterations, and `timer` the seconds of the last one.

Source: `train` of train.py, dbolya/yolact.
"""

from __future__ import annotations

from flatline.parsers._rules import RuleReader, fields, rule

FORMAT = "yolact"
FRAMEWORK = "YOLACT"
TRIGGERS = (r"[ -?] \|\| [@-_]: ",)
RULES = (
    rule(
        "train",
        r"\[ *(?P<epoch>[0-9]{1,7})\] +(?P<step>[0-9]{1,12}) \|\| [A-Z]: ",
        says=fields(loss=r"\| T: #", s=r"\|\| timer: #"),
    ),
)


def Reader() -> RuleReader:
    return RuleReader(RULES)
