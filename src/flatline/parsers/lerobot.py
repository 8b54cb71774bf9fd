"""
LeRobot: `step:400 smpl:13K ep:40 epch:1.01 loss:2.215 grdn:49.836 ... updt_s:0.504 data_s:0.083`.

Counts of a thousand and more are mostly printed rounded (`step:1K` stands for five hundred
steps), so a step is taken where it is whole, or where the one that is due, at the distance of the
lines before, is printed so; the epoch places the others.  `updt_s` is the
update alone, so what a step took is that and the wait for its data.

Source: `MetricsTracker` of lerobot/utils/logging_utils.py, `format_big_number` of utils/utils.py,
`train` of scripts/train.py, huggingface/lerobot.
"""

from __future__ import annotations

import re
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
THOUSAND = 1000.0
_ROUNDED = re.compile(r"\bstep:([0-9]{1,9}[KMB]) smpl:")


class Reader(RuleReader):
    """Reads one stream."""

    def __init__(self) -> None:
        super().__init__(RULES)
        self._last: int | None = None
        self._apart: int | None = None

    def feed(self, text: str) -> Iterable[Progress]:
        """At most one value a line."""
        return tuple(self._placed(_whole(one), text) for one in super().feed(text))

    def _placed(self, said: Progress, text: str) -> Progress:
        """With the step that is due, where the line may mean it."""
        rounded = _ROUNDED.search(text)
        if said.kind != "train":
            return said
        if said.step is not None:
            self._apart = said.step - self._last if self._last is not None else None
            self._last = said.step
        elif rounded is not None and self._last is not None and self._apart is not None:
            due = self._last + self._apart
            self._last = due if self._apart > 0 and _shown(due) == rounded[1] else None
            return said if self._last is None else replace(said, step=due)
        return said


def _shown(count: int) -> str:
    """As LeRobot prints a count."""
    value = float(count)
    for suffix in ("", "K", "M"):
        if value < THOUSAND:
            return f"{value:.0f}{suffix}"
        value /= THOUSAND
    return f"{value:.0f}B"


def _whole(said: Progress) -> Progress:
    if said.step_s is None or said.data_s is None:
        return said
    return replace(said, step_s=said.step_s + said.data_s)
