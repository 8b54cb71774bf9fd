"""What stands beside something that is gone, a process or a card: which of the two came first,
their lines do not say."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from flatline.facts import Facts
from flatline.judging.crashes import of_family
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


CLOCKS = timedelta(minutes=15)
"""By which a host's clock may be off that nobody sets: a judgement."""
HEAVY = 0.9
"""What a kernel says of hardware that does not come back by itself."""
BY_ITS_CLOCK = (
    "Whether the card that the kernel of that host calls failed is the one: steps were made after"
    " that line, unless the host's clock is behind."
)


def beside_a_failed_card(facts: Facts, finding: Finding) -> Finding:
    """A kernel that failed is not surely the program's where the host's own log tells of a failed
    card some minutes before, or after: the run went on by a clock that may be wrong."""
    if (finding.code, finding.fault_class) != ("A3", "cuda") or finding.onset is None:
        return finding
    at, hosts = finding.onset, {facts.on_host(place).host for place in finding.culprits} - {None}
    told = any(
        f.cite.source in facts.kernel_files
        and f.strength >= HEAVY
        and f.cite.at is not None
        and abs(f.cite.at - at) <= CLOCKS
        and facts.on_host(f.place).host in hosts
        for f in of_family(facts, "B2", fatal=False)
    )
    if not told:
        return finding
    strength, most = min(finding.strength, UNSURE), min(finding.most, UNSURE)
    left = (*finding.cannot_decide, BY_ITS_CLOCK)
    return replace(finding, strength=strength, most=most, cannot_decide=left)
