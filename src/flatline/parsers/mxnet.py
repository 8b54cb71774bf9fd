r"""
MXNet's Speedometer and what is built on it: `Epoch[0] Batch [20]\tSpeed: 99.1 samples/sec\t...`.

`Batch [0-20]` counts to the batch named last.  Batches count within an epoch of unknown length and
are counted on over the epochs that were read.  Of the metrics behind the speed the first that
falls as a model learns is the loss (cross-entropy, loss, nll, perplexity, squared error); an
accuracy is none.  `Epoch[0] Train-...=` is the mean of an epoch, `Validation-...` an evaluation.
Sockeye 3 writes `E=0 B=50  s/sec=...`, and counts its batches over the run as Sockeye 1 and 2 do.

Source: `Speedometer` and `LogValidationMetricsCallback` of python/mxnet/callback.py and
`BaseModule.fit` of module/base_module.py, apache/mxnet 0.9 to 1.9; `Speedometer` of
sockeye/training.py, awslabs/sockeye.
"""

from __future__ import annotations

from flatline.parsers._rules import EpochReader, fields, rule

FORMAT = "mxnet"
FRAMEWORK = "mxnet"
TRIGGERS = (
    r"Epoch\[[0-9]+\] Batch ?\[[0-9]+(-[0-9]+)?\]\s+Speed: ",
    r"Epoch\[[0-9]+\] (Train|Validation)-[a-z_-]+=",
    r"[0-9]\ss/sec=",
)
_LOSS = r"(?i:[\w-]{0,40}(?:loss|cross-?entropy|nll|perplexity|ppl|\bmse|rmse|mae))"
_BEHIND = fields(loss=rf"\s(?:Train-)?{_LOSS}[=:] ?#", speed=r"Speed: #", lr=r"\slr=#")
RULES = (
    rule("train", r"\bEpoch\[(?P<epoch>[0-9]{1,7})\] Batch ?\[(?:[0-9]{1,12}-)?"
         r"(?P<step>[0-9]{1,12})\](?=\s+Speed: )", unit="samples/s", says=_BEHIND),
    rule("train", r"\bE=(?P<epoch>[0-9]{1,7}) B=(?P<step>[0-9]{1,12})(?=\ss/sec=)",
         unit="samples/s", loss_name="perplexity",
         says=fields(loss=r"\sppl=#", speed=r"\ss/sec=#")),
    rule("train", rf"\bEpoch\[(?P<epoch>[0-9]{{1,7}})\] Train-(?={_LOSS}=)",
         says=fields(loss=r"[\w-]{1,60}=#")),
    rule("eval", rf"\bEpoch\[(?P<epoch>[0-9]{{1,7}})\] Validation-(?={_LOSS}=)",
         says=fields(loss=r"[\w-]{1,60}=#")),
    rule("eval", r"\bEpoch\[(?P<epoch>[0-9]{1,7})\] Validation-"),
)  # fmt: skip


def Reader() -> EpochReader:
    return EpochReader(RULES)
