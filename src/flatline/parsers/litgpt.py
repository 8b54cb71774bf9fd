"""
LitGPT: `Final evaluation | val loss: 1.267 | val ppl: 3.550` behind the last step.

Its steps are read by `plain`.  What is measured before and between the steps is told in other
words; this one alone comes once the loop is done.

Source: litgpt/pretrain.py and litgpt/finetune/*.py, Lightning-AI/litgpt.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from flatline.model import Progress
from flatline.parsers._rules import RuleReader, fields, rule

FORMAT = "litgpt"
FRAMEWORK = "LitGPT"
TRIGGERS = (r"Final evaluation \| val loss: ",)
RULES = (
    rule("eval", r"(?:^|\s)Final evaluation \| val loss: (?=[^|]{1,80}\| val ppl: )",
         loss_name="val loss", says=fields(loss=r"(?<=val loss: )#")),
)  # fmt: skip


class Reader:
    """An evaluation that is the end as well."""

    def __init__(self) -> None:
        self._rules = RuleReader(RULES)

    def feed(self, text: str) -> Iterable[Progress]:
        """Both, or nothing."""
        for said in self._rules.feed(text):
            yield said
            yield replace(said, kind="finished", loss=None)
