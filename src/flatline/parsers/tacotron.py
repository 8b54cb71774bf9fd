"""
Tacotron 2: `Train loss 123 0.512 Grad Norm 1.21 2.21s/it`, the first number the iteration.

Source: `train` and `validate` of train.py, NVIDIA/tacotron2, and the many copies of it.
"""

from __future__ import annotations

from flatline.parsers._rules import RuleReader, rule

FORMAT = "tacotron"
FRAMEWORK = "tacotron2"
ANCHORED = True
TRIGGERS = (r"Train loss [0-9]+ [-0-9a-z.]+ Grad Norm ", r"Validation loss [0-9]+: ")
RULES = (
    rule("train", r"\bTrain loss (?P<step>[0-9]{1,12}) (?P<loss><#>) Grad Norm (?P<norm><#>) "
         r"(?P<s><#>)s/it"),
    rule("eval", r"^\s*Validation loss (?P<step>[0-9]{1,12}): {1,4}(?P<loss><#>)\s*$"),
)  # fmt: skip


def Reader() -> RuleReader:
    return RuleReader(RULES)
