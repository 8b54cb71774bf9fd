"""A port that erred in a log which ends without any word of a failure."""

from __future__ import annotations

from dataclasses import replace

from flatline.facts import Facts
from flatline.model import Finding, LogCite

PORT = "nccl-ib-port-error"
UNSURE = 0.79
OPEN = (
    "Whether the run got over it, as it does where the port is back before the transport's retries"
    " are over: nothing read says that it failed."
)


def in_a_log_without_an_end(facts: Facts, finding: Finding) -> Finding:
    """Less sure where NCCL's word on its own port is all that there is, and no record tells how
    the run ended."""
    if finding.code != "C5" or facts.job is not None:
        return finding
    said = [cite for cite in finding.cites if isinstance(cite, LogCite)]
    ports = all(
        any(
            match.signature.id == PORT
            for match in facts.at_line(cite.source, cite.line, cite.line)
        )
        for cite in said
    )
    failed = facts.crashes or facts.exits or facts.tagged("timeout") or facts.tagged("lost-peer")
    if not said or not ports or failed:
        return finding
    return replace(finding, strength=min(finding.strength, UNSURE), most=min(finding.most, UNSURE),
                   cannot_decide=(*finding.cannot_decide, OPEN))  # fmt: skip
