"""What became of a run that was taken back or lost its node, and was begun again."""

from __future__ import annotations

import re
from dataclasses import replace

from flatline.facts import Facts
from flatline.model import Finding, LogCite

ASSIGNED = "kubernetes-assigned"
_POD = re.compile(r"\bpods?/([a-z0-9][a-z0-9.-]{0,252})(?=[\s:]|$)")
_DRAWN = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}$")
"""What Kubernetes ends a name with that it draws (apimachinery/pkg/util/rand)."""
UNSURE = 0.79
UNHEARD = "Whether the rerun went on from the last checkpoint: no step of it was read."
FAILED = "What ended the rerun: it failed, and its node or its scheduler was not why."
NOT_ENDED = "How the rerun ended: what was read of it ends while it makes steps."
ANEW = (
    "Whether the rerun should have gone on from a checkpoint: it begins at its first steps, and no"
    " step of the try before was read."
)


def of_a_rerun(facts: Facts, finding: Finding) -> Finding:
    """A node that was lost, or the scheduler, is not surely the whole answer where the rerun is
    not shown to go on: it may have begun anew."""
    if finding.code not in ("F1", "F2"):
        return finding
    gone = facts.disposition in ("preempted", "requeued", "pending", "node_fail")
    anew = _begun_in_another_pod(facts, finding)
    if (finding.ended_run or gone) and not anew:
        return finding
    track = facts.main_track(facts.last.n)
    if anew or track is None:
        question = UNHEARD
    elif facts.disposition == "failed":
        question = FAILED
    elif facts.disposition == "unknown":
        question = NOT_ENDED
    elif _from_the_start(facts):
        question = ANEW
    else:
        return finding
    strength, most = min(finding.strength, UNSURE), min(finding.most, UNSURE)
    left = (*finding.cannot_decide, question)
    return replace(finding, strength=strength, most=most, cannot_decide=left)


def _begun_in_another_pod(facts: Facts, finding: Finding) -> bool:
    """Whether Kubernetes told, below a pod's end, that it placed another one of the same name but
    for what is drawn, and nothing shows its steps: what became of that is not known."""
    if facts.has_progress and len(facts.attempts) > 1:
        return False
    ends = [
        (cite, {_DRAWN.sub("", pod) for pod in _POD.findall(cite.text) if _DRAWN.search(pod)})
        for cite in finding.cites
        if isinstance(cite, LogCite)
    ]
    return any(
        match.signature.id == ASSIGNED
        and match.cite.source == cite.source
        and match.cite.line > cite.line
        and _DRAWN.sub("", match.groups["pod"]) in owners
        for cite, owners in ends
        for match in facts.matches
    )


def _from_the_start(facts: Facts) -> bool:
    """Whether its first step is no further than its second lies from that, and nothing is known
    of how far an earlier try had come."""
    if any(a.last_step is not None for a in facts.attempts[:-1]) or facts.markers_of("resume"):
        return False
    track = facts.main_track(facts.last.n)
    steps = sorted({track.steps[i] for i in track.of_attempt(facts.last.n)}) if track else []
    return len(steps) > 1 and 0 <= steps[0] <= max(1, steps[1] - steps[0])
