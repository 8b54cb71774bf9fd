"""
ESPnet 2: `25epoch:train:1-100batch: iter_time=0.1, forward_time=0.2, loss=9.7, train_time=0.4`.

The batches count within an epoch whose length is not printed; `25epoch results: [train] ...
total_count=...` says how many there were, and the epochs after it are counted on from there.
Where it does not, the last that was told of is taken for the epoch's last: too few by less than
are told of at once.  A stream that begins in a later epoch gives no step before that.  The results
are a training point where none of the epoch's batches was told of, and an evaluation.  `iter_time`
is the wait for data, `train_time` the whole of a batch's seconds.

ESPnet leaves out an update whose gradient is no number and says so, which is sound now and then.
Where it left out every one since the line before, the gradient of that line is no number.  Having
left out all of an epoch's it stops, and says that it has finished as it says after the last one.

Its GAN tasks (VITS, vocoders) have a generator's loss, which is not meant to fall.

Source: `SubReporter.log_message`, `Reporter.log_message` of espnet2/train/reporter.py and
`Trainer.train_one_epoch` and `Trainer.run` of espnet2/train/trainer.py, 0.7 to 202412.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from flatline.model import Progress
from flatline.parsers._rules import LONGEST, NUMBER, Late, count, number

FORMAT = "espnet"
FRAMEWORK = "espnet"
TRIGGERS = (
    r"[0-9]epoch:train:[0-9]+-[0-9]+batch: ",
    r"[0-9]epoch results: \[train\] ",
    r"The grad norm is (nan|-?inf)\. Skipping updating the model",
    r"The training was finished at [0-9]{1,7} epochs",
    r"The gradients at all steps are invalid in this epoch",
)
_BATCHES = Late(r"\b([0-9]{1,7})epoch:train:([0-9]{1,12})-([0-9]{1,12})batch: ")
_RESULTS = Late(
    r"\b([0-9]{1,7})epoch results: \[train\] ([^\[]{0,3000})(?:\[valid\] ([^\[]{0,3000}))?"
)
_SAYS = {
    name: Late(rf"(?<![\w]){label}=({NUMBER})")
    for name, label in (
        ("loss", "loss"), ("generator", "generator_loss"),
        ("grad_norm", "grad_norm"), ("lr", "(?:optim0_lr0|lr_0)"),
        ("step_s", "train_time"), ("data_s", "iter_time"), ("total", "total_count"),
    )
}  # fmt: skip
EVERY = 0.99


def _said(name: str, text: str) -> float | None:
    found = _SAYS[name].search(text)
    return number(found[1]) if found else None


class Reader:
    """Reads one stream; knows how many batches the epochs before had, and what was left out."""

    def __init__(self) -> None:
        self._epoch = 1
        self._base: int | None = 0
        self._reached: int | None = None
        self._left_out = 0
        self._told: float | None = None
        self._gave_up = False

    def feed(self, text: str) -> Iterable[Progress]:
        """A training point for a line of batches, an evaluation for an epoch's results."""
        text = text[:LONGEST]
        if batches := _BATCHES.search(text):
            return (self._batches(batches[1], batches[2], batches[3], text[batches.end() :]),)
        if results := _RESULTS.search(text):
            return self._results(float(results[1]), results[2], results[3] or "")
        if "The training was finished at " in text:
            return () if self._gave_up else (Progress("finished"),)
        if "The gradients at all steps are invalid" in text:
            self._gave_up = True
            return ()
        self._left_out += 1
        return ()

    def _batches(self, named: str, first: str, last: str, text: str) -> Progress:
        epoch, begin, end = int(named), int(first), int(last)
        if epoch != self._epoch:
            follows = epoch == self._epoch + 1
            self._base = 0 if epoch == 1 else self._reached if follows else None
            self._epoch, self._reached = epoch, None
        step = self._reached = None if self._base is None else self._base + end
        norm = _said("grad_norm", text)
        if self._left_out >= EVERY * (end - begin + 1):
            norm = math.nan
        self._left_out = 0
        self._told = float(epoch)
        loss, generator = _said("loss", text), _said("generator", text)
        return Progress(
            "train",
            step=step,
            epoch=float(epoch),
            loss=generator if loss is None else loss,
            loss_name="generator_loss" if loss is None and generator is not None else "loss",
            falling=loss is not None or generator is None,
            grad_norm=norm,
            lr=_said("lr", text),
            step_s=_said("step_s", text),
            data_s=_said("data_s", text),
        )

    def _results(self, epoch: float, train: str, valid: str) -> Iterable[Progress]:
        found = _SAYS["total"].search(train)
        last = self._reached if epoch == self._epoch else None
        self._base, self._epoch = count(found[1]) if found else last, int(epoch) + 1
        self._reached = None
        loss, held_out = _said("loss", train), _said("loss", valid)
        said = []
        if self._told != epoch and loss is not None:
            said.append(Progress("train", self._base, epoch=epoch, loss=loss))
        if held_out is not None:
            said.append(Progress("eval", epoch=epoch, loss=held_out))
        return said
