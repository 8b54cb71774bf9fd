"""What became of a run that was taken back or lost its node, and was begun again."""

from __future__ import annotations

import re
from dataclasses import replace
from math import isfinite
from statistics import median

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
BEHIND = "Whether it should have begun so far behind the try before: nothing says what it loaded."
SLOWER = "Why its steps take so much longer than those of the try before."
ANEW_PART, LONGER, LEAST_STEPS = 0.5, 1.2, 10
"""A sound rerun goes on at its last checkpoint, at the pace that it had; repeats of one run differ
by 2 % (docs/design/slow-runs.md)."""
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
    elif _far_behind(facts):
        question = BEHIND
    elif _slower(facts):
        question = SLOWER
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


def _far_behind(facts: Facts) -> bool:
    """Whether it begins far below where a try before it had come to, and nothing says that it
    went on from a checkpoint."""
    before = max((a.last_step or 0 for a in facts.attempts[:-1]), default=0)
    marks = facts.markers_of("resume", "checkpoint_loaded")
    if any(m.attempt == facts.last.n for m in marks):
        return False
    track = facts.main_track(facts.last.n)
    steps = [track.steps[i] for i in track.of_attempt(facts.last.n)] if track else []
    return 0 <= min(steps, default=before) < ANEW_PART * before


def _slower(facts: Facts) -> bool:
    """Whether its steps, by what they say they took, take much longer than those before."""
    track = facts.main_track(facts.last.n)
    took = [] if track is None else [
        [track.step_s[i] for i in track.of_attempt(n) if isfinite(track.step_s[i])]
        for n in (facts.last.n - 1, facts.last.n)
    ]  # fmt: skip
    if len(took) < 2 or min(map(len, took)) < LEAST_STEPS:
        return False
    before, now = map(median, took)
    return now > LONGER * before


def _from_the_start(facts: Facts) -> bool:
    """Whether its first step is no further than its second lies from that, and nothing is known
    of how far an earlier try had come."""
    if any(a.last_step is not None for a in facts.attempts[:-1]) or facts.markers_of("resume"):
        return False
    track = facts.main_track(facts.last.n)
    steps = sorted({track.steps[i] for i in track.of_attempt(facts.last.n)}) if track else []
    return len(steps) > 1 and 0 <= steps[0] <= max(1, steps[1] - steps[0])
