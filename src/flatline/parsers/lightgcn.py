"""
LightGCN and its kin: `EPOCH[3/1000] loss0.412-|Sample:0.35|`.

An epoch is all that is counted; its loss is the mean over it, and no sign stands between name and
number.

Source: code/main.py and `BPR_train_original` of code/Procedure.py, gusye1234/LightGCN-PyTorch.
"""

from __future__ import annotations

from flatline.parsers._rules import RuleReader, fields, rule

FORMAT = "lightgcn"
FRAMEWORK = None
TRIGGERS = (r"EPOCH\[[0-9]+/[0-9]+\] ",)
RULES = (
    rule("train", r"\bEPOCH\[(?P<epoch>[0-9]{1,7})/(?P<epochs>[0-9]{1,7})\] {1,4}(?=loss)",
         says=fields(loss=r"\bloss[ :=]{0,3}#")),
)  # fmt: skip


def Reader() -> RuleReader:
    return RuleReader(RULES)
