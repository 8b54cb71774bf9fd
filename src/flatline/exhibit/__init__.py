"""
What can be shown of a run beside the verdict on it, for surfaces that draw.

Everything is bounded, whatever the run: curves are thinned, places that did the same are one
row, and what is left out is counted.  Nothing here judges.
"""

from __future__ import annotations

from flatline.exhibit.beside import compared_of
from flatline.exhibit.curves import curves_of
from flatline.exhibit.model import (
    NOTHING,
    Band,
    Both,
    Curve,
    Curves,
    Exhibit,
    Mark,
    Places,
    Quote,
    Row,
    Span,
)
from flatline.exhibit.places import places_of
from flatline.exhibit.quotes import quotes_of
from flatline.facts import Facts
from flatline.model import Finding, Verdict

__all__ = [
    "NOTHING",
    "Band",
    "Both",
    "Curve",
    "Curves",
    "Exhibit",
    "Mark",
    "Places",
    "Quote",
    "Row",
    "Span",
    "exhibit",
]


def exhibit(facts: Facts, verdict: Verdict) -> Exhibit:
    """The curves, places and quotations that go with a verdict on these facts."""
    attempt = own.attempt if (own := _own(verdict)) is not None else facts.last.n
    return Exhibit(
        curves_of(facts, verdict, attempt),
        places_of(facts, verdict, attempt),
        quotes_of(facts, verdict),
        compared_of(facts),
    )


def _own(verdict: Verdict) -> Finding | None:
    """The finding the verdict rests on; None where it rests on none."""
    return next(
        (
            judged.finding
            for judged in verdict.findings
            if judged.finding.code == verdict.code
            and judged.finding.fault_class == verdict.fault_class
            and judged.role == "cause"
        ),
        None,
    )
