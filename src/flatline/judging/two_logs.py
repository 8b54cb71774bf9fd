"""
What two logs show of one program that ran on one host alone and on several by sockets.

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
from flatline.judging.two_tries import FASTER_ALONE, MOST, SURE, host_of
from flatline.model import Action, Finding, Match


def two_logs(facts: Facts, code: str) -> Finding | None:
    """None where the logs tell of other hosts, other work, or hardly slower steps."""
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
    at = {one.steps[i]: i for i in range(len(one)) if _timed(one, i)}
    pairs = [(i, at[many.steps[i]]) for i in range(len(many))
             if many.steps[i] in at and _timed(many, i)]  # fmt: skip
    if len(pairs) < COMMON or many.format != one.format:
        return None
    slow, fast = (median(track.step_s[pair[side]] for pair in pairs)
                  for side, track in enumerate((many, one)))  # fmt: skip
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
