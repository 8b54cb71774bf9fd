"""
NequIP's end: `! Stop training: max epochs`.

Its tables are read by their headings.  The first versions said `for eaching`; other reasons than
the planned number of epochs are its own rules for an early stop, and what they watch may have
gone wrong.

Source: `Trainer.final_log` and `stop_cond` of nequip/train/trainer.py, mir-group/nequip, to 0.6.
"""

from __future__ import annotations

from flatline.parsers._rules import RuleReader, rule

FORMAT = "nequip"
FRAMEWORK = "NequIP"
TRIGGERS = (r"! Stop training(:| for)",)
RULES = (rule("finished", r"(?:^|\s)! Stop training(?:: | for \w{1,8}ing )max epochs\s*$"),)


def Reader() -> RuleReader:
    return RuleReader(RULES)
