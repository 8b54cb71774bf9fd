"""
Mozilla DeepSpeech, Coqui STT: `Epoch 3 |   Training | Elapsed Time: ... | Steps: 34 | Loss: 45`.

Steps count within an epoch of unknown length and are counted on over the epochs that were read.
The loss is the mean of the epoch so far, of samples in the order of their length: it grows with
them, and is read only at the step where the epoch before ended, or where it is no number.
`Validation` and `Test` are evaluations.

Source: `run_set` of training/deepspeech_training/train.py, mozilla/DeepSpeech 0.5 to 0.9;
coqui-ai/STT 0.10 to 1.4.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import isfinite

from flatline.model import Progress
from flatline.parsers._rules import EpochReader, fields, rule

FORMAT = "deepspeech"
FRAMEWORK = "deepspeech"
TRIGGERS = (r"(Training|Validation) \| Elapsed Time: ", r"I FINISHED optimization in ")
RULES = (
    rule("train", r"\bEpoch (?P<epoch>[0-9]{1,7}) \| +Training \| Elapsed Time: [0-9:]{1,12} \| "
         r"Steps: (?P<step>[0-9]{1,12}) \|", says=fields(loss=r" Loss: #")),
    rule("eval", r"\bEpoch (?P<epoch>[0-9]{1,7}) \| +Validation \| Elapsed Time: ",
         says=fields(loss=r" Loss: #")),
    rule("finished", r"\bI FINISHED optimization in "),
)  # fmt: skip


class Reader(EpochReader):
    """Knows the last step of the epoch before."""

    def __init__(self) -> None:
        super().__init__(RULES)
        self._now = (0.0, 0)
        self._end = 0

    def feed(self, text: str) -> Iterable[Progress]:
        """At most one value a line."""
        return tuple(self._whole(said) for said in super().feed(text))

    def _whole(self, said: Progress) -> Progress:
        if said.kind != "train" or said.epoch is None or said.loss is None:
            return said
        if said.epoch != self._now[0]:
            self._end = self._now[1]
        self._now = said.epoch, self._n
        part = isfinite(said.loss) and self._n != self._end
        return replace(said, loss=None) if part else said
