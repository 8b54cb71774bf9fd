"""
Whether a run of which nothing says how it ended advanced to the end of its metrics.

Its last step is no older by then than its steps and pauses are, and its GPUs did as much as
before: what was read was taken while it ran.
"""

from __future__ import annotations

from datetime import timedelta

from flatline.facts import Facts
from flatline.judging.claims import claim
from flatline.judging.pace import pace
from flatline.judging.timeline import usual
from flatline.model import Claim
from flatline.signals import ACTIVITY

INTERVALS = 5.0
"""Progress that is older than so many of its usual intervals has stopped, or its log has."""
AS_BEFORE, LEAST_S = 0.6, 120.0
"""Of what the median GPU did over the run, over as much time as several steps take."""
LEAST_STEPS = 10


def to_the_end(facts: Facts) -> Claim | None:
    """None where anything tells of an end, the log ends well before its metrics do or goes on
    behind them, or the GPUs rested by then."""
    seen, track = pace(facts), facts.main_track(facts.last.n)
    if facts.disposition != "unknown" or facts.end_seen or facts.window is None:
        return None
    if facts.crashes or facts.exits or any(m.signature.role == "root" for m in facts.matches):
        return None
    if seen is None or track is None or seen.interval_s is None:
        return None
    if len({*track.steps[track.of_attempt(facts.last.n)[0] :]}) < LEAST_STEPS:
        return None
    end = facts.window[1]
    silent_s = (end - seen.at).total_seconds()
    if not -seen.interval_s <= silent_s <= max(INTERVALS * seen.interval_s, seen.pauses_s):
        return None
    signal = next((name for name in (*ACTIVITY, "gpu_power_watts") if facts.measured(name)), None)
    began = (facts.lived[0] or facts.window[0]) + timedelta(seconds=seen.interval_s)
    whole_s, last_s = int((end - began).total_seconds()), int(max(LEAST_S, 2 * seen.interval_s))
    if signal is None or whole_s < 2 * last_s:
        return None
    now, ever = (
        usual(facts, f"avg_over_time({signal}[{length}s])", float(int(end.timestamp())), text)
        for length, text in ((last_s, "the median GPU at the end"), (whole_s, "over the run"))
    )
    if now is None or ever is None or ever.value <= 0 or now.value < AS_BEFORE * ever.value:
        return None
    text = (
        f"Its last progress stands {max(0.0, silent_s):.0f} s before the end of its metrics, and"
        f" comes every {seen.interval_s:.0f} s or so; its GPUs did as much then as before"
    )
    return claim(text, seen.last, now, ever)
