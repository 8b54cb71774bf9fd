"""
Tables of rllab's logger, as garage, dowel and VIME print them: an iteration's lines, then its means.

    2023-06-14 13:29:03 | [trpo_ant] epoch #29 | EpochTime 14.24 s
    ---------------------------------------  ---------------
    Evaluation/AverageReturn                         1419.46
    policy/LossAfter                              -0.0351996
    ---------------------------------------  ---------------

The mean return of its episodes is told as what rises: what a policy's loss is before and after an
update need not fall.  The first iteration is 0.

Source: `Trainer` of src/garage/trainer.py, rlworkgroup/garage; `TabularInput` of
rlworkgroup/dowel; rllab/misc/logger.py, rll/rllab.
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Iterable

from flatline.model import RISING, Progress
from flatline.parsers._rules import NUMBER, Late, number

FORMAT = "dowel"
FRAMEWORK = "garage"
TRIGGERS = (
    r" epoch #[0-9]",
    r" itr #[0-9]",
    r"^([A-Za-z]+/)?AverageReturn +[-0-9n]",
)
_LINE = Late(
    r"\| (?:\[[^\]]{1,100}\] )?(?:epoch|itr) #([0-9]{1,9}) \| "
    r"(?:(?:EpochTime|ItrTime) ([0-9.]{1,16}) s)?"
)
_RETURN = Late(rf"(?:[A-Za-z]{{1,40}}/)?AverageReturn {{1,80}}({NUMBER})\s*$")


class Reader:
    """Reads one stream; holds the iteration at hand and what it took."""

    def __init__(self) -> None:
        self._epoch: int | None = None
        self._took_s: float | None = None

    def feed(self, text: str) -> Iterable[Progress]:
        """A point with the mean return of an iteration."""
        text = text[:400]
        if found := _LINE.search(text):
            epoch = int(found[1])
            if epoch != self._epoch:
                self._took_s = None
            self._epoch = epoch
            self._took_s = number(found[2]) if found[2] else self._took_s
            return ()
        found = _RETURN.match(text)
        if found is None or self._epoch is None:
            return ()
        step, self._epoch = self._epoch, None
        return (
            Progress("train", step, loss=number(found[1]), loss_name=RISING, falling=False,
                     step_s=self._took_s),
        )  # fmt: skip
