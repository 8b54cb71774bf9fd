"""
Mozilla DeepSpeech, Coqui STT: `Epoch 3 |   Training | Elapsed Time: ... | Steps: 34 | Loss: 45`.

Steps count within an epoch of unknown length and are counted on over the epochs that were read;
the loss is the mean of the epoch so far.  `Validation` and `Test` are evaluations.

Source: `run_set` of training/deepspeech_training/train.py, mozilla/DeepSpeech 0.5 to 0.9;
coqui-ai/STT 0.10 to 1.4.
"""

from __future__ import annotations

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


def Reader() -> EpochReader:
    return EpochReader(RULES)
