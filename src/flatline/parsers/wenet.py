"""
WeNet: `TRAIN Batch 3/200 loss 12.3 loss_att 9.1 ... lr 0.0001 rank 0`, epoch and batch.

The second number counts batches within the epoch, whose length is not printed; it is counted on
over the epochs that were read.  Every rank prints its own; rank 0 speaks for the run.  `CV Batch`
is evaluation, and so is `cv_loss`, of a whole epoch.

Source: `Executor.train` and `Executor.cv` of wenet/utils/executor.py and wenet/bin/train.py,
wenet-e2e/wenet 1.0 to 3.1.
"""

from __future__ import annotations

from flatline.parsers._rules import EpochReader, fields, rule

FORMAT = "wenet"
FRAMEWORK = "wenet"
TRIGGERS = (
    r"(TRAIN|CV) (\| ?([^\n]{0,60}\| ?)?)?Batch [0-9]+/[0-9]+ ",
    r"Epoch [0-9]+ (Step [0-9]+ )?(TRAIN|CV) info ",
)
_BATCH = r"(?:\| ?(?:[^\n]{0,60}\| ?)?)?Batch (?P<epoch>[0-9]{1,7})/"
RULES = (
    rule(None, r"\bTRAIN .{1,500} rank [1-9]"),
    rule("train", rf"\bTRAIN {_BATCH}(?P<step>[0-9]{{1,12}})(?= )",
         says=fields(loss=r"(?<![\w])loss #", lr=r"\blr #", norm=r"\bgrad_norm #")),
    rule("eval", rf"\bCV {_BATCH}[0-9]{{1,12}}(?= )", says=fields(loss=r" history loss #")),
    rule("eval", r"\bEpoch (?P<epoch>[0-9]{1,7}) (?:Step [0-9]{1,12} )?CV info "
         r"(?:lr \S{1,20} )?cv_loss (?P<loss><#>)"),
    rule(None, r"\bEpoch [0-9]{1,7} (?:Step [0-9]{1,12} )?TRAIN info "),
)  # fmt: skip


def Reader() -> EpochReader:
    return EpochReader(RULES)
