"""
DGL-KE: `[proc 0][Train](1000/100000) average loss: 0.56`, a line for each of its numbers.

Every process prints its own count, at its own pace; process 0 speaks for the run.  Of its lines
the mean loss is read, which is that of the positive and the negative samples together.

Source: `train` of python/dglke/train_pytorch.py, awslabs/dgl-ke 0.1 to 0.2.
"""

from __future__ import annotations

from flatline.parsers._rules import RuleReader, fields, rule

FORMAT = "dglke"
FRAMEWORK = "dgl-ke"
TRIGGERS = (r"\[proc 0\]\[Train\]\([0-9]+/[0-9]+\) average ",)
RULES = (
    rule("train", r"\[proc 0\]\[Train\]\((?P<step>[0-9]{1,12})/(?P<planned>[0-9]{1,12})\) average "
         r"(?=loss: )", says=fields(loss=r"loss: #")),
)  # fmt: skip


def Reader() -> RuleReader:
    return RuleReader(RULES)
