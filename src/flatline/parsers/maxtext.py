"""
MaxText and its forks: `completed step: N, seconds: S, ..., loss: L`.

Guaranteed: the step line is read in any order of its fields, with or without MFU, throughput or
loss, and NaN, inf and negative losses are kept.  Steps count from 0, so the last of `steps=N` is
N-1: that line is followed by `finished`, the only sign of an end that MaxText prints.  Where the
settings were not printed, so is a checkpoint of that very step: saves are made each so many steps,
counted from 0, and at the end, so one right before a round number, after the last step printed and
no other such, is the end's.

Refused: "checkpoint manager exists so trying to load", an attempt; "Started an asynchronous
checkpoint save", a beginning.

Source: `metric_logger`, `checkpointing` and `pyconfig` of AI-Hypercomputer/maxtext, 2023 to 2026.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from flatline.model import Progress

FORMAT = "maxtext"
FRAMEWORK = "maxtext"
TRIGGERS = (
    r"completed step: [0-9]+, ",
    r"eval (metrics|summary) after step: [0-9]+",
    r"average loss after step[: ]+[0-9]+",
    r"Config param steps: [0-9]+",
    r"MaxText[^\n]{0,400} steps=[0-9]+",
    r"restoring from this run's directory (latest )?step",
    r"No existing checkpoints found, not restoring",
    r"[Ss]aved a checkpoint at step [0-9]+",
    r"absl:Restoring checkpoint from \S+/[0-9]+",
)

_STEP = re.compile(r"\bcompleted step: ([0-9]{1,12}), ")
_FIELD = re.compile(r"([A-Za-z_/]+): ([^\s,]+)")
_EVAL = re.compile(
    r"\b(?:eval (?:metrics|summary)|average loss) after step[: ]+([0-9]{1,12})"
    r"[:,].*?(?:avg_|eval_)?loss[=:] ?([^\s,]+)"
)
_PLAN = re.compile(
    r"\bConfig param steps: ([0-9]{1,12})\b|\bMaxText\S{0,40} [^\n]{0,400} steps=([0-9]{1,12})\b"
)
"""As it prints its settings, and on its command line."""
_RESTORE = re.compile(r"restoring from this run's directory (?:latest )?step +([0-9]{1,12})")
_SAVED = re.compile(r"aved a checkpoint at step ([0-9]{1,12})")
_AGAIN = re.compile(r"absl:Restoring checkpoint from \S{1,400}/([0-9]{1,12})(?:/\w{1,40})?\.?\s*$")
"""Orbax's, below MaxText, where the program was started again and writes on into its log."""
_THROUGHPUT = (
    ("Tokens/s/device", "tokens/s/device"),
    ("Tokens/s/chip", "tokens/s/chip"),
    ("TFLOP/s/device", "TFLOP/s/device"),
)


ROUND = 500
"""Of plans; a run that is taken back saves at any step, one in so many of which ends so."""
_LONGEST = 4_096
"""Characters of a line that are read."""


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


class Reader:
    """Reads one stream; knows the planned steps once the configuration was printed."""

    def __init__(self) -> None:
        self._planned: int | None = None
        self._steps: tuple[int, ...] = ()
        self._saved_before_round = False

    def feed(self, text: str) -> Iterable[Progress]:
        """A step, and the end with it where this was the last one planned."""
        text = text[:_LONGEST]
        if found := _STEP.search(text):
            return self._step(int(found[1]), text[found.end() :])
        if found := _EVAL.search(text):
            return (
                Progress(
                    "eval",
                    step=int(found[1]),
                    planned=self._planned,
                    loss=_number(found[2]),
                    loss_name="eval loss",
                ),
            )
        if found := _PLAN.search(text):
            self._planned = int(found[1] or found[2])
            return (Progress("plan", planned=self._planned),)
        if found := _RESTORE.search(text):
            return (Progress("resume", step=int(found[1])),)
        if self._steps and (found := _AGAIN.search(text)):
            return (Progress("resume", step=int(found[1])),)
        if "No existing checkpoints found, not restoring" in text:
            return (Progress("fresh"),)
        if found := _SAVED.search(text):
            return self._saved(int(found[1]))
        return ()

    def _saved(self, step: int) -> Iterable[Progress]:
        saved = Progress("checkpoint_saved", step=step)
        if (step + 1) % ROUND:
            return (saved,)
        first, self._saved_before_round = not self._saved_before_round, True
        if self._planned is not None or not first or len(self._steps) < 2:
            return (saved,)
        before, last = self._steps
        done = last <= step < last + (last - before)
        return (saved, Progress("finished", step=step)) if done else (saved,)

    def _step(self, step: int, rest: str) -> Iterable[Progress]:
        self._steps = (*self._steps[-1:], step)
        fields: dict[str, str] = dict(_FIELD.findall(rest))
        throughput, unit = next(
            ((_number(fields[name]), unit) for name, unit in _THROUGHPUT if name in fields),
            (None, None),
        )
        train = Progress(
            "train",
            step=step,
            planned=self._planned,
            loss=_number(fields.get("loss")),
            grad_norm=_number(fields.get("raw_grad_norm", fields.get("grad_norm"))),
            lr=_number(fields.get("lr")),
            step_s=_number(fields.get("seconds")),
            throughput=throughput,
            throughput_unit=unit,
            balance=_number(fields.get("moe_lb_loss")),
        )
        if self._planned is not None and step == self._planned - 1:
            return (train, Progress("finished", step=step, planned=self._planned))
        return (train,)
