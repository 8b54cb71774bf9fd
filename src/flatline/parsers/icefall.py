"""
icefall (k2): `Epoch 1, batch 50, loss[loss=1.1, ..., over 7012.00 frames. ], tot_loss[...], ...`.

The loss is the batch's, a mean over its frames; `tot_loss` is a running mean that keeps a NaN.
Of a pruned transducer the simple loss is read where the whole is a number: the pruned one is
phased into their sum.
Batches count within an epoch of unknown length, and are counted on over the epochs that were read.
`Epoch 1, validation: loss=...` is an evaluation.

Source: `train_one_epoch` of the train.py of egs/librispeech/ASR, k2-fsa/icefall.
"""

from __future__ import annotations

from flatline.parsers._rules import EpochReader, fields, rule

FORMAT = "icefall"
FRAMEWORK = "icefall"
TRIGGERS = (
    r"Epoch [0-9]+, batch [0-9]+, .{0,60}loss\[",
    r"Epoch [0-9]+, validation: .{0,40}loss=",
)
_BATCH = (
    r"\bEpoch (?P<epoch>[0-9]{1,7}), batch (?P<step>[0-9]{1,12}), "
    r"(?:[a-z_ ]{1,30}: [0-9]{1,12}, ){0,2}loss\["
)
RULES = (
    rule("train", _BATCH + r"(?=loss=[0-9][^\]]{1,300}\bpruned_loss=)", loss_name="simple_loss",
         says=fields(loss=r"\bsimple_loss=#", lr=r"\blr: #")),
    rule("train", _BATCH, says=fields(loss=r"(?<![\w])loss=#", lr=r"\blr: #")),
    rule("eval", r"\bEpoch (?P<epoch>[0-9]{1,7}), validation: ",
         says=fields(loss=r"(?<![\w])loss=#")),
)  # fmt: skip


def Reader() -> EpochReader:
    return EpochReader(RULES)
