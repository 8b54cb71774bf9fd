"""
`trainer_state.json`, which transformers' Trainer keeps in every checkpoint: what it logged so far.

A file is one history from the run's beginning on, a resumed one's included, so the last of a run
holds all others.  An entry with a loss is a training point, one with an `eval_loss` an evaluation,
one with `train_runtime` the end of training.  Entries carry no time.  Where an entry speaks of
rewards or KL its loss is not meant to fall.

Refused: the same lines in anything but a list called `log_history`; what a callback added to it.

Source: `TrainerState.save_to_json` and `Trainer.log` of transformers 4.0 to 5.2, which write
sorted keys, indented by two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from flatline.model import Progress
from flatline.parsers._rules import LONGEST, count, number

FORMAT = "trainer_state"
FRAMEWORK = "transformers"
FILE = "trainer_state.json"
TRIGGERS = (
    r"\"log_history\": \[",
    r"^      \"(?:loss|step|epoch|grad_norm|learning_rate|eval_loss|reward|kl|train_runtime"
    r"|(?:objective|policy)/\w{1,40})\": ",
    r"^  \"max_steps\": [0-9]",
)
_ENTRY = re.compile(r" {6}\"([\w/]{1,60})\": (-?(?:[0-9][0-9.eE+-]{0,30}|Infinity)|NaN),?\s*$")
_PLANNED = re.compile(r"  \"max_steps\": (\d{1,12}),?\s*$")
_REWARDED = re.compile(r"^(?:reward|kl)$|^objective/|^policy/")
"""Of GRPO; of PPO, RLOO and online DPO."""


class Reader:
    """Reads one stream; knows the entry it is in."""

    def __init__(self) -> None:
        self._open = False
        self._values: dict[str, float] = {}
        self._step: int | None = None
        self._falling = True

    def feed(self, text: str) -> Iterable[Progress]:
        """What an entry says, once its step is known."""
        text = text[:LONGEST]
        if '"log_history": [' in text:
            self._open = True
        elif not self._open:
            return ()
        elif planned := _PLANNED.match(text):
            return (Progress("plan", planned=count(planned[1])),)
        elif entry := _ENTRY.match(text):
            return self._entry(entry[1], entry[2])
        return ()

    def _entry(self, name: str, said: str) -> Iterable[Progress]:
        if name == "train_runtime":
            return (Progress("finished", step=self._step),)
        if name != "step":
            if _REWARDED.search(name):
                self._falling = False
            if (value := number(said)) is not None:
                self._values[name] = value
            return ()
        self._step, values, self._values = count(said), self._values, {}
        told = []
        if "loss" in values:
            told.append(
                Progress(
                    "train",
                    self._step,
                    epoch=values.get("epoch"),
                    loss=values["loss"],
                    grad_norm=values.get("grad_norm"),
                    lr=values.get("learning_rate"),
                    falling=self._falling,
                )
            )
        if "eval_loss" in values:
            told.append(
                Progress(
                    "eval",
                    self._step,
                    epoch=values.get("epoch"),
                    loss=values["eval_loss"],
                    loss_name="eval_loss",
                    falling=self._falling,
                )
            )
        return told
