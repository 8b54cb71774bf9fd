"""
DI-engine and LightZero: an iteration of the learner, and a grid of its means below it.

    [RANK0]: === Training Iteration 5900 Result ===
    +-------+------------+----------------+
    | Name  | cur_lr_avg | total_loss_avg |
    +-------+------------+----------------+
    | Value | 0.003000   | 10.265592      |
    +-------+------------+----------------+

The loss is that of policy and values, which need not fall.  What it collects, or its evaluator
plays, is measured by `reward_mean`.  It ends once an evaluation reaches the return at which it is
to stop (told by a signature as well), or by its counts, without a word.

Source: `LogShowHook` of ding/worker/learner/learner_hook.py and `get_tabulate_vars_hor` of
ding/utils/log_helper.py, opendilab/DI-engine; `MuZeroEvaluator.eval` of opendilab/LightZero.
"""

from __future__ import annotations

from collections.abc import Iterable

from flatline.model import Progress
from flatline.parsers._rules import Late, number

FORMAT = "ding"
FRAMEWORK = "DI-engine"
TRIGGERS = (
    r"=== Training Iteration [0-9]+ Result ===",
    r"^\| Name  \| ",
    r"^\| Value \| ",
    r"is greater than stop_value: [-0-9.]+,? ?so your [A-Za-z/ ]{0,20}agent is converged",
    r"^reward_mean: [-0-9]",
)
_HEAD = Late(r"=== Training Iteration ([0-9]{1,12}) Result ===")
_CELLS = Late(r"\| (Name |Value) \|((?: [^|]{0,200}\|){1,40})\s*$")
_CONVERGED = Late(
    r"\[(?:LightZero|DI-engine) (?:serial|parallel) pipeline\] Current "
    r"(?:episode_return|eval_reward): \S{1,40} is greater than stop_value: "
    r"\S{1,24} ?,? ?so your [\w/ ]{1,20}agent is converged"
)
_REWARD = Late(r"reward_mean: (-?[0-9.]{1,20})\s*$")


class Reader:
    """Reads one stream; holds the iteration, and the names of the grid at hand.

    The grid bears no rank where the iteration does, and is of another stream then: of either what
    it says is told."""

    def __init__(self) -> None:
        self._step: int | None = None
        self._names: list[str] = []
        self._beside = True

    def feed(self, text: str) -> Iterable[Progress]:
        """A training point, what was measured, or the end."""
        text = text[:4_096]
        if found := _HEAD.search(text):
            self._step = int(found[1])
            return (Progress("train", self._step, falling=False),) if self._beside else ()
        if found := _CELLS.match(text):
            cells = [cell.strip() for cell in found[2].split("|")[:-1]]
            if found[1] == "Name ":
                self._names = cells
                return ()
            return self._means(dict(zip(self._names, cells, strict=False)))
        if found := _REWARD.match(text):
            reward = number(found[1])
            return (Progress("eval", loss=reward, loss_name="reward_mean", falling=False),)
        return (Progress("finished"),) if _CONVERGED.search(text) else ()

    def _means(self, said: dict[str, str]) -> Iterable[Progress]:
        self._names = []
        loss = said.get("total_loss_avg")
        if loss is None:
            return ()
        step, self._step = self._step, None
        self._beside = self._beside and step is None
        rate = said.get("cur_lr_avg")
        return (
            Progress("train", step, loss=number(loss), loss_name="total loss of the policy",
                     lr=number(rate), falling=False),
        )  # fmt: skip
