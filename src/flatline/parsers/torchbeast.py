"""
TorchBeast's MonoBeast (IMPALA), and what is built on it (TorchRL's and DouZero's kin, MiniHack).

    [INFO:88 monobeast:509 ...] Steps 465920 @ 9327.9 SPS. Loss 43.205481. Return per episode: -19.6. Stats:
    Learning finished after 6001280 steps.

Steps are frames of the environment.  The loss is a policy's and a critic's, which is not meant to
fall: what is told is the return of an episode, unless the loss is no number.  Before the first
batch was learnt from it is printed as `inf`, which says that there is none.

Source: `train` of monobeast.py, facebookresearch/torchbeast.
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Iterable
from math import isnan

from flatline.model import RISING, Progress
from flatline.parsers._rules import NUMBER, Late, number

FORMAT = "torchbeast"
FRAMEWORK = "torchbeast"
TRIGGERS = (
    r" SPS\. Loss [-0-9ni]",
    r"Learning finished after [0-9]+ steps\.",
)
_STEP = Late(
    rf"\bSteps ([0-9]{{1,15}}) @ ({NUMBER}) SPS\. Loss ({NUMBER})\. "
    rf"(?:Return per episode: ({NUMBER})\. )?"
)
_ENDS = Late(r"(?:^|\] )Learning finished after ([0-9]{1,15}) steps\.\s*$")


class Reader:
    """Each line speaks for itself."""

    def feed(self, text: str) -> Iterable[Progress]:
        """A training point, or the end."""
        text = text[:1000]
        if found := _STEP.search(text):
            loss, reward = number(found[3]), number(found[4])
            lost = loss is not None and isnan(loss)
            told = loss if lost else reward
            name = "total loss" if lost else RISING
            return (
                Progress("train", int(found[1]), loss=told, loss_name=name, falling=False,
                         throughput=number(found[2]), throughput_unit="frames/s"),
            )  # fmt: skip
        if found := _ENDS.search(text):
            return (Progress("finished", int(found[1])),)
        return ()
