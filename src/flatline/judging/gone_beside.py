"""A hang beside a process that is gone: which of the two came first, their lines do not say."""

from __future__ import annotations

from dataclasses import replace

from flatline.facts import Facts
from flatline.model import Finding, LogCite

GONE, LINES = "process-gone", 10
UNSURE = 0.74
OPEN = (
    "Whether the worker that is gone was ended by the watchdog or was what the others waited for:"
    " Ray prints the lines of its processes in no order of their own."
)


def beside_the_gone(facts: Facts, finding: Finding) -> Finding:
    """A collective hang is not told surely where Ray says beside it that a worker died."""
    if finding.code != "C2" or finding.order is None:
        return finding
    source, line = finding.order
    told = [m.cite for m in facts.tagged(GONE) if m.signature.origin == "ray"]
    near = any(
        isinstance(cite, LogCite) and cite.source == source and abs(cite.line - line) <= LINES
        for cite in told
    )
    if not near:
        return finding
    strength, most = min(finding.strength, UNSURE), min(finding.most, UNSURE)
    left = (*finding.cannot_decide, OPEN)
    return replace(finding, strength=strength, most=most, cannot_decide=left)
