"""
What two logs show of one program that ran on one host alone and on several by sockets, or with a
setting that makes launches wait and without it.

NCCL names the hosts and what carries its messages, and losses of equal steps tell the same work.
"""

from __future__ import annotations

from itertools import permutations
from math import isfinite
from statistics import median

from flatline.facts import Facts, Track
from flatline.judging.claims import claim
from flatline.judging.losses import CARRIED, SOCKETS
from flatline.judging.tries_beside import COMMON, OTHER_LOSS
from flatline.judging.two_tries import (
    FASTER,
    FASTER_ALONE,
    MOST,
    SURE,
    command,
    host_of,
    waits_for_launches,
)
from flatline.model import Action, Finding, Match


def two_logs(facts: Facts, code: str) -> Finding | None:
    """None where the logs tell of other hosts, other work, or hardly slower steps."""
    return _over_sockets(facts, code) or _waiting(facts, code)


def _waiting(facts: Facts, code: str) -> Finding | None:
    """The same program with the setting, above its first step, and without it.  Logs that are of
    ranks, or more than two, are of one run, whose first rank may print its settings alone."""
    said = {m.cite.source: m for m in reversed(facts.tagged("launch-blocking"))}
    if len(facts.tracks) != 2 or facts.tracks[0].place != facts.tracks[1].place:
        return None
    for slow, fast in permutations(facts.tracks, 2):
        match = said.get(slow.source)
        if match is None or fast.source in said:
            continue
        pairs, (slow_s, fast_s) = _beside(slow, fast)
        if len(pairs) < COMMON or slow_s < FASTER * fast_s:
            continue
        if match.cite.line > slow.lines[0] or not _as_called(facts, slow, fast):
            continue
        was, is_ = ([track.loss[pair[side]] for pair in pairs]
                    for side, track in enumerate((slow, fast)))  # fmt: skip
        if abs(median(was) - median(is_)) > OTHER_LOSS * abs(median(is_)):
            continue
        cites = (
            facts.point(track, pairs[-1][side]).cite for side, track in enumerate((slow, fast))
        )
        text = f"A step took {slow_s:.3g} s in the one log and {fast_s:.3g} s in the other"
        shown = claim(f"{text}, with losses alike", *cites)
        return waits_for_launches(code, slow.attempts[pairs[-1][0]], (slow_s, fast_s), shown,
                                  claim("One log shows the setting, the other does not",
                                        match.cite))  # fmt: skip
    return None


def _as_called(facts: Facts, *tracks: Track) -> bool:
    """Whether those of the logs that show their command show the same, but for what it sets."""
    said = (command(facts.lines(track.source, 1, track.lines[0])) for track in tracks)
    return len({one for one in said if one is not None}) <= 1


def _beside(slow: Track, fast: Track) -> tuple[list[tuple[int, int]], tuple[float, float]]:
    """The points of equal steps in both, and what one took in each."""
    at = {fast.steps[i]: i for i in range(len(fast)) if _timed(fast, i)}
    pairs = [(i, at[slow.steps[i]]) for i in range(len(slow))
             if slow.steps[i] in at and _timed(slow, i)]  # fmt: skip
    if not pairs or slow.format != fast.format or slow.source == fast.source:
        return [], (0.0, 0.0)
    took = [median(track.step_s[pair[side]] for pair in pairs)
            for side, track in enumerate((slow, fast))]  # fmt: skip
    return pairs, (took[0], took[1])


def _over_sockets(facts: Facts, code: str) -> Finding | None:
    said: dict[str, list[Match]] = {}
    for match in facts.matches:
        if match.signature.id == CARRIED:
            said.setdefault(match.cite.source, []).append(match)
    hosts = {source: {host for m in of if (host := host_of(m.cite.text))}
             for source, of in said.items()}  # fmt: skip
    for many, one in permutations((t for t in facts.tracks if t.source in said), 2):
        theirs = hosts[many.source]
        sockets = {m.groups["transport"] for m in said[many.source]} == {SOCKETS}
        if (
            len(hosts[one.source]) == 1
            and len(theirs) > 1
            and sockets
            and hosts[one.source] < theirs
        ):
            found = _slower(facts, code, many, one, said[many.source])
            if found is not None:
                return found
    return None


def _slower(facts: Facts, code: str, many: Track, one: Track, said: list[Match]) -> Finding | None:
    pairs, (slow, fast) = _beside(many, one)
    if len(pairs) < COMMON:
        return None
    losses = [abs(many.loss[i] - one.loss[n]) <= OTHER_LOSS * abs(one.loss[n]) for i, n in pairs]
    if slow < len({host_of(m.cite.text) for m in said}) * FASTER_ALONE * fast or not all(losses):
        return None
    cites = (facts.point(track, pairs[-1][side]).cite for side, track in enumerate((many, one)))
    text = (
        f"A step took {slow:.3g} s over several hosts and {fast:.3g} s on one, with losses alike"
    )
    return Finding(
        code=code,
        summary=f"Over several hosts, by sockets, a step takes {slow:.3g} s; on one alone it takes"
        f" {fast:.3g}",
        fault_class="slow-interconnect",
        attribution="infrastructure",
        shows=(claim("NCCL says that it uses sockets between the hosts", said[0].cite,
                     said[-1].cite),
               claim(text, *cites)),
        implies=(claim("Steps take as long as what their collectives send does.", said[0].cite),),
        strength=SURE,
        most=MOST,
        severity="degraded",
        scope="all",
        attempt=many.attempts[pairs[-1][0]],
        ended_run=False,
        cannot_decide=("Whether these hosts have a faster network: their adapters would tell.",),
        actions=(Action("rerun", "Have NCCL use the fast adapters where there are any; else send"
                        " less: accumulate gradients, shard within a host.",
                        "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET"),),
        resubmit="fix_first",
    )  # fmt: skip


def _timed(track: Track, index: int) -> bool:
    known = isfinite(track.step_s[index]) and isfinite(track.loss[index])
    return known and track.steps[index] >= 0
