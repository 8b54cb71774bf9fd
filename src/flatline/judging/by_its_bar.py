"""
The last progress of a run by a bar alone: its losses stand in a file of their own, and a bar
without a label in another, where the program's standard error goes.

It dates nothing.  Since the job began on record no less has passed than what the bar has run.
"""

from __future__ import annotations

import re
from datetime import timedelta
from itertools import pairwise

from flatline.facts import Facts, Track
from flatline.judging.pace import Pace
from flatline.model import Cite, LogCite, Place

LEAST = 3
"""Times that it was seen on its way: a bar of so few may be of any loop."""
_DRAWN = re.compile(
    r"\s*\d{1,3}%(?:\|[^|]{0,200}\|)? +\d{1,12}/(?P<total>\d{1,12})"
    r" \[(?:(?P<h>\d{1,4}):)?(?P<m>\d{1,2}):(?P<s>\d\d)<[\d:?]{1,12}, *(?P<rate>\d[\d.]{0,11})"
    r" ?(?P<unit>it/s|s/it)"
)
"""A bar of tqdm without a label: what it counts up to, has run, and its rate."""


def by_its_bar(facts: Facts, track: Track) -> tuple[Pace, Cite] | None:
    """None where it is not the last thing drawn in its file, or is not of the run's own steps."""
    job, planned = facts.job, facts.planned_steps
    bars = [m for m in facts.markers_of("bar") if m.progress.planned == planned]
    sources = {m.cite.source for m in bars}
    if job is None or job.started_at is None or facts.last.n > 0 or planned is None:
        return None
    if len(bars) < LEAST or len(sources) != 1 or track.source in sources:
        return None
    ran = [(m.progress.step or 0, m.progress.since_s) for m in bars]
    if any(b[0] <= a[0] or None in (a[1], b[1]) for a, b in pairwise(ran)):
        return None
    last = facts.last_lines.get(bars[-1].cite.source)
    text = "" if last is None else "".join(facts.lines(last.source, last.line, 1)).strip()
    drawn = _DRAWN.match(text)
    rate = float(drawn["rate"]) if drawn and drawn["rate"].count(".") < 2 else 0.0
    if last is None or drawn is None or int(drawn["total"]) != planned or rate <= 0.0:
        return None
    cite = LogCite(last.source, last.line, text, Place())
    ran_s = 3600 * int(drawn["h"] or 0) + 60 * int(drawn["m"]) + int(drawn["s"])
    each_s = rate if drawn["unit"] == "s/it" else 1 / rate
    return Pace(cite, job.started_at + timedelta(seconds=ran_s), each_s), job.cite
