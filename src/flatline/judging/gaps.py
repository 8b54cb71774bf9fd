"""GPUs that alone had gaps, nothing to run, while the run was slow."""

from __future__ import annotations

from collections.abc import Callable, Collection

from flatline.facts import Facts
from flatline.judging.apart import fleet
from flatline.judging.throughput import Course
from flatline.model import Claim, Place

RESIDENT = ("gpu_engine_active_ratio", "gpu_utilization_ratio")
"""Whether any kernel was there. One that waits in a collective is, all the time: a GPU with gaps
while the others have none is not waiting for them, it is given nothing to do."""
GAPS = 0.9
"""Of the others' resident time: sound ranks of one run differ by a few in a hundred."""
LEAST_SPREAD = 0.01
SAID: tuple[str, str, Callable[[float], str]] = (
    "activity",
    "had a kernel there {own} of the slow phase, the median GPU {others}",
    ("{:.1%}".format),
)
_SHOWN = 2


def gaps_of(facts: Facts, run: Course, hosts: Collection[str]) -> tuple[Claim, ...]:
    """That GPUs of these hosts, and of no other, had gaps in the run's slow phases and in those
    alone; nothing where that is not so or was not measured."""
    for signal in RESIDENT:
        ranks = fleet(facts, run, signal) if run.slow else None
        found = None if ranks is None else ranks.in_slow_phases(GAPS, LEAST_SPREAD, rare=False)
        if ranks is None or found is None:
            continue
        places = [ranks.names()[name] for name in found.hosts]
        if any(place.host not in hosts for place in places):
            return ()
        worst = min(run.slow, key=lambda phase: phase.part)
        asked = (ranks.beside(facts, place, worst, SAID) for place in places[:_SHOWN])
        return tuple(one for one in asked if one is not None)
    return ()


def alone_with_gaps(facts: Facts, run: Course) -> tuple[Place, Claim] | None:
    """The one GPU of which that is so, whether or not it may be by chance: among many GPUs one is
    easily apart for the length of one phase, but not the one that something else tells of."""
    for signal in RESIDENT if run.slow else ():
        ranks = fleet(facts, run, signal)
        found = ranks and ranks.in_slow_phases(GAPS, LEAST_SPREAD, rare=False, chance=1.0)
        if ranks is None or not found or len(found.hosts) != 1:
            continue
        place = ranks.names()[found.hosts[0]]
        shows = ranks.beside(facts, place, min(run.slow, key=lambda phase: phase.part), SAID)
        return None if shows is None else (place, shows)
    return None
