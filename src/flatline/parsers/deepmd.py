"""
DeePMD-kit: `DEEPMD INFO    batch    1000: trn: rmse = 1.97e+01, rmse_e = ..., lr = 9.50e-04`;
since 3.0 `Batch`.

The first of the errors, over all that is fitted, is the loss; TensorFlow's version prints none,
only times: its errors stand in `lcurve.out`, below a heading that names the columns.  A batch is a
step.  `Trained model has been saved to:` stands behind the last one, as TensorFlow's `finished
training` does.

Source: `format_training_message` of deepmd/loggers/training.py, `run` and `print_header` of
deepmd/pt/train/training.py, `train` of deepmd/tf/train/trainer.py, deepmodeling/deepmd-kit 2, 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from flatline.model import Progress
from flatline.parsers._rules import LONGEST, Late, RuleReader, count, fields, number, rule

FORMAT = "deepmd"
FRAMEWORK = "DeePMD-kit"
Line = TypeVar("Line")
TRIGGERS = (r"DEEPMD [A-Z]+ ", r"step +rmse_(val|trn|tst) ")
_SAYS = r"\bDEEPMD INFO {1,8}"
_BATCH = _SAYS + r"[Bb]atch {1,12}(?P<step>[0-9]{1,12})"
RULES = (
    rule("train", _BATCH + r": (?:\w{1,60}_)?trn: ", loss_name="rmse",
         says=fields(loss=r"\brmse = #", lr=r", lr = #")),
    rule("eval", _BATCH + r": (?:\w{1,60}_)?val: ", loss_name="rmse",
         says=fields(loss=r"\brmse = #")),
    rule("train", _BATCH + r"(?= training time [0-9.]{1,12} s)"),
    rule("checkpoint_saved", _SAYS + r"Saved model to \S{0,400}-(?P<step>[0-9]{1,12})\.\w{1,6}$"),
    rule("finished", _SAYS + r"(?:Trained model has been saved to: |finished training$)"),
)  # fmt: skip
_HEADING = Late(r"\s{0,8}#\s{1,8}step\s+(rmse\w{0,20}\s+){1,60}lr\s*$")


class Reader:
    """Reads one stream; a heading, and the rows below it."""

    def __init__(self) -> None:
        self._rules = RuleReader(RULES)
        self._names: list[str] = []

    def feed(self, text: str) -> Iterable[Progress]:
        """What a line of the log says; nothing of a heading."""
        text = text[:LONGEST]
        self._names = text.split()[1:] if _HEADING.match(text) else []
        return () if self._names else self._rules.feed(text)

    def rows(self, lines: Iterable[tuple[Line, str]]) -> Iterator[tuple[Line, Progress]]:
        """The rows below the heading that was just fed; comments may stand among them."""
        names = self._names
        if "rmse_trn" not in names:
            return
        for line, text in lines:
            cells = text[:LONGEST].split()
            if cells[:1] == ["#"]:
                continue
            step = count(cells[0]) if len(cells) == len(names) else None
            if step is None:
                return
            said = dict(zip(names, map(number, cells), strict=True))
            yield line, Progress("train", step, loss=said["rmse_trn"], loss_name="rmse",
                                 lr=said["lr"])  # fmt: skip
            if "rmse_val" in said:
                yield line, Progress("eval", step, loss=said["rmse_val"], loss_name="rmse")
