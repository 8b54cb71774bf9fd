"""
NeMo-RL: a heading `======= Step 12/400 =======`, the step's numbers in a list below it.

    📊 Training Results:
      • Loss: -0.0026
      • Avg Reward: 0.2336
    ⏱️  Timing:
      • Total step time: 69.81s

The loss of GRPO is not meant to fall; that of `sft` and `dpo` stands under the same name, so it is
left alone too.  A list below a heading of a validation is left out.

Source: nemo_rl/algorithms/{grpo,sft,dpo}.py, NVIDIA-NeMo/RL 0.1 to 0.4.
"""

from __future__ import annotations

from collections.abc import Iterable

from flatline.model import Progress
from flatline.parsers._rules import LONGEST, NUMBER, Late, number

FORMAT = "nemo-rl"
FRAMEWORK = "nemo-rl"
ANCHORED = True
TRIGGERS = (
    r"={8,} Step [0-9]+/[0-9]+ =",
    "\u2022 (Loss|Total step time|Gradient [Nn]orm|Grad [Nn]orm): ",
    "Validation Results:",
)
_HEADING = Late(r"={8,} Step ([0-9]{1,12})/([0-9]{1,12}) ={8,}\s*$")
_BELOW = Late(
    r"\s*\u2022 (Loss|Total step time|Gradient [Nn]orm|Grad [Nn]orm): *(" + NUMBER + r")(s?)\s*$"
)


class Reader:
    """Reads one stream; keeps the step its numbers stand below."""

    def __init__(self) -> None:
        self._step: int | None = None
        self._trains = False

    def feed(self, text: str) -> Iterable[Progress]:
        """At most one value a line."""
        text = text[:LONGEST]
        if heading := _HEADING.search(text):
            self._step, self._trains = int(heading[1]), True
            return (Progress("train", self._step, int(heading[2]), falling=False),)
        if "Validation Results:" in text:
            self._trains = False
            return (Progress("eval"),)
        below = _BELOW.match(text) if self._trains else None
        if below is None or self._step is None:
            return ()
        value = number(below[2])
        if below[1] == "Loss":
            return (Progress("train", self._step, loss=value, falling=False),)
        if below[1] == "Total step time":
            return (
                (Progress("train", self._step, step_s=value, falling=False),) if below[3] else ()
            )
        return (Progress("train", self._step, grad_norm=value, falling=False),)
