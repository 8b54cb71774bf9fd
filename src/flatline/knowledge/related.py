"""
Incidents set beside a verdict: at most three, of its family, and only where they clearly fit.

They are no evidence and change nothing of the verdict.  What is asked with are the lines that the
verdict's own finding cites; where it cites none, its summary.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from flatline.model import Cite, DerivedCite, Finding, Gap, LogCite, Related, Verdict

if TYPE_CHECKING:
    from flatline.knowledge.index import Hit, Index

MOST = 3
LEAST_SHARE, LEAST_WEIGHT = 0.6, 12.0
"""Measured by `lab/score_knowledge.py --threshold`: docs/design/knowledge.md has the table.  The
weight keeps a line of two words, which any record may hold whole, from finding one."""
LOOKED_AT = 20
LINES = 12
"""Cited lines that are asked with."""


def with_related(verdict: Verdict) -> Verdict:
    """The verdict with the incidents that resemble it; itself where none does, or where it found
    no fault.  What of the site's records is broken becomes a gap."""
    if verdict.state != "found" or not verdict.findings or verdict.code is None:
        return verdict
    # Imports NumPy, which a verdict without a fault need not pay for.
    from flatline.knowledge.site import folder, index

    found, own = index(folder())
    gaps = tuple(Gap("the site's incident records", reason, file) for file, reason in own.broken)
    hits = fitting(found, _asked(verdict.findings[0].finding), verdict.code)
    if not hits and not gaps:
        return verdict
    return replace(verdict, related=tuple(map(_related, hits)), gaps=(*verdict.gaps, *gaps))


def fitting(
    found: Index,
    text: str,
    family: str,
    least_share: float = LEAST_SHARE,
    least_weight: float = LEAST_WEIGHT,
    without: str | None = None,
) -> list[Hit]:
    """The records that clearly fit. More than `MOST` fit a line that many problems print: of those
    only what was confirmed at this site is given. `without` leaves a record out, to measure."""
    hits = [
        hit
        for hit in found.search(text, family, LOOKED_AT)
        if hit.share >= least_share and hit.weight >= least_weight and hit.incident.id != without
    ]
    if len(hits) > MOST:
        hits = [hit for hit in hits if hit.outcome.confirmed]
    return hits[:MOST]


def _related(hit: Hit) -> Related:
    i = hit.incident
    return Related(
        i.id, i.problem, i.cause, i.fix, i.source, i.settled, hit.share,
        hit.outcome.confirmed, hit.outcome.wrong,
    )  # fmt: skip


def _asked(finding: Finding) -> str:
    lines = list(dict.fromkeys(cite.text for cite in _leaves(finding.cites) if cite.text))
    return "\n".join(lines[:LINES]) or finding.summary


def _leaves(cites: Iterable[Cite]) -> Iterable[LogCite]:
    for cite in cites:
        if isinstance(cite, LogCite):
            yield cite
        elif isinstance(cite, DerivedCite):
            yield from _leaves(cite.inputs)
