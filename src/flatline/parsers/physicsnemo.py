"""
PhysicsNeMo's (Modulus before) launch logger: `[08:35:07 - train - INFO] Epoch 3 Metrics:
Learning Rate =  4.444e-04, loss =  5.872e-02`, and below it `Epoch Execution Time:  2.122e+02s,
Time/Iter:  1.011e+03ms`, which together tell how many steps an epoch has.

The logger's name tells training from validation.  Batches within an epoch are printed without
their number and left out.

Source: LaunchLogger of modulus/launch/logging/launch.py, NVIDIA/modulus; forks of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from flatline.model import Progress
from flatline.parsers._rules import LONGEST, NUMBER, Late, number

FORMAT = "physicsnemo"
FRAMEWORK = "PhysicsNeMo"
TRIGGERS = (r"\bEpoch [0-9]{1,7} Metrics: ", r"\bEpoch Execution Time: +[0-9]")
_EPOCH = Late(r"(?:- ([^\]\n]{1,40}) - INFO\] ?)?\bEpoch ([0-9]{1,7}) Metrics: (.*)")
_TOOK = Late(rf"\bEpoch Execution Time: +({NUMBER})s, Time/Iter: +({NUMBER})ms")
_VALUE = Late(rf"([A-Za-z][\w /()-]{{0,40}}?) = {{1,9}}({NUMBER})(?=,|\s*$)")
_HELD_OUT = Late(r"(?i)\b(?:val|valid|validation|eval|evaluation|test)\b")
LONGEST_S = 1e8
"""Of an epoch: what is more was no time."""
_RATE = ("learning rate", "lr")


class Reader:
    """A point for each epoch; the steps of one once its time was told."""

    def __init__(self) -> None:
        self._each: int | None = None

    def feed(self, text: str) -> Iterable[Progress]:
        """At most one value a line."""
        text = text[:LONGEST]
        if took := _TOOK.search(text):
            seconds, each_ms = number(took[1]) or 0.0, number(took[2]) or 0.0
            if each_ms > 0 and 0 < seconds < LONGEST_S:
                self._each = max(1, round(1e3 * seconds / each_ms))
            return ()
        found = _EPOCH.search(text)
        values = _VALUE.pattern().finditer(found[3]) if found else ()
        said = {one[1].strip(): number(one[2]) for one in values}
        rate = next((value for name, value in said.items() if name.lower() in _RATE), None)
        losses = [name for name in said if "loss" in name.lower() or "error" in name.lower()]
        name = next((name for name in losses if name.lower() == "loss"), *losses[:1] or [None])
        if found is None or name is None:
            return ()
        held_out = _HELD_OUT.search(found[1] or "") is not None
        return (
            Progress(
                "eval" if held_out else "train", epoch=float(found[2]), loss=said[name],
                loss_name=name, lr=None if held_out else rate,
                per_epoch=None if held_out else self._each,
            ),
        )  # fmt: skip
