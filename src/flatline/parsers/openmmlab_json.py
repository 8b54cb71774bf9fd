"""
What OpenMMLab keeps of its steps, a JSON object a line: mmcv's `<time>.log.json`, mmengine's
`vis_data/scalars.json` and `vis_data/<time>.json`.

mmcv writes `{"mode": "train", "epoch": 1, "iter": 50, ...`, with iterations of the epoch or, of a
runner that counts no epochs, of the run; the last of an epoch may be left out, so that a step is
known to a line's distance.  mmengine ends a line with the `step` of the whole run.  `time` and
`data_time` are means of a step in seconds.  Lines without a loss are evaluations'.

Source: `TextLoggerHook._dump_log`, open-mmlab/mmcv 1.x runner/hooks/logger/text.py;
`LocalVisBackend.add_scalars`, open-mmlab/mmengine visualization/vis_backend.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from flatline.model import Progress
from flatline.parsers._rules import RuleReader, fields, rule

FORMAT = "openmmlab_json"
FRAMEWORK = "openmmlab"
FILE = re.compile(r"(?:^|/)(?:[^/]+\.log|vis_data/[^/]+)\.json$")
TRIGGERS = (
    r"^\{\"mode\": \"(?:train|val)\", \"epoch\": [0-9]+, \"iter\": [0-9]+",
    r"\"step\": [0-9]+\}",
)
_FIELDS = {
    "loss": r"\"loss\": #",
    "s": r"\"time\": #",
    "data": r"\"data_time\": #",
    "lr": r"\"(?:base_)?lr\": #",
    "norm": r"\"grad_norm\": #",
}
RULES = (
    rule("eval", r"^\{\"mode\": \"val\"", says=fields(loss=r"\"loss\": #")),
    rule("train", r"^\{\"mode\": \"train\", \"epoch\": [0-9]+, \"iter\": (?P<step>[0-9]{1,12}),",
         says=fields(**_FIELDS)),
    rule("train", r"^(?=\{.{0,3000}\"loss\": )(?=.{0,3000}\"iter\": )"
         r"(?=.{0,3000}\"step\": (?P<step>[0-9]{1,12})\})",
         says=fields(**_FIELDS)),
)  # fmt: skip


class Reader:
    """Reads one stream; counts on where an epoch begins its count anew."""

    def __init__(self) -> None:
        self._rules = RuleReader(RULES)
        self._last = self._base = 0

    def feed(self, text: str) -> Iterable[Progress]:
        """A step of the whole run, or an evaluation."""
        for said in self._rules.feed(text):
            if said.step is None:
                yield said
                continue
            self._base += self._last if said.step <= self._last else 0
            self._last = said.step
            yield replace(said, step=self._base + said.step)
