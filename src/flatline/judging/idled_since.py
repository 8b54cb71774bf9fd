"""
A run that its record says goes on, whose steps carry no times, and whose GPUs stopped working.

Steps that add up to the time the GPUs worked end where the GPUs stopped; the log may be a copy
from before, yet that no kernel ran since says that no step was made.
"""

from __future__ import annotations

from datetime import UTC, datetime

from flatline.facts import Facts
from flatline.judging.by_work import laid_by_work
from flatline.judging.idle_power import none_worked
from flatline.judging.pace import STILL_INTERVALS, Pace, silence
from flatline.model import Cite, DerivedCite

LEAST_S = 900.0
"""As `judging.left_waiting` has it: hardly a save, an evaluation or an upload takes as long."""
SETTLE_S = 60.0
"""The last step lies within a few readings of the GPUs."""


def idled_since(facts: Facts) -> tuple[Pace, float, DerivedCite, Cite] | None:
    """The last step by where the GPUs worked, the seconds since, and what dates the last reading;
    None where any GPU worked after."""
    known = laid_by_work(facts) if facts.disposition == "running" else None
    if known is None or facts.window is None or facts.end_seen or len(known.times) < 3:
        return None
    end = facts.window[1]
    at = datetime.fromtimestamp(known.times[-1], UTC)
    usual_s = (known.times[-1] - known.times[0]) / (len(known.times) - 1)
    idle = none_worked(facts, datetime.fromtimestamp(known.times[-1] + SETTLE_S, UTC), end)
    if idle is None:
        return None
    seen = Pace(facts.point(known.track, known.indexes[-1]).cite, at, usual_s)
    seconds, derived = silence(seen, end, idle)
    if seconds < max(LEAST_S, STILL_INTERVALS * usual_s):
        return None
    return seen, seconds, derived, idle
