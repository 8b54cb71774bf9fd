"""
A run that no record tells of, whose log stopped long before the metrics, and whose GPUs wait.

Its log may be a copy from before.  So the GPUs must show that it stands still: from the last step
on one of them idles, and the others, which had worked, draw what waiting takes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from flatline.facts import Facts
from flatline.judging.idle_power import Idle, fell, idle
from flatline.judging.pace import STILL_INTERVALS, Pace, pace, silence
from flatline.judging.timeline import usual
from flatline.model import Cite, DerivedCite

LEAST_S = 900.0
"""Rank 0 saves, evaluates or uploads while the others wait; that it does so for a quarter of an
hour, which is beyond the usual timeout of a collective, is rare.  A judgement."""
MOST = 0.79
"""Just short of confident."""
READ_S = 60
COPIED = "Whether the log went on: it may be a copy from before, and no record tells of its end."


@dataclass(frozen=True, slots=True)
class LeftWaiting:
    """The last progress, for how long there was none, what dates the end, and who idled."""

    still: tuple[Pace, float, DerivedCite, Cite]
    idle: Idle


def left_waiting(facts: Facts) -> LeftWaiting | None:
    """None where the run is known to have ended, or its GPUs do not wait for one."""
    seen = pace(facts)
    if seen is None or seen.interval_s is None or facts.job is not None or facts.window is None:
        return None
    if facts.disposition != "unknown" or facts.end_seen or facts.reached_plan or facts.crashes:
        return None
    end = facts.window[1]
    read = usual(facts, f"avg_over_time(gpu_power_watts[{READ_S}s])", float(int(end.timestamp())),
                 "the median GPU, as it was read last")  # fmt: skip
    if read is None:
        return None
    seconds, derived = silence(seen, end, read)
    if seconds < max(LEAST_S, STILL_INTERVALS * seen.interval_s, seen.pauses_s):
        return None
    found = idle(facts, None)
    if found is None or not fell(facts):
        return None
    return LeftWaiting((seen, seconds, derived, read), replace(found, most=min(found.most, MOST)))
