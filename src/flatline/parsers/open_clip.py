"""
OpenCLIP: `Train Epoch: 0 [ 11264/10968539 (0%)] Data (t): 0.9 Batch (t): 1.3, ... Loss: 6.9`.

The bracket counts samples.  The first line of an epoch is its first batch, so that its count is
the samples of one step, and every later count a multiple of it; a log that begins inside an epoch
gives the part of the epoch alone.  Both times are means over the steps since the line before, the
rate beside them is the last step's and is left out.  Older versions print the loss first, and
neither rate nor means of a GPU.  The final copy of the results to where they are kept is made when
all epochs are done.

Source: `train_one_epoch` of mlfoundations/open_clip src/open_clip_train/train.py (v1.0 to v3.2),
and forks that kept its line.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from flatline.model import Progress
from flatline.parsers._rules import Late, RuleReader, count, fields, rule

FORMAT = "open_clip"
FRAMEWORK = "open_clip"
TRIGGERS = (
    r"Train Epoch: [0-9]+ \[ *[0-9]+/[0-9]+ \([0-9]+%\)\] [^\n]{0,400}Batch \(t\): ",
    r"Start epoch [0-9]",
    r"Final remote sync successful",
)
RULES = (
    rule(
        "train",
        r"\bTrain Epoch: (?P<epoch>[0-9]{1,7}) \[ *(?P<n>[0-9]{1,15})/(?P<of>[0-9]{1,15})"
        r" \([0-9]{1,3}%\)\](?=.{1,400}\bBatch \(t\): )",
        says=fields(
            data=r"\bData \(t\): #",
            s=r"\bBatch \(t\): #",
            loss=r"(?<![\w-])Loss: #",
            lr=r"\bLR: #",
        ),
    ),
    rule("finished", r"\bFinal remote sync successful\.\s*$"),
)
_BEGINS = Late(r"\bStart epoch [0-9]{1,7}$")
_SAMPLES = Late(r"\[ *([0-9]{1,15})/([0-9]{1,15}) ")


class Reader(RuleReader):
    """Keeps how many samples a step has."""

    def __init__(self) -> None:
        super().__init__(RULES)
        self._begins = False
        self._each = 0

    def feed(self, text: str) -> Iterable[Progress]:
        """At most one value a line."""
        if _BEGINS.search(text):
            self._begins = True
            return ()
        return tuple(self._counted(said, text) for said in super().feed(text))

    def _counted(self, said: Progress, text: str) -> Progress:
        found = _SAMPLES.search(text)
        n, of = (count(found[1]), count(found[2])) if found else (None, None)
        if not n or not of or said.epoch is None:
            return replace(said, step=None, per_epoch=None)
        if self._begins:
            self._each, self._begins = n, False
        if not self._each or n % self._each:
            return replace(said, step=None, per_epoch=None, epoch=said.epoch + n / of)
        per_epoch = -(-of // self._each)
        step = int(said.epoch) * per_epoch + n // self._each
        return replace(said, step=step, per_epoch=per_epoch)
