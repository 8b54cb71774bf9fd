"""
What a family asks of the baseline: whether the run is slower than it, and what moved with that.

A difference of settings forbids it: then nothing of the speed is a fault.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median

from flatline.facts import Facts
from flatline.judging.claims import claim
from flatline.judging.comparison import comparison, restored, signal_levels
from flatline.judging.levels import CHANCE, Level, uniform_cites
from flatline.judging.steps import PINNED
from flatline.model import Claim, Comparison, Measure
from flatline.signals import SIGNALS

REPEATS = 0.01
"""The most by which repeats on the same nodes were seen to differ; see `PINNED`."""
DOUBTED = 0.55
"""With a second store that tells it 0.775: below the 0.8 of a confident verdict."""
WATCHED = ("gpu_power_watts", "gpu_sm_clock_hertz", "rdma_retransmits_total",
           "host_procs_running", "host_io_pressure_ratio")  # fmt: skip
"""What is named as alike, of what was compared, where a family says that nothing else moved."""


@dataclass(frozen=True)
class Beside:
    """The run beside its baseline, as families ask it."""

    facts: Facts
    other: Facts
    compared: Comparison
    levels: Mapping[str, Level]
    pace: Measure

    @property
    def alike(self) -> bool:
        """Whether nothing that is known forbids to compare the speeds."""
        return self.compared.alike is not False

    @property
    def lost(self) -> float:
        """The part of the baseline's speed that is lacking."""
        return self.pace.loss_ratio

    @property
    def slower(self) -> bool:
        """Slower than repeats on the same nodes and than both runs stray; on other nodes repeats
        differ by more, which `strength` counts against it."""
        return self.alike and self.lost > max(PINNED, self.pace.wander_ratio)

    def strength(self, most: float) -> float:
        """
        What is believed. Not enough to be confident, though two stores tell it, where no setting
        is known alike and where a repeat, or other nodes, may make as much.
        """
        doubted = self.compared.alike is None or self.lost <= REPEATS or not self.pace.differs
        return min(most, DOUBTED) if doubted else most

    def rose(self, name: str, way: int = 1) -> bool:
        """Whether a signal moved one way on every host, beyond chance among all compared."""
        level = self.levels.get(name)
        if level is None:
            return False
        return level.everywhere() == way and level.chance * len(self.levels) <= CHANCE

    def pace_claim(self) -> Claim:
        """How much slower, over what, and what repeats differ by."""
        one = self.pace
        over = f"over {one.points:,} equal steps" if one.steps else "by their levels"
        return claim(
            f"{one.name.capitalize()} was {one.ours:.5g} against {one.theirs:.5g} in the baseline,"
            f" {abs(self.lost):.1%} {'slower' if self.lost > 0 else 'faster'} {over};"
            f" less than {one.noise_ratio * 100:.2g}% would be noise", *one.cites,
        )  # fmt: skip

    def told(self, name: str) -> tuple[float, float]:
        """A signal's median host in both runs, over all of their settled time."""
        cites = uniform_cites(self.facts, self.other, self.levels[name].signal)
        if len(cites) == 6:
            return cites[0].value, cites[3].value
        return self.levels[name].here, self.levels[name].there

    def level_claim(self, name: str, what: str, spell: str = "") -> Claim:
        """A signal in both runs: the median host, with the lowest and the highest."""
        level = self.levels[name]
        cites = uniform_cites(self.facts, self.other, level.signal)
        spelt = [spelled(cite.value, spell) for cite in cites]
        count = len(level.ours)
        hosts = f"all {count} hosts" if count > 1 else "the host"
        text = f"{what} on {hosts}: {{}} ({{}} to {{}}), in the baseline {{}} ({{}} to {{}})"
        if len(spelt) < 6:
            values = [(median(by.values()), min(by.values()), max(by.values()))
                      for by in (level.ours, level.theirs)]  # fmt: skip
            spelt = [spelled(value, spell) for three in values for value in three]
        return claim(text.format(*spelt), *cites)

    def unmoved(self, but: Iterable[str]) -> tuple[Claim, ...]:
        """What of the machine was alike in both, and how many signals were compared."""
        moved = {change.signal for change in self.compared.signals}
        calm = [n for n in WATCHED if n in self.levels and n not in moved and n not in set(but)]
        if not calm:
            return ()
        cites = [cite for name in calm
                 for cite in uniform_cites(self.facts, self.other, SIGNALS[name])]  # fmt: skip
        count = len(self.levels)
        differ = len(moved)
        return (claim(f"Alike in both runs: {', '.join(calm)}; of {count} signals compared"
                      f" {differ} differ{'s' if differ == 1 else ''}", *cites),)  # fmt: skip

    def restore_claim(self) -> Claim | None:
        """That this run was restored from a checkpoint and the baseline was not."""
        mine, its = restored(self.facts), restored(self.other)
        if mine is None or its is not None:
            return None
        return claim(f"This run was restored from a checkpoint{mine[0]}; the baseline began anew"
                     " as far as its log tells", mine[1])  # fmt: skip

    def open_questions(self) -> tuple[str, ...]:
        """What keeps the comparison from being sure."""
        out = []
        if self.compared.alike is None:
            unknown = [one.name for one in self.compared.settings if one.weight == "other"]
            named = f" ({', '.join(unknown[:4])} differ)" if unknown else ""
            out.append("Whether the two runs were set alike: what they print does not settle"
                       f" it{named}.")  # fmt: skip
        if not self.compared.same_hosts:
            out.append("Whether the nodes make the difference: the runs had other ones, and"
                       " repeats on other nodes differ by up to 2 %.")  # fmt: skip
        return tuple(out)


def spelled(value: float, spell: str = "") -> str:
    """A value as `spell` formats it, else with three digits and k, M or G."""
    if spell:
        return spell.format(value)
    for size, name in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if name == 'k' else size):.3g}{name}"
    return f"{value:.3g}"


def beside(facts: Facts) -> Beside | None:
    """The run beside its baseline; None where it has none, or where no speed can be compared."""
    return facts.memo("beside", _beside)


def _beside(facts: Facts) -> Beside | None:
    compared = comparison(facts)
    if compared is None or facts.baseline is None or compared.pace is None:
        return None
    return Beside(facts, facts.baseline, compared, signal_levels(facts), compared.pace)
