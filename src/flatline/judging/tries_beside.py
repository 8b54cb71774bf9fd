"""The same steps of two tries in one log, the later much slower, and what was set in between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from statistics import median

from flatline.facts import Facts, Track
from flatline.judging.claims import claim
from flatline.judging.losses import CARRIED, FELL_BACK, SOCKETS, WHY_NOT, fabric
from flatline.model import Action, Claim, Finding, LogCite, Match

COMMON = 8
"""Equal steps that both print: fewer may be those in which a program compiles and fills caches."""
SLOWER = 1.3
"""Times as long: repeats on other nodes differ by 2 %, and what is looked for costs far more."""
OTHER_LOSS = 0.2
"""By which the losses of equal steps may differ: beyond it another thing is trained."""
FED = 0.2
"""Of a step, what may be spent on waiting for data."""
TOLD_OF_BOTH = 0.86
BETWEEN_HOSTS = "] via NET/"
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class _Beside:
    """By how many times the last try's steps are longer, and the lines between the two."""

    times: float
    shows: Claim
    source: str
    between: tuple[int, int]


def slower_than_before(facts: Facts, code: str) -> Finding | None:
    """None where the steps are not the same, or nothing that slows them was set in between."""
    beside = _beside(facts)
    if beside is None:
        return None
    set_, earlier = _said(facts, beside, "launch-blocking")
    if set_ and not earlier:
        return _finding(facts, code, beside, set_, "launch-blocking")
    carried = [m for m in facts.matches if m.signature.id == CARRIED]
    now, before = _placed(carried, beside)
    if {m.groups["transport"] for m in now} != {SOCKETS}:
        return None
    over = [m.cite for m in now if BETWEEN_HOSTS in m.cite.text]
    if not over and len(facts.hosts) < 2:
        return None  # on a single host NCCL names a network as well
    if (other := fabric(before)) is not None:
        return _fell_back(facts, code, beside, (now[0].cite, other.cite))
    return (
        _finding(facts, code, beside, over, "slow-interconnect") if over and not before else None
    )


def _fell_back(facts: Facts, code: str, beside: _Beside, said: Sequence[LogCite]) -> Finding:
    """Both tries tell what carries their collectives, and sockets are new."""
    text = "NCCL says that it uses sockets; in the try before it named another network"
    return replace(
        _finding(facts, code, beside, said[:1], "slow-interconnect"),
        shows=(beside.shows, claim(text, *said)),
        implies=(claim(f"{FELL_BACK}.", *said),),
        strength=TOLD_OF_BOTH,
        cannot_decide=(WHY_NOT,),
    )


def _beside(facts: Facts) -> _Beside | None:
    track = facts.main_track(facts.last.n)
    if track is None or facts.last.n == 0:
        return None
    was, now = track.of_attempt(facts.last.n - 1), track.of_attempt(facts.last.n)
    at = {track.steps[i]: i for i in was if track.steps[i] >= 0}
    pairs = [(at[track.steps[i]], i) for i in now if track.steps[i] in at]
    pairs = [(a, b) for a, b in pairs if _timed(track, a) and _timed(track, b)]
    if len(pairs) < COMMON:
        return None
    old, new = ([pair[side] for pair in pairs] for side in (0, 1))
    old_s, new_s = (median(track.step_s[i] for i in part) for part in (old, new))
    waits = [track.data_s[i] for i in new if isfinite(track.data_s[i])]
    if new_s < SLOWER * old_s or (waits and median(waits) > FED * new_s):
        return None
    if not alike(track, old, new):
        return None
    shows = claim(
        f"Steps {track.steps[new[0]]} to {track.steps[new[-1]]} took {new_s:.3g} s each, and"
        f" {old_s:.3g} s in the try before, with losses alike",
        facts.point(track, new[-1]).cite, facts.point(track, old[-1]).cite,
    )  # fmt: skip
    return _Beside(new_s / old_s, shows, track.source, (track.lines[was[-1]], track.lines[now[0]]))


def _timed(track: Track, index: int) -> bool:
    return isfinite(track.step_s[index]) and track.step_s[index] > 0


def alike(track: Track, old: Sequence[int], new: Sequence[int]) -> bool:
    """Whether the losses of equal steps have the same level: single ones scatter with the seed."""
    if not all(track.has_loss[i] and isfinite(track.loss[i]) for i in (*old, *new)):
        return False
    before, after = (median(track.loss[i] for i in part) for part in (old, new))
    return abs(after - before) <= OTHER_LOSS * abs(before)


def _placed(matches: Sequence[Match], beside: _Beside) -> tuple[list[Match], list[Match]]:
    """Those between the two tries' steps, or later, and those of before."""
    own = [m for m in matches if m.cite.source == beside.source]
    last = beside.between[0]
    return [m for m in own if m.cite.line > last], [m for m in own if m.cite.line <= last]


def _said(facts: Facts, beside: _Beside, tag: str) -> tuple[list[LogCite], list[LogCite]]:
    now, before = _placed(facts.tagged(tag), beside)
    until = beside.between[1]
    return [m.cite for m in now if m.cite.line < until], [m.cite for m in before]


def _finding(
    facts: Facts, code: str, beside: _Beside, said: Sequence[LogCite], kind: str
) -> Finding:
    blocking = kind == "launch-blocking"
    what = (
        "a debugging setting makes every kernel launch wait for the one before it"
        if blocking
        else "its collectives go between hosts over sockets"
    )
    action = (
        Action("fix", "Unset CUDA_LAUNCH_BLOCKING (HIP_LAUNCH_BLOCKING, AMD_SERIALIZE_KERNEL).",
               "unset CUDA_LAUNCH_BLOCKING")
        if blocking
        else Action("fix", "Give the job nodes with a fast fabric, or make its adapters visible to"
                    " NCCL; until then let each step do more (accumulate gradients).")
    )  # fmt: skip
    return Finding(
        code=code,
        summary=f"Steps take {beside.times:.2g} times as long as in the try before: {what}",
        fault_class=kind,
        attribution="job" if blocking else "infrastructure",
        shows=(
            beside.shows,
            claim("Since then the log shows it, and not before", *said[:_SHOWN]),
        ),
        implies=(
            claim("What was set in between is the likeliest cause of it.", *said[:_SHOWN]),
        ),
        strength=0.65 if blocking else 0.6,
        severity="degraded",
        scope="all",
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=("Whether the try before was set so as well and did not say it, or something"
                       " else changed: one without it tells.",),
        actions=(action,),
        resubmit="fix_first",
    )  # fmt: skip
