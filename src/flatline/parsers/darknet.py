"""
darknet (YOLO up to v4): `58: 4.1, 5.2 avg loss, 0.0001 rate, 3.2 seconds, 3712 images`.

The first number counts iterations of the whole run.  The loss that is read is the average, which
takes up a tenth of each batch's and begins anew after one that was NaN: a single bad batch does
not stay in it.  `seconds` is the time of the step without the loading before it.  `nan` beside
`Region Avg IOU` or `count: 0` is a layer that had no object to judge, and is not read.

Source: `train_detector` of src/detector.c and `train_classifier` of src/classifier.c,
AlexeyAB/darknet; examples/detector.c and examples/classifier.c, pjreddie/darknet (`avg` without
`loss`; the classifier puts the epoch behind the iteration).
"""

from __future__ import annotations

from flatline.parsers._rules import RuleReader, fields, rule

FORMAT = "darknet"
FRAMEWORK = "darknet"
TRIGGERS = (
    r" avg( loss)?, [0-9.e-]+ rate, [0-9.]+ seconds, ",
    r"train from the beginning, then use flag in the end of training command: -clear",
)
_NUMBER = r"-?(?:[0-9]{1,30}(?:\.[0-9]{1,9})?|nan|inf)"
RULES = (
    rule(
        "train",
        rf"(?:^|\s)(?P<step>[0-9]{{1,12}})(?:, (?P<epoch>[0-9.]{{1,12}}))?: {_NUMBER},"
        rf" (?P<loss>{_NUMBER}) avg(?: loss)?(?=, )",
        loss_name="avg loss",
        says=fields(lr=r", # rate,", s=r" rate, # seconds"),
    ),
    rule("finished", r"\bIf you want to train from the beginning, then use flag in the end of"),
)


def Reader() -> RuleReader:
    return RuleReader(RULES)
