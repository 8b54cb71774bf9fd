"""
PaddlePaddle's suites: PaddleClas, PaddleDetection, PaddleOCR, PaddleSeg and PaddleNLP's loops.

PaddleClas counts epochs from 1 and iterations from 0 (`[Train][Epoch 1/20][Iter: 0/100]`),
PaddleDetection both from 0 (`Epoch: [0] [  0/1000] learning_rate: ...`); PaddleOCR and PaddleSeg
print the step of the whole run.  `batch_cost` is seconds a step, `ips` samples a second.

Source: `log_info` of ppcls/engine/train/utils.py; `LogPrinter` of ppdet/engine/callbacks.py;
`train` of PaddleOCR tools/program.py; `train` of paddleseg/core/train.py; the examples of
PaddleNLP (`global step 10, epoch: 1, batch: 9, loss: ...`); `__train_epoch` of PPASR.
"""

from __future__ import annotations

from flatline.parsers._rules import RuleReader, fields, rule

FORMAT = "paddle"
FRAMEWORK = "paddle"
TRIGGERS = (
    r"\[(Train|Eval)\]\[Epoch [0-9]+(/[0-9]+)?\]\[(Iter: ?[0-9]|Avg)",
    r"Epoch: \[[0-9]+\] \[ *[0-9]+/[0-9]+\] learning_rate: ",
    r"epoch: \[[0-9]+/[0-9]+\], (global_step|iter): [0-9]",
    r"\[TRAIN\] epoch: [0-9]+, iter: [0-9]+/[0-9]",
    r"Train epoch: \[[0-9]+/[0-9]+\], batch: \[",
    r"global step [0-9]+, epoch: [0-9]+, batch: [0-9]",
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
         says=fields(loss=r"(?<![\w])loss: #", lr=r"\blr: #", **_RATES)),
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


def Reader() -> RuleReader:
    return RuleReader(RULES)
