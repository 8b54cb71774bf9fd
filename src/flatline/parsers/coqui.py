"""
Coqui TTS and Mozilla TTS: `--> STEP: 24/639 -- GLOBAL_STEP: 25`, its numbers a line each below.

Of the numbers (`| > loss: 0.8 (0.9)`) the first is the step's, the one in brackets the mean; the
loss, gradient norm and time are read.  Of a GAN (VITS), which prints no loss of the whole, that of
its generator or of the spectrogram is, whichever stands first.  A heading without a global step is
that of an evaluation, and what stands below it is left out.

Source: `ConsoleLogger` of trainer/logging/console_logger.py, coqui-ai/Trainer; of
TTS/utils/console_logger.py, mozilla/TTS.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flatline.model import Progress
from flatline.parsers._rules import LONGEST, NUMBER, Late, number

FORMAT = "coqui"
FRAMEWORK = "coqui-tts"
ANCHORED = True
TRIGGERS = (
    r"--> (TIME: [^\n]{0,40} -- )?STEP: [0-9]+",
    r"\| > (loss|total_loss|loss_1|loss_mel|grad_norm|step_time): ",
)
_HEADING = Late(
    r"--> (?:TIME: [0-9 :.-]{1,30} -- )?STEP: [0-9]{1,12}(?:/[0-9]{1,12})?"
    r"(?: -- GLOBAL_STEP: ([0-9]{1,12}))?\s*$"
)
_BELOW = Late(rf"\s*\| > (loss|total_loss|loss_1|loss_mel|grad_norm|step_time): +({NUMBER}) ")
_NAMES = {"grad_norm": "grad_norm", "step_time": "step_s"}


class Reader:
    """Reads one stream; keeps the step its numbers stand below."""

    def __init__(self) -> None:
        self._step: int | None = None
        self._loss: str | None = None

    def feed(self, text: str) -> Iterable[Progress]:
        """At most one value a line."""
        text = text[:LONGEST]
        if found := _HEADING.search(text):
            self._step = int(found[1]) if found[1] else None
            return () if self._step is None else (Progress("train", self._step),)
        below = _BELOW.match(text) if self._step is not None else None
        if below is None:
            return ()
        said: dict[str, Any] = {_NAMES.get(below[1], "loss"): number(below[2])}
        if "loss" in said:
            self._loss = self._loss or below[1]
            if below[1] != self._loss:
                return ()
            said["loss_name"] = below[1]
        return (Progress("train", self._step, **said),)
