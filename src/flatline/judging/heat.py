"""GPUs that run hotter than their peers, and hosts all of whose GPUs do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from flatline.judging.gpus import Gpus, Readings
from flatline.model import Place

HOTTER_CELSIUS = 10.0
"""Hotter than its peers by this much: uneven air flow in one chassis makes 3 to 5 degrees."""


@dataclass(frozen=True, slots=True)
class Heat:
    """The run's GPUs at work with their temperatures, where these were measured."""

    gpus: Gpus
    read: Readings | None

    def hotter(self, place: Place, time: float) -> bool:
        """Whether a GPU was hotter than its peers by more than their places explain."""
        own = None if self.read is None else self.read.value(place, time)
        usual = self.gpus.usual(self.read, place, time)
        return own is not None and usual is not None and own - usual >= HOTTER_CELSIUS

    def of_hosts(
        self, slow: Mapping[Place, float], clock: Readings, below: float
    ) -> tuple[Place, ...]:
        """All GPUs of the hosts of which several are slow, each at its time, where every one was
        hotter then and ran `below` its peers' clock: what they share is the host's cooling."""
        out: list[Place] = []
        for host in dict.fromkeys(place.host for place in slow):
            times = [time for place, time in slow.items() if place.host == host]
            here = [place for place in self.gpus.busy if place.host == host]
            parts = [self.gpus.part(clock, place, times[0]) for place in here]
            if len(times) > 1 and all(
                part is not None and part < below and self.hotter(place, times[0])
                for place, part in zip(here, parts, strict=True)
            ):
                out += here
        return tuple(out)
