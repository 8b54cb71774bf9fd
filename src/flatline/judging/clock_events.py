"""Why devices held their clocks down, by their own word: the reason masks of the run's GPUs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import isfinite

from flatline.facts import Facts
from flatline.judging.gpus import Readings, Stretches
from flatline.model import Place, QueryCite
from flatline.signals import ClockEvent, clock_events

HEAT = ClockEvent.SOFTWARE_THERMAL_SLOWDOWN | ClockEvent.HARDWARE_THERMAL_SLOWDOWN
BAD = HEAT | ClockEvent.HARDWARE_SLOWDOWN | ClockEvent.POWER_BRAKE
"""Reasons that no healthy GPU at work gives for long."""
MOSTLY_RATIO = 0.5
_READINGS_A_STRETCH = 4


@dataclass(frozen=True)
class ClockEvents:
    """Reason masks as they stood at times; `readings` is None where none were measured."""

    readings: Readings | None
    length_s: int

    def cover(self, places: Iterable[Place]) -> bool:
        """Whether each of these GPUs gave its reasons."""
        return self.readings is not None and set(places) <= self.readings.rows.keys()

    def read(self, place: Place, stretches: Iterable[float]) -> list[tuple[float, int]]:
        """(time, mask) within these stretches; a value that is no mask is left out."""
        row = None if self.readings is None else self.readings.rows.get(place)
        if row is None:
            return []
        ends = sorted(stretches)
        return [
            (at, int(value))
            for end in ends
            for at, value in row.between(end - self.length_s, end)
            if isfinite(value) and 0 <= value < 1 << 32
        ]

    def silent(self, place: Place) -> bool:
        """Whether the GPU never gave a reason, as nearly every one of a fleet."""
        return place not in self._telling

    @cached_property
    def _telling(self) -> set[Place]:
        return set() if self.readings is None else self.readings.telling()

    def mostly(self, place: Place, stretches: Iterable[float], bits: int) -> bool:
        """Whether any of these bits was lit in most readings."""
        if self.silent(place):
            return False
        masks, plain = self.read(place, stretches), int(bits)
        return bool(masks) and sum(bool(m & plain) for _, m in masks) >= MOSTLY_RATIO * len(masks)

    def usual(
        self, place: Place, stretches: Iterable[float], bits: int | None = None
    ) -> tuple[int, QueryCite | None]:
        """The mask read most often, of those with any of `bits` where given, cited once."""
        read = self.read(place, stretches)
        if bits is not None:
            read = [(at, mask) for at, mask in read if mask & bits]
        masks = [mask for _, mask in read]
        if not masks or self.readings is None:
            return 0, None
        usual = max(sorted(set(masks)), key=masks.count)
        at = next(at for at, mask in read if mask == usual)
        text = f"clock event reasons {clock_events(usual)}"
        return usual, self.readings.cite(place, at, text)


MASK = "gpu_clock_event_reasons"
EACH = (
    ClockEvent.SOFTWARE_POWER_CAP,
    ClockEvent.HARDWARE_SLOWDOWN,
    ClockEvent.HARDWARE_THERMAL_SLOWDOWN,
    ClockEvent.SOFTWARE_THERMAL_SLOWDOWN,
    ClockEvent.POWER_BRAKE,
)
"""Bits that some exporters give a metric each, with or without the mask."""


def told_each(facts: Facts) -> str | None:
    """What asks for the reasons where each has a metric; None where none has."""
    each = {f"gpu_clock_event_{str(bit.name).lower()}": bit.value for bit in EACH}
    return " + ".join(f"{n} * {name}" for name, n in each.items() if facts.measured(name)) or None


def clock_reasons(facts: Facts, cut: Stretches) -> ClockEvents:
    """The reasons that the run's GPUs gave in these stretches."""
    read = cut.samples(facts, MASK, _READINGS_A_STRETCH)
    if read is None and (asked := told_each(facts)) is not None:
        read = cut.samples(facts, asked, _READINGS_A_STRETCH)
    return ClockEvents(read, cut.length_s)
