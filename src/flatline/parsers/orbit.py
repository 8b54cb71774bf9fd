"""
TensorFlow's Model Garden: the step and its pace in one line, what was measured in the next.

    train | step:    200 | steps/sec:    3.4 | output:
        {'image_loss': 5.61951, 'learning_rate': 0.30000, 'training_loss': 6.17549}

A point is told once its loss is; one whose output follows in no line is told without.

Source: `Controller` of tensorflow/models orbit/controller.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from flatline.model import Progress
from flatline.parsers._rules import NUMBER, Late, number

FORMAT = "orbit"
FRAMEWORK = "tensorflow"
TRIGGERS = (
    r"train \| step: +[0-9]",
    r"'training_loss': ",
    r"(?:saved checkpoint to|restored (?:model|checkpoint) from) [^ ]*ckpt-[0-9]",
)
_STEP = Late(
    rf"\btrain \| step: +([0-9]{{1,12}}) \|(?: steps/sec: +({NUMBER}) \|)? output:(.{{0,2000}})"
)
_LOSS = Late(rf"'training_loss': (?:array\()?({NUMBER})")
_RATE = Late(rf"'learning_rate': (?:array\()?({NUMBER})")
_SAVED = Late(r"\b(saved checkpoint to|restored (?:model|checkpoint) from) \S*ckpt-([0-9]{1,12})")


class Reader:
    """Reads one stream; holds the step whose output is still to come."""

    def __init__(self) -> None:
        self._open: tuple[int, float | None] | None = None

    def feed(self, text: str) -> Iterable[Progress]:
        """A training point, or a checkpoint."""
        return list(self._said(text[:4000]))

    def _said(self, text: str) -> Iterator[Progress]:
        if found := _STEP.search(text):
            yield from self._closed("")
            pace = number(found[2]) if found[2] else None
            self._open = int(found[1]), 1 / pace if pace else None
            if "{" in found[3]:
                yield from self._closed(found[3])
        elif "'training_loss': " in text:
            yield from self._closed(text)
        elif found := _SAVED.search(text):
            yield from self._closed("")
            saved = found[1].startswith("saved")
            yield Progress("checkpoint_saved" if saved else "checkpoint_loaded", int(found[2]))

    def _closed(self, output: str) -> Iterator[Progress]:
        if self._open is None:
            return
        (step, step_s), self._open = self._open, None
        loss, rate = _LOSS.search(output), _RATE.search(output)
        yield Progress("train", step, loss=number(loss[1]) if loss else None,
                       loss_name="training_loss" if loss else "loss",
                       lr=number(rate[1]) if rate else None, step_s=step_s)  # fmt: skip
