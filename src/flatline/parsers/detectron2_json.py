"""
`metrics.json` of detectron2 and what is built on it: what it logged, a JSON object a line.

Its keys are sorted, iterations count from 0, `time` is the median of the last twenty, in seconds.
`eta_seconds` is nought with the last iteration alone.  Lines without a loss are evaluations'.  A
run that is resumed appends to its file.

Source: `JSONWriter.write`, facebookresearch/detectron2 detectron2/utils/events.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from flatline.model import Progress
from flatline.parsers._rules import RuleReader, fields, rule

FORMAT = "detectron2_json"
FRAMEWORK = "detectron2"
FILE = re.compile(r"(?:^|/)metrics\.json$")
TRIGGERS = (r"\"iteration\": [0-9]+[,}]",)
_LAST = re.compile(r"\"eta_seconds\": 0(?:\.0)?[,}]")
RULES = (
    rule(
        "train",
        r"^(?=\{.{0,3000}\"(?:total_)?loss\": )",
        loss_name="total_loss",
        says=fields(
            step=r"\"iteration\": #",
            loss=r"\"(?:total_)?loss\": #",
            s=r"\"time\": #",
            data=r"\"data_time\": #",
            lr=r"\"lr\": #",
            norm=r"\"grad_norm\": #",
        ),
    ),
)


class Reader:
    """Reads one stream."""

    def __init__(self) -> None:
        self._rules = RuleReader(RULES)

    def feed(self, text: str) -> Iterable[Progress]:
        """A step, and that it was the last one."""
        for said in self._rules.feed(text):
            yield said
            if _LAST.search(text):
                yield Progress("plan", planned=said.step)
