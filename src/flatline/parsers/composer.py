"""
MosaicML Composer and LLM Foundry: a heading `[batch=15/20]:`, its metrics a line each below it.

The heading is the step; the lines below give it its loss, its gradient norm, the program's own
clock and what its data took, as further points of the same step; any may stand behind a stamp or a
label.  A run planned in epochs prints `[epoch=2][batch=3/8]:`, which counts within the epoch; one
planned in tokens or samples prints those, and no step is claimed.  `[Eval batch=...]` is
evaluation.  The first loss below a heading is the training loss; what a console of many metrics
calls `loss/train/...` beside it is a part.

Refused: learning rate and samples a second; OLMo's headings (see `olmo`).

Source: `ConsoleLogger._get_progress_string` and `log_to_console` of
composer/loggers/console_logger.py, 0.12 to 0.32; `SpeedMonitor` of composer/callbacks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from flatline.model import Progress
from flatline.parsers._rules import LONGEST, NUMBER, Late, number

FORMAT = "composer"
FRAMEWORK = "composer"
TRIGGERS = (
    r"\[(step|batch)=[0-9]+/[0-9]+",
    r"\[(token|sample)=[0-9]+/[0-9]+",
    r"\[Eval batch=[0-9]+/[0-9]+\]",
    r"(Train|train/)? ?(loss/train/total|CrossEntropyLoss|CE loss)[:=] ",
    r"Train l2_norm/grad/global: ",
    r"throughput/batches_per_sec: ",
    r"Train (time|wall_clock)/(train|total): ",
    r"Train [a-z_/]{0,24}data[a-z_]{1,24}_s(ec|ecs|econds)?: ",
    r"checkpoint_saver: Checkpoint locally saved to ",
)
_HEADING = Late(
    r"(?:^|\s)(?:\[epoch=([0-9]{1,7})(?:/([0-9]{1,7}))?\])?\[(?:step|batch)=([0-9]{1,12})/"
    r"([0-9]{1,12})[^\]]{0,80}\]:?\s*$"
)
_OTHER = Late(r"(?:^|\s)\[(?:token|sample)=[0-9]{1,16}/[0-9]{1,16}\]:?\s*$")
_EVAL = Late(r"\[Eval batch=([0-9]{1,12})/([0-9]{1,12})\]")
_LOSS = Late(
    r"(?:^|\s)(?:Train )?(?:train/)?(loss/train/total|CrossEntropyLoss|CE loss)[:=] *"
    r"(" + NUMBER + ")"
)
_SAVED = Late(r"Checkpoint locally saved to \S{1,400}/ep[0-9]{1,7}-ba([0-9]{1,12})")
_RATE = Late(r"(?:^|\s)(?:Train )?throughput/batches_per_sec: *(" + NUMBER + ")")
_CLOCK = Late(r"(?:^|\s)Train (time|wall_clock)/(train|total): *(" + NUMBER + ")")
"""Hours since training began, saves between batches in them and, in the total, evaluations;
seconds before 0.16.  One of the two is kept: after an evaluation they stand apart."""
_WAITED = Late(
    r"(?:^|\s)(?:Train )?\S{0,40}\b(?:data(?:_?load(?:er|ing)?)?|batch_fetch)"
    r"(?:_(?:wait|load|fetch)\w{0,8})?(?:_time)?_s(?:ec(?:ond)?s?)?: *(" + NUMBER + ")"
)
"""What a callback of the program's own says a batch waited for its data, in seconds."""
_NORM = Late(r"(?:^|\s)Train l2_norm/grad/global: *(" + NUMBER + ")")


class Reader:
    """Reads one stream; keeps the heading its lines stand below."""

    def __init__(self) -> None:
        self._step: int | None = None
        self._below = False
        self._evaluates = False
        self._clock: str | None = None

    def feed(self, text: str) -> Iterable[Progress]:
        """At most one value a line."""
        text = text[:LONGEST]
        if "locally saved" in text and (saved := _SAVED.search(text)):
            return (Progress("checkpoint_saved", step=int(saved[1])),)
        if "olmo" not in text and (heading := _HEADING.search(text)):
            return self._heading(heading)
        if _OTHER.search(text):
            self._step, self._below, self._evaluates = None, True, False
        elif _EVAL.search(text):
            first, self._evaluates, self._below = not self._evaluates, True, False
            return (Progress("eval"),) if first else ()
        elif self._below and (loss := _LOSS.search(text)):
            self._below = False
            return (Progress("train", self._step, loss=number(loss[2]), loss_name=loss[1]),)
        elif self._step is not None and not self._evaluates:
            return self._beside(text)
        return ()

    def _beside(self, text: str) -> Iterable[Progress]:
        """What else is said of the step, a line each."""
        if norm := _NORM.search(text):
            return (Progress("train", self._step, grad_norm=number(norm[1])),)
        if clock := _CLOCK.search(text):
            self._clock = self._clock or clock[2]
            ran = number(clock[3]) if clock[2] == self._clock else None
            over = 3600.0 if clock[1] == "time" else 1.0
            return () if ran is None else (Progress("train", self._step, since_s=over * ran),)
        if waited := _WAITED.search(text):
            return (Progress("train", self._step, data_s=number(waited[1])),)
        rate = _RATE.search(text)
        value = number(rate[1]) if rate else None
        return (Progress("train", self._step, step_s=1 / value),) if value else ()

    def _heading(self, heading: re.Match[str]) -> Iterable[Progress]:
        n, of = int(heading[3]), int(heading[4])
        self._below, self._evaluates = True, False
        if heading[1] is None:
            self._step = n
            return (Progress("train", n, of),)
        epoch = int(heading[1])
        self._step = (epoch - 1) * of + n
        epochs = int(heading[2]) if heading[2] else None
        planned = epochs * of if epochs else None
        return (Progress("train", self._step, planned, float(epoch), epochs=epochs, per_epoch=of),)
