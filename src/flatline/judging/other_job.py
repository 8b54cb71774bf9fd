"""A finding that rests on a log named after another job than the one that was asked for."""

from __future__ import annotations

from dataclasses import replace

from flatline.facts import Facts
from flatline.model import Finding, LogCite
from flatline.signals import JOB_ASKED

UNSURE = 0.79


def of_another_job(facts: Facts, finding: Finding) -> Finding:
    """Less sure where all that shows it stands in such logs."""
    strange = {gap.where: gap.reason for gap in facts.gaps if gap.need == JOB_ASKED}
    said = [cite for cite in finding.cites if isinstance(cite, LogCite)]
    folded = not {*strange} <= {file.source for file in facts.files}  # as "n more"
    if not strange or not said or not all(folded or cite.source in strange for cite in said):
        return finding
    source = said[0].source
    reason = strange.get(source, next(iter(strange.values())))
    told = f"Whether {source} is of the job that was asked for: {reason}."
    strength, most = min(finding.strength, UNSURE), min(finding.most, UNSURE)
    return replace(finding, strength=strength, most=most,
                   cannot_decide=(*finding.cannot_decide, told))  # fmt: skip
