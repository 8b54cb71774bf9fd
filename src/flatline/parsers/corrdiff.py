"""
CorrDiff of NVIDIA's PhysicsNeMo (Modulus before): `samples 5120.0    training_loss 0.97
training_loss_running_mean 0.98 ... total_sec 158.5   sec_per_tick 0.9`.

Images are counted, not steps: they are what the run plans, saves and goes on by, and stand for
its steps here.  `total_sec` is the program's own clock.

    [04:02:31 - train - INFO] Training for 2000000 images...

Source: the training loop of examples/weather/corrdiff/train.py, NVIDIA/physicsnemo; forks print a
colon behind each name, and thousands of images.
"""

from __future__ import annotations

from collections.abc import Iterable

from flatline.model import Progress
from flatline.parsers._rules import LONGEST, NUMBER, Late, number

FORMAT = "corrdiff"
FRAMEWORK = "PhysicsNeMo"
TRIGGERS = (
    r"samples [0-9.]+k? *,? +training_loss:? ",
    r"Training for [0-9.]+ images\.\.\.",
)
_SAMPLES = Late(
    rf"\bsamples ([0-9]{{1,12}}(?:\.[0-9]{{1,3}})?)(k?) *,? +training_loss:? ({NUMBER})"
)
_SAYS = {
    name: Late(rf"\b{label}:? ({NUMBER})")
    for name, label in (("lr", "learning_rate"), ("since_s", "total_sec"))
}
_PLAN = Late(r"\bTraining for ([0-9]{1,12})(?:\.[0-9]{1,3})? images\.\.\.")
THOUSAND = 1000


class Reader:
    """A point for each line of progress; the plan once it is said."""

    def __init__(self) -> None:
        self._planned: int | None = None

    def feed(self, text: str) -> Iterable[Progress]:
        """At most one value a line."""
        text = text[:LONGEST]
        if plan := _PLAN.search(text):
            self._planned = int(plan[1])
            return (Progress("plan", planned=self._planned),)
        found = _SAMPLES.search(text)
        if found is None:
            return ()
        images = float(found[1]) * (THOUSAND if found[2] else 1)
        said = {name: rule.search(text[found.end() :]) for name, rule in _SAYS.items()}
        values = {name: number(one[1]) for name, one in said.items() if one is not None}
        return (
            Progress(
                "train", round(images), self._planned, loss=number(found[3]),
                loss_name="training_loss", lr=values.get("lr"), since_s=values.get("since_s"),
            ),
        )  # fmt: skip
