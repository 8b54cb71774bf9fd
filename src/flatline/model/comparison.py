"""What two runs of one thing differ in: settings first, then equal steps, then signals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from flatline.model.events import Gap
from flatline.model.evidence import Cite

Weight = Literal["work", "speed", "learning", "start", "place", "other"]
"""
What a setting that differs takes away.

work      a step does other work: neither speed nor loss can be compared
speed     the same work, done otherwise (hardware, versions, parallelism): no speed
learning  the same work, other learning (rate, optimiser, seed): no loss
start     how the run began: fresh, or from which checkpoint
place     where it ran
other     a setting nothing is known of
"""


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting that both runs state and that differs, each as it was printed."""

    name: str
    weight: Weight
    ours: str
    theirs: str
    cites: tuple[Cite, ...]


@dataclass(frozen=True, slots=True)
class Measure:
    """
    One quantity of training, compared at equal steps where there are enough of them.

    `ours` and `theirs` are medians over what was compared, `change_ratio` the median of what
    each step changed by.  It differs where that is beyond `noise_ratio`, the larger of what
    repeats vary by and of `wander_ratio`, by which these two stray themselves.  `steps` is None
    where the runs share too few steps and their levels were compared; `since_step` is where they
    part.
    """

    name: Literal["throughput", "step time", "loss", "gradient norm"]
    unit: str
    ours: float
    theirs: float
    change_ratio: float
    noise_ratio: float
    points: int
    steps: tuple[int, int] | None
    differs: bool
    cites: tuple[Cite, ...]
    since_step: int | None = None
    wander_ratio: float = 0.0
    axis: Literal["steps", "epochs"] = "steps"
    """What points are equal in: where no steps are printed, thousandths of an epoch."""

    @property
    def loss_ratio(self) -> float:
        """The part of the baseline's speed that this run lacks, below 0 where it is faster; 0
        where the quantity tells no speed."""
        if self.name == "throughput":
            return -self.change_ratio
        return 1.0 - 1.0 / (1.0 + self.change_ratio) if self.name == "step time" else 0.0


@dataclass(frozen=True, slots=True)
class SignalChange:
    """
    A canonical signal whose level is another than in the baseline, on every host or on some.

    `ours` and `theirs` are the median host's; `chance` is how often the order of the stretches
    alone would differ so much.  `hosts` are those that moved apart from the others; empty where
    all did alike.
    """

    signal: str
    unit: str
    ours: float
    theirs: float
    chance: float
    hosts: tuple[str, ...]
    measured_on: int
    cites: tuple[Cite, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """
    A run beside its baseline.

    `alike` says whether their speeds may be compared, `learns_alike` whether their losses may:
    None where nothing that both state tells.  `agreed` are settings that both state alike,
    `compared` the signals that both carry, `gaps` what could not be had of the baseline.
    """

    targets: tuple[str, ...]
    job: str | None
    chosen: str
    hosts: tuple[str, ...]
    alike: bool | None
    learns_alike: bool | None
    same_hosts: bool = False
    settings: tuple[Setting, ...] = ()
    agreed: tuple[str, ...] = ()
    measures: tuple[Measure, ...] = ()
    signals: tuple[SignalChange, ...] = ()
    compared: tuple[str, ...] = ()
    gaps: tuple[Gap, ...] = ()

    @property
    def cites(self) -> tuple[Cite, ...]:
        """Every citation, once, in order."""
        groups = [part.cites for part in self.settings]
        groups += [part.cites for part in self.measures]
        groups += [part.cites for part in self.signals]
        return tuple(dict.fromkeys(cite for group in groups for cite in group))

    @property
    def pace(self) -> Measure | None:
        """What tells the speed: throughput, else the time of a step."""
        told = {measure.name: measure for measure in self.measures}
        return told.get("throughput") or told.get("step time")
