"""A pod of the run that failed again and again, and of which nothing it printed was read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

from flatline.facts import LOG, Facts
from flatline.judging.belonging import known_pod
from flatline.judging.claims import claim, distinct
from flatline.judging.named_logs import hosts_with_logs
from flatline.model import Finding, Place

UNSURE = 0.79
TAG = "crash-loop"
_WAITS = ("C1", "C2")


def beside_a_crash_loop(facts: Facts, finding: Finding) -> Finding:
    """Ranks that wait say nothing of why one did not come: less sure, and that pod is named, where
    a list shows one that keeps failing and no log of it was read."""
    if finding.code not in _WAITS:
        return finding
    stems = {PurePosixPath(read.source).stem for read in facts.log_files(LOG)}
    rows = [
        match
        for match in facts.tagged(TAG)
        if known_pod(facts, match.groups["pod"], match.cite.source)
        and not any(match.groups["pod"].endswith(stem) for stem in stems)
        and facts.on_host(match.cite.place).host not in hosts_with_logs(facts)
    ]
    if not rows:
        return finding
    names = ", ".join(dict.fromkeys(match.groups["pod"] for match in rows))
    told = claim(
        f"A list of pods shows that {names} failed again and again", *(m.cite for m in rows)
    )
    places = distinct(Place(host=host) for m in rows if (host := m.cite.place.host) is not None)
    asked = (
        f"Why {names} failed: its log (kubectl logs --previous) and its description would tell,"
        " and were not read."
    )
    return replace(
        finding,
        strength=min(finding.strength, UNSURE),
        most=min(finding.most, UNSURE),
        shows=(*finding.shows, told),
        culprits=finding.culprits or places,
        scope="place" if finding.culprits or places else finding.scope,
        cannot_decide=(*finding.cannot_decide, asked),
    )
