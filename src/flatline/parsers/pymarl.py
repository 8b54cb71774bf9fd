"""
PyMARL and what is built on it (EPyMARL, PyMARL2): how far, and a table of what was measured.

    [INFO 22:35:47] my_main t_env: 2052050 / 2050000
    [INFO 22:35:47] my_main Recent Stats | t_env:    2052050 | Episode:    41041
    ep_length_mean:           48.8331	epsilon:                   0.0500	grad_norm:                 0.1820	loss:                      0.0198
    q_taken_mean:              0.1049	return_mean:               0.1224

Steps are those of the environment.  The loss of the values, or of policy and critic, need not fall;
the return is what is measured.  A quantity that was not measured yet is not printed.

Source: `print_recent_stats` of src/utils/logging.py and `run_sequential` of src/run.py,
oxwhirl/pymarl and uoe-agents/epymarl.
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from flatline.model import Progress
from flatline.parsers._rules import NUMBER, Late, count, number

FORMAT = "pymarl"
FRAMEWORK = "pymarl"
TRIGGERS = (
    r"Recent Stats \| t_env: ",
    r" t_env: [0-9]+ / [0-9]+\s*$",
    r"\] [a-z_]+ Finished Training\s*$",
)
_PLAN = Late(r"\bt_env: ([0-9]{1,15}) / ([0-9]{1,15})\s*$")
_STATS = Late(r"\bRecent Stats \| t_env: {1,15}([0-9]{1,15}) \| Episode: ")
_ENDS = Late(r"^\[INFO [0-9:]{8}\] \w{1,20} Finished Training\s*$")
_ENTRY = Late(rf"(\w{{1,60}}): {{1,30}}({NUMBER})(?=\s|$)")
_MOST = 24
"""Lines of a table: four quantities stand in one."""
_LOSSES = ("loss", "loss_td", "td_loss", "critic_loss", "pg_loss")
_NORMS = ("grad_norm", "agent_grad_norm", "critic_grad_norm")
_MEASURED = ("test_return_mean", "return_mean", "battle_won_mean")
Line = TypeVar("Line")


class Reader:
    """Reads one stream; holds how far the run is to go, and the head that was just fed."""

    def __init__(self) -> None:
        self._planned: int | None = None
        self._step: int | None = None

    def feed(self, text: str) -> Iterable[Progress]:
        """The end; a point is told by the rows below its head."""
        text, self._step = text[:400], None
        if found := _PLAN.search(text):
            self._planned = count(found[2])
        elif found := _STATS.search(text):
            self._step = count(found[1])
        elif self._planned is not None and _ENDS.match(text):
            return (Progress("finished"),)
        return ()

    def rows(self, lines: Iterable[tuple[Line, str]]) -> Iterator[tuple[Line, Progress]]:
        """What the table below its head says, at the line of its loss, and of its return."""
        if self._step is None:
            return
        said: dict[str, tuple[Line, float | None]] = {}
        for n, (line, text) in enumerate(lines):
            entries = _ENTRY.pattern().findall(text[:1000])
            if not entries or text.startswith("[") or n > _MOST:
                break
            said |= {name: (line, number(value)) for name, value in entries}
        told = next((said[name] for name in _LOSSES if name in said), None)
        norm = next((said[name][1] for name in _NORMS if name in said), None)
        if said:
            at, loss = told or next(iter(said.values()))
            yield (
                at,
                Progress("train", self._step, self._planned, loss=loss, loss_name="value loss",
                         grad_norm=norm, falling=False),
            )  # fmt: skip
        for name in _MEASURED:
            if name in said:
                at, value = said[name]
                yield at, Progress("eval", self._step, loss=value, loss_name=name, falling=False)
                return
