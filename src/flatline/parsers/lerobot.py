"""
LeRobot: `step:400 smpl:13K ep:40 epch:1.01 loss:2.215 grdn:49.836 ... updt_s:0.504 data_s:0.083`.

Counts of a thousand and more are mostly printed rounded (`step:1K` stands for five hundred
steps), so a step is taken only where it is whole; the epoch places the others.  `updt_s` is the
update alone, so what a step took is that and the wait for its data.

Source: `MetricsTracker` of lerobot/utils/logging_utils.py, `train` of lerobot/scripts/train.py,
huggingface/lerobot.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from flatline.model import Progress
from flatline.parsers._rules import RuleReader, fields, rule

FORMAT = "lerobot"
FRAMEWORK = "LeRobot"
TRIGGERS = (
    r"step:[0-9.]+[KMB]? smpl:[0-9.]+[KMB]? ep:",
    r"Checkpoint policy after step [0-9]",
    r":[0-9]+ End of training$",
)
RULES = (
    rule(
        "train",
        r"\bstep:(?:(?P<step>[0-9]{1,12})|[0-9.]{1,9}[KMB]) smpl:\S{1,12} ep:\S{1,12}"
        r" ep(?:o)?ch:(?P<epoch>[0-9.]{1,12})",
        says=fields(
            loss=r" loss:#", norm=r" grdn:#", lr=r" lr:#", s=r" updt_s:#", data=r" data_s:#"
        ),
    ),
    rule("checkpoint_saved", r"\bCheckpoint policy after step (?P<step>[0-9]{1,12})$"),
    rule("finished", r":[0-9]{1,6} End of training$"),
)


class Reader(RuleReader):
    """Reads one stream."""

    def __init__(self) -> None:
        super().__init__(RULES)

    def feed(self, text: str) -> Iterable[Progress]:
        """At most one value a line."""
        return tuple(map(_whole, super().feed(text)))


def _whole(said: Progress) -> Progress:
    if said.step_s is None or said.data_s is None:
        return said
    return replace(said, step_s=said.step_s + said.data_s)
