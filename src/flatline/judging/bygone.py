"""
What a kernel told of long before a run ended whose steps carry no times.

Processes that wait for storage go on once it serves, and a transport bridges a link that is down
for seconds: such a line ended the run only where the run ended, or its own log tells of a failure,
about then.  What is over at once, as a kill, may have been of another process.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from flatline.facts import ZONES_S, Facts
from flatline.model import Finding, LogCite, Match

SETTLED = timedelta(minutes=10)
"""After it was over. What failed of it fails at once, and its peers with the time-outs of their
collectives (torch 2.2 and later: ten minutes)."""
BREATH = 8
"""Lines between the two and what came of them."""
LASTED = "Whether it lasted until the run: its own log begins long after."
LONG_AGO = 0.28
"""Shown, and nobody is blamed for it: the run had begun to print since."""
DOUBTED = 0.79
"""Just short of confident."""
STORAGE_BACK, LINK_DOWN, LINK_UP = "storage-back", "link-down", "link-up"
ENDED_OTHERWISE = ("running", "completed", "timeout", "node_fail", "preempted")
LASTING = ("B2",)
"""Families of what lasts by itself: a GPU that failed stays failed until it is reset."""
PROGRAMS = "A3"
"""The family of what a kernel tells of a program's own fault: it ends that process alone."""
_INTERFACE = re.compile(
    r"(\S+?):? (?:NIC )?Link (?:is )?(?:down|up)\b|for interface ([^\s,]+)"
    r"|(\S+): port:? \d{1,2} (?:state:? |link )(?:down|active)\b",
    re.I,
)


def recovered(facts: Facts, match: Match) -> bool:
    """Whether the same kernel says that it was over, and neither the end of the run nor a failure
    in its own log is known to have come of it."""
    back = over(facts, match)
    if back is None:
        return False
    began, ended = match.cite.at, back.cite.at
    if began is None or ended is None:
        return not _at_its_end(facts, match, back)
    end = facts.lived[1]
    soon = end is not None and began <= end <= ended + SETTLED
    return not soon and not _failed(facts, began, ended + SETTLED)


def _at_its_end(facts: Facts, match: Match, back: Match) -> bool:
    """Whether undated lines of a log of the run say both in the breath in which its peers were
    lost, behind the last step."""
    cite = match.cite
    if cite.source in facts.kernel_files or facts.went_on(cite, match.attempt):
        return False
    first, last = cite.line - BREATH, back.cite.line + BREATH
    return any(
        m.cite.source == cite.source
        and first <= m.cite.line <= last
        and m.attempt == match.attempt
        for m in facts.tagged("lost-peer")
    )


def over(facts: Facts, match: Match) -> Match | None:
    """The line by which the same kernel says that what another tells of was over."""
    if not _lasts(match):
        return None
    link = LINK_DOWN in match.signature.tags
    wanted = interface(match) if link else match.groups["peer"]
    later = facts.memo("bygone.backs", _backs).get((match.cite.source, match.cite.place.host), [])
    for n in range(bisect_right(later, match.cite.line, key=lambda m: m.cite.line), len(later)):
        up = LINK_UP in later[n].signature.tags
        told = interface(later[n]) if up else later[n].groups.get("peer", wanted)
        if up == link and told is not None and told == wanted:
            return later[n]
    return None


def long_before(facts: Facts, finding: Finding) -> Finding:
    """The finding, less sure where all it rests on are kernels' lines from long before the end of
    a run of which nothing says whether it went on after them."""
    end = facts.now if facts.disposition == "running" else facts.lived[1]
    cites = [cite for cite in finding.cites if isinstance(cite, LogCite)]
    if cites and len(cites) == len(finding.cites) and _before_its_log(facts, cites):
        return replace(finding, strength=min(finding.strength, LONG_AGO),
                       most=min(finding.most, LONG_AGO),
                       cannot_decide=(*finding.cannot_decide, LASTED))  # fmt: skip
    if end is None or finding.code in LASTING or not cites or len(cites) < len(finding.cites):
        return finding
    if not all(_alone(facts, cite, end) for cite in cites):
        return finding
    open_ = "Whether the run went on after it: its steps carry no times."
    return replace(finding, most=min(finding.most, DOUBTED),
                   cannot_decide=(*finding.cannot_decide, open_))  # fmt: skip


def _before_its_log(facts: Facts, cites: Sequence[LogCite]) -> bool:
    """Whether kernels' lines are all much older than the first line that a log of the run dates;
    where a record or a step says when it began, such lines are not the run's at all."""
    own = facts.memo("bygone.own", _first_of_its_own)
    return own is not None and facts.lived[0] is None and all(
        cite.source in facts.kernel_files
        and cite.at is not None
        and (own - cite.at).total_seconds() > ZONES_S
        for cite in cites
    )  # fmt: skip


def _first_of_its_own(facts: Facts) -> datetime | None:
    cites = [
        *(match.cite for match in facts.matches),
        *(crash.cite for crash in facts.crashes),
        *(event.cite for event in facts.exits),
    ]
    return min(
        (cite.at for cite in cites
         if isinstance(cite, LogCite) and cite.at is not None
         and cite.source not in facts.kernel_files),
        default=None,
    )  # fmt: skip


def of_another_time(facts: Facts, match: Match) -> bool:
    """Whether a kernel's line from long before the end can have ended no run that goes on, came to
    its end or was ended by its scheduler, of which nothing else tells of a failure about then."""
    if len(facts.attempts) > 1:
        return False
    if facts.disposition not in ENDED_OTHERWISE:
        return _of_an_earlier_process(facts, match)
    end = facts.now if facts.disposition == "running" else facts.lived[1]
    lasts = match.signature.family in LASTING
    return end is not None and not lasts and _alone(facts, match.cite, end)


def _of_an_earlier_process(facts: Facts, match: Match) -> bool:
    """Whether a kernel told of what a program did, well before the record has this one begin, and
    its own log dates a failure long after.  The process that did it is told so at once and prints
    it, whatever zone the kernel's times are in; one that was killed says nothing."""
    at, end = match.cite.at, facts.lived[1]
    begins = [row.started_at for row in facts.jobs if row.started_at]
    if match.signature.family != PROGRAMS or at is None or end is None or not begins:
        return False
    own = facts.memo("bygone.failures", _dated)
    later = bool(own) and own[0] > at + SETTLED
    return later and min(begins) - at > SETTLED and _alone(facts, match.cite, end)


def _alone(facts: Facts, cite: LogCite, end: datetime) -> bool:
    """Whether a line of a kernel stands long before the end, beside nothing of the run's own."""
    if cite.source not in facts.kernel_files or cite.at is None or cite.at_assumed:
        return False
    lasts = any(_lasts(match) for match in facts.at_line(cite.source, cite.line, cite.line))
    return (
        not lasts
        and end - cite.at > SETTLED
        and facts.steps_after(cite, facts.last.n) is None
        and not _failed(facts, cite.at, cite.at + SETTLED)
    )


def _lasts(match: Match) -> bool:
    """Whether it lasts until the kernel says that it is over."""
    tags = match.signature.tags
    return LINK_DOWN in tags or ("storage" in tags and "peer" in match.groups)


def _backs(facts: Facts) -> dict[tuple[str, str | None], list[Match]]:
    """Lines that say so, of each kernel log and host in their order."""
    found: dict[tuple[str, str | None], list[Match]] = {}
    for match in sorted((*facts.tagged(STORAGE_BACK), *facts.tagged(LINK_UP)),
                        key=lambda m: m.cite.line):  # fmt: skip
        found.setdefault((match.cite.source, match.cite.place.host), []).append(match)
    return found


def interface(match: Match) -> str | None:
    found = _INTERFACE.search(match.cite.text)
    return None if found is None else found[1] or found[2] or found[3]


def _failed(facts: Facts, began: datetime, until: datetime) -> bool:
    """Whether the run's own log dates a failure between two moments."""
    told = facts.memo("bygone.failures", _dated)
    first = bisect_left(told, began)
    return first < len(told) and told[first] <= until


def _dated(facts: Facts) -> list[datetime]:
    said = [
        match.cite
        for match in facts.matches
        if match.signature.role in ("root", "cascade") or "timeout" in match.signature.tags
    ]
    said += [crash.cite for crash in facts.crashes if not crash.caught]
    own = (cite for cite in said if cite.source not in facts.kernel_files)
    return sorted(cite.at for cite in own if cite.at is not None and not cite.at_assumed)
