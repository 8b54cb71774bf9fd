"""
Levanter (and all that logs a tqdm bar by tqdm_loggable): `Progress on:train 19.0it/70.0it ...`.

Counts are written for people, so from a thousand on (`1.23kit`) they have three digits: the step
is then about right, and no plan is claimed, for a run would seem to reach it too early.  Bars that
are not called `train` are evaluation where they are called `eval`, else nothing.  Checkpoints are
named after their step.

Source: `tqdm_logging.format_meter` of tqdm_loggable 0.1 to 0.2; levanter/callbacks (`pbar_logger`,
whose postfix is the loss); the other lines are Levanter's own and say no step.
"""

from __future__ import annotations

from collections.abc import Iterable

from flatline.model import Progress
from flatline.parsers._rules import LONGEST, NUMBER, Late, number

FORMAT = "levanter"
FRAMEWORK = "levanter"
TRIGGERS = (
    r"Progress on:[a-z]+ [0-9.]+[kM]?it/[0-9.]+[kM]?it",
    r"checkpoint\.py:[0-9]+ - INFO :: Loading checkpoint from [^\n]{1,300}/step-[0-9]",
)
_LOADS = Late(
    r"\bcheckpoint\.py:[0-9]{1,5} - INFO :: Loading checkpoint from \S{1,300}/step-([0-9]{1,12})"
)
_LINE = Late(
    r"\bProgress on:(train|eval) ([0-9.]{1,12})([kM]?)it/([0-9.]{1,12})([kM]?)it"
    r"(?: rate:([0-9.]{1,12})(s/it|it/s))?"
    rf"(?:.{{0,200}}?\bpostfix:.{{0,200}}?\bloss=({NUMBER}))?"
)
_FACTOR = {"": 1, "k": 1_000, "M": 1_000_000}


class Reader:
    """Reads one stream; an evaluation's bar is one evaluation however often it is drawn."""

    def __init__(self) -> None:
        self._evaluates = False

    def feed(self, text: str) -> Iterable[Progress]:
        """At most one value a line."""
        if loads := _LOADS.search(text[:LONGEST]):
            return (Progress("checkpoint_loaded", step=int(loads[1])),)
        found = _LINE.search(text[:LONGEST])
        done, total = (number(found[2]), number(found[4])) if found else (None, None)
        if found is None or done is None or total is None:
            return ()
        if found[1] == "eval":
            first, self._evaluates = not self._evaluates, True
            return (Progress("eval"),) if first else ()
        self._evaluates = False
        rate = number(found[6])
        step_s = rate if rate is None or found[7] == "s/it" else 1 / rate if rate else None
        return (
            Progress(
                "train",
                step=round(done * _FACTOR[found[3]]),
                planned=None if found[5] else round(total),
                loss=number(found[8]),
                step_s=step_s,
            ),
        )
