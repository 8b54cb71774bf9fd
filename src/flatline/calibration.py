"""
From how strong a finding is to how often such a verdict is right.

The strengths that families and signatures state are judgements; what they are worth was measured
on excerpts and run logs of others that nobody had seen who wrote the rules (`lab/calibrate.py`,
`docs/accuracy.md`).  The map is monotone and keeps 0.8 where it is: below it a verdict rests on
less than a decisive sign, and stays below whatever the counts say.

Only verdicts from logs and records are mapped: of those that rest on metrics too few have been
counted.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from flatline.model import Finding, Judged, QueryCite, Verdict

CONFIDENT = 0.8
"""DESIGN: what "confident" means."""
KNOTS = ((0.3, 0.72), (0.6, 0.785), (0.8, 0.79))
KNOTS_ABOVE = ((0.8, 0.955), (0.99, 0.985))
"""(strength, how often right), by `lab/calibrate.py`. Below 0.4 little was counted (64 verdicts,
80 % right): the first value is a judgement."""


def calibrated(strength: float) -> float:
    """How often a verdict of this strength is right; below 0.3, where none is given, as it is."""
    if strength < KNOTS[0][0]:
        return strength
    knots = KNOTS if strength < CONFIDENT else KNOTS_ABOVE
    for (low, at_low), (high, at_high) in pairwise(knots):
        if strength <= high:
            return at_low + (strength - low) / (high - low) * (at_high - at_low)
    return knots[-1][1]


def with_confidence(verdict: Verdict) -> Verdict:
    """The verdict with every finding's confidence mapped, its own with them."""
    findings = tuple(_mapped(judged) for judged in verdict.findings)
    if verdict.state != "found" or not findings:
        return replace(verdict, findings=findings)
    return replace(verdict, findings=findings, confidence=findings[0].confidence)


def _mapped(judged: Judged) -> Judged:
    if _measured(judged.finding):
        return judged
    return replace(judged, confidence=round(calibrated(judged.confidence), 3))


def _measured(finding: Finding) -> bool:
    return any(isinstance(cite, QueryCite) for cite in finding.cites)
