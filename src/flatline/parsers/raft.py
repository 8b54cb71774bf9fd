"""
RAFT and its kin: `[   100,  0.0000352]     0.2547,     0.2925,     0.3002,     8.9030, `.

The step and its learning rate, and means over the steps since the line before: how much of the
flow is off by less than one, three and five pixels, and the end-point error, which is told as the
loss.  Lines with other numbers in them are of another loop.

Source: `Logger._print_training_status` of train.py and `sequence_loss`, princeton-vl/RAFT, and
princeton-vl/RAFT-Stereo.
"""

from __future__ import annotations

from flatline.parsers._rules import RuleReader, rule

FORMAT = "raft"
FRAMEWORK = None
TRIGGERS = (r",  0\.0[0-9]{6}\] ",)
_SHARE = r"(?:[01]\.[0-9]{4}|nan), {1,12}"
RULES = (
    rule("train", r"(?:^|\s)\[ {0,5}(?P<step>[0-9]{1,12}), {1,4}(?P<lr>0\.0[0-9]{6})\] {1,12}"
         + _SHARE * 3 + r"(?P<loss>[0-9]{1,9}\.[0-9]{4}|nan|inf),\s*$", loss_name="epe"),
)  # fmt: skip


def Reader() -> RuleReader:
    return RuleReader(RULES)
