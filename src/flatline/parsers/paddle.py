"""
PaddlePaddle's suites: PaddleClas, PaddleDetection, PaddleOCR, PaddleSeg and PaddleNLP's loops.

PaddleClas counts epochs from 1 and iterations from 0 (`[Train][Epoch 1/20][Iter: 0/100]`),
PaddleDetection both from 0 (`Epoch: [0] [  0/1000] learning_rate: ...`); PaddleOCR and PaddleSeg
print the step of the whole run.  `batch_cost` is seconds a step, `ips` samples a second.

Source: `log_info` of ppcls/engine/train/utils.py; `LogPrinter` of ppdet/engine/callbacks.py;
`train` of PaddleOCR tools/program.py; `train` of paddleseg/core/train.py; the examples of
PaddleNLP (`global step 10, epoch: 1, batch: 9, loss: ...`); `__train_epoch` of PPASR.

PaddleOCR's plan is its epochs times the length of its loader, and its last words are its best
metric, which it repeats behind every evaluation's own (`cur metric`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from flatline.model import Progress
from flatline.parsers._rules import Late, RuleReader, fields, rule

FORMAT = "paddle"
FRAMEWORK = "paddle"
TRIGGERS = (
    r"\[(Train|Eval)\]\[Epoch [0-9]+(/[0-9]+)?\]\[(Iter: ?[0-9]|Avg)",
    r"Epoch: \[[0-9]+\] \[ *[0-9]+/[0-9]+\] learning_rate: ",
    r"epoch: \[[0-9]+/[0-9]+\], (global_step|iter): [0-9]",
    r"\[TRAIN\] epoch: [0-9]+, iter: [0-9]+/[0-9]",
    r"Train epoch: \[[0-9]+/[0-9]+\], batch: \[",
    r"global step [0-9]+, epoch: [0-9]+, batch: [0-9]",
    r"train dataloader has [0-9]+ iters",
    r"(?:cur|best) metric, [a-z_]{1,24}: ",
)
_RATES = {
    "s": r"\b(?:batch_cost|avg_batch_cost): #",
    "data": r"\b(?:avg_)?(?:reader|data)_cost: #",
    "speed": r"\bips: #",
    "norm": r"\bgnorm: #",
}
RULES = (
    rule("train", r"\[Train\]\[Epoch (?P<epoch>[0-9]{1,7})/(?P<epochs>[0-9]{1,7})\]"
         r"\[Iter: ?(?P<n>[0-9]{1,12})/(?P<of>[0-9]{1,12})\]", zero=1, unit="samples/s",
         says=fields(loss=r"(?<![\w])loss: #", lr=r"\blr(?:\([^)]{0,40}\))?: #", **_RATES)),
    rule("eval", r"\[Eval\]\[Epoch (?P<epoch>[0-9]{1,7})(?:/[0-9]{1,7})?\]",
         says=fields(loss=r"(?<![\w])loss: #")),
    rule(None, r"\[Train\]\[Epoch [0-9]{1,7}/[0-9]{1,7}\]\[Avg"),
    rule("train", r"\bEpoch: \[(?P<epoch>[0-9]{1,7})\] \[ *(?P<n>[0-9]{1,12})/"
         r"(?P<of>[0-9]{1,12})\](?= learning_rate: )", unit="samples/s",
         says=fields(lr=r"\blearning_rate: #", loss=r"(?<![\w])loss: #", **_RATES)),
    rule("train", r"\bepoch: \[(?P<epoch>[0-9]{1,7})/(?P<epochs>[0-9]{1,7})\], "
         r"(?:global_step|iter): (?P<step>[0-9]{1,12})", unit="samples/s",
         says=fields(loss=r"(?:(?<!\w)loss|\bCTCLoss(?![^\n]*[ ,]loss: )): #", lr=r"\blr: #",
                     **_RATES)),
    rule("train", r"\[TRAIN\] epoch: (?P<epoch>[0-9]{1,7}), iter: (?P<step>[0-9]{1,12})/"
         r"(?P<planned>[0-9]{1,12})", unit="samples/s", says=fields(loss=r"(?<![\w])loss: #",
         lr=r"\blr: #", **_RATES)),
    rule("train", r"\bTrain epoch: \[(?P<epoch>[0-9]{1,7})/(?P<epochs>[0-9]{1,7})\], batch: "
         r"\[(?P<n>[0-9]{1,12})/(?P<of>[0-9]{1,12})\]", zero=1, unit="samples/s",
         says=fields(loss=r"(?<![\w])loss: #", lr=r"\blearning_rate: #", **_RATES)),
    rule("train", r"\bglobal step (?P<step>[0-9]{1,12}), epoch: (?P<epoch>[0-9]{1,7}), "
         r"batch: [0-9]{1,12}", says=fields(loss=r"(?<![\w])loss: #", lr=r"\blr: #",
         per_s=r"\bspeed: # step/s")),
)  # fmt: skip
_LOADER = Late(r"\btrain dataloader has ([0-9]{1,9}) iters")
_METRIC = Late(r"\b(cur|best) metric, [a-z_]{1,24}: ")


class Reader(RuleReader):
    """Knows the length of the loader, and whether the last epoch was left without a word since."""

    def __init__(self) -> None:
        super().__init__(RULES)
        self._length: int | None = None
        self._least, self._most = 1, 0
        self._at = (0.0, 0)
        self._last = self._measured = False

    def feed(self, text: str) -> Iterable[Progress]:
        """At most one value a line."""
        if loader := _LOADER.search(text):
            self._length = int(loader[1])
            return ()
        if metric := _METRIC.search(text):
            ended = metric[1] == "best" and self._last and not self._measured
            self._measured = metric[1] == "cur"
            return (Progress("finished"),) if ended else ()
        return tuple(self._planned(said) for said in super().feed(text))

    def _planned(self, said: Progress) -> Progress:
        if said.kind != "train":
            return said
        self._measured = False
        self._last = said.epoch is not None and said.epoch == said.epochs
        length = self._length or self._counted(said)
        if said.planned is not None or said.epochs is None or not length:
            return said
        return replace(said, planned=int(said.epochs) * length)

    def _counted(self, said: Progress) -> int | None:
        """The length by the steps between which epochs changed, once only one fits all of them."""
        if said.epoch is None or said.step is None or said.per_epoch is not None:
            return None
        (epoch, step), self._at = self._at, (said.epoch, said.step)
        if said.epoch == epoch + 1 and epoch >= 1 and said.step > step:
            self._least = max(self._least, -(-step // int(epoch)))
            most = (said.step - 1) // int(epoch)
            self._most = min(self._most or most, most)
        elif said.epoch != epoch:
            self._least, self._most = 1, 0  # begun again, or from a checkpoint
        return self._least if self._least == self._most else None
