"""
How much of its time a fairseq run spent outside of its steps, where it says that its loader fell
behind.

`train_wall` is what forward, backward and update took since the last line (the stopwatch of
fairseq/trainer.py); the lines' clock tells how long that was.
"""

from __future__ import annotations

import re
from itertools import pairwise
from math import isfinite

from flatline.facts import Facts
from flatline.judging.claims import claim
from flatline.model import Claim

BEHIND, LEAST, LEAST_S = "fairseq-loader-behind", 2, 300.0
"""How often it must say so, and of how much time it must tell."""
_STEPS = re.compile(r"\btrain_wall=(\d{1,7}(?:\.\d{1,3})?)\b")


def outside_steps(facts: Facts) -> tuple[Claim, float] | None:
    """What shows it, and the share; None where it does not warn, or tells too little."""
    track, n = facts.main_track(facts.last.n), facts.last.n
    said = [m.cite for m in facts.matches if m.signature.id == BEHIND and m.attempt == n]
    if track is None or len(said) < LEAST:
        return None
    points = [i for i in track.of_attempt(n) if isfinite(track.at[i])]
    whole = inside = 0.0
    for before, point in pairwise(points):
        told = _STEPS.search(facts.point(track, point).cite.text)
        passed = track.at[point] - track.at[before]
        if told is not None and 0 < float(told[1]) <= passed:
            whole, inside = whole + passed, inside + float(told[1])
    if whole < LEAST_S:
        return None
    ends = (facts.point(track, points[at]).cite for at in (0, -1))
    text = (
        f"It says that its loading buffer was empty; of {whole:.0f} s its steps took"
        f" {inside:.0f} s"
    )
    return claim(text, *said[:LEAST], *ends), 1 - inside / whole
