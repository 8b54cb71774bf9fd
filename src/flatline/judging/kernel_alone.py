"""A host's kernel log that alone tells of a failure, where nothing shows that a run failed."""

from __future__ import annotations

from dataclasses import replace

from flatline.facts import Facts
from flatline.model import Finding, LogCite

UNSURE = 0.79
_OPEN = ("unknown", "running")
WHOSE = (
    "Whether it struck this run: its own log shows no step, and nothing read says that it failed."
)
WHEN = "Whether it struck this run: nothing read dates the run, or says that it failed."


def of_the_host_alone(facts: Facts, finding: Finding) -> Finding:
    """A line of the kernel's is not surely a run's end where no step of the run was read and it
    still goes on by its record, or has none: another job's process, or none, may have met it.
    Nor where steps were made, but no record and no time of theirs says when."""
    cites = [cite for claim in finding.shows for cite in claim.cites if isinstance(cite, LogCite)]
    alone = cites and all(cite.source in facts.kernel_files for cite in cites)
    undated = facts.job is None and facts.lived[0] is None
    told = facts.has_progress and not undated
    if not alone or told or facts.disposition not in _OPEN or not finding.ended_run:
        return finding
    strength, most = min(finding.strength, UNSURE), min(finding.most, UNSURE)
    left = (*finding.cannot_decide, WHEN if facts.has_progress else WHOSE)
    return replace(finding, strength=strength, most=most, cannot_decide=left)
