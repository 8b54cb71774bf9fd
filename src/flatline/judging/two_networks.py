"""
What two logs show of one program whose collectives went over a fabric in the one, and go over
sockets in the other.

NCCL falls back to sockets without an error; equal steps with equal losses tell that the same work
is done, and equal plans and numbers of ranks that as many do it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import isfinite
from statistics import median

from flatline.facts import Facts, Track
from flatline.judging.claims import claim
from flatline.judging.losses import CARRIED, FELL_BACK, SOCKETS, WHY_NOT, fabric
from flatline.judging.tries_beside import BETWEEN_HOSTS, COMMON, FED, OTHER_LOSS, SLOWER
from flatline.judging.two_tries import MOST, SURE
from flatline.model import Action, Finding, Match

_RANKS = re.compile(r"\bNCCL INFO .{0,80}\brank \d+ nranks (\d+)\b")


def two_networks(facts: Facts, code: str) -> Finding | None:
    """None where the run's own log names a fabric, no other names one alone, or what both do is
    not the same."""
    said: dict[str, list[Match]] = {}
    for match in facts.matches:
        if match.signature.id == CARRIED:
            said.setdefault(match.cite.source, []).append(match)
    slow = facts.main_track(facts.last.n)
    named = (
        {m.groups["transport"] for m in said.get(slow.source, ())} if slow is not None else set()
    )
    if slow is None or named != {SOCKETS} or not _several(facts, said):
        return None
    for fast in facts.tracks:
        if fabric(said.get(fast.source, ())) is not None and _same_work(facts, slow, fast):
            return _finding(facts, code, (slow, fast), said)
    return None


def _several(facts: Facts, said: Mapping[str, list[Match]]) -> bool:
    """Whether collectives go between hosts: on a single one NCCL names a network as well."""
    return len(facts.hosts) > 1 or any(
        BETWEEN_HOSTS in match.cite.text for of in said.values() for match in of
    )


def _same_work(facts: Facts, slow: Track, fast: Track) -> bool:
    """Whether both have the same plan, number of ranks and losses, and the fast one came first as
    far as its lines are dated."""
    planned = {one for one in (slow.planned, fast.planned) if one is not None}
    ranks = {one for one in (_ranks(facts, slow), _ranks(facts, fast)) if one is not None}
    later = isfinite(slow.at[0]) and isfinite(fast.at[0]) and fast.at[0] > slow.at[0]
    if slow.format != fast.format or len(planned) > 1 or len(ranks) > 1 or later:
        return False
    mine, theirs = (_points(track, track.loss) for track in (slow, fast))
    common = mine.keys() & theirs.keys()
    if len(common) < COMMON:
        return False
    levels = [
        median(track.loss[at[step]] for step in common)
        for track, at in ((slow, mine), (fast, theirs))
    ]
    return abs(levels[0] - levels[1]) <= OTHER_LOSS * abs(levels[1])


def _ranks(facts: Facts, track: Track) -> str | None:
    """How many ranks the communicator has that NCCL tells of first: those of parts come later."""
    lines = facts.lines(track.source, 1, track.lines[0])
    return next((found[1] for text in lines if (found := _RANKS.search(text))), None)


def _points(track: Track, numbers: Sequence[float]) -> dict[int, int]:
    """The points at which a step has this number, by step."""
    known = (i for i in range(len(track)) if track.steps[i] >= 0 and isfinite(numbers[i]))
    return {track.steps[i]: i for i in known if numbers[i] > 0}


def _finding(
    facts: Facts, code: str, tracks: tuple[Track, Track], said: Mapping[str, list[Match]]
) -> Finding | None:
    here, there = (_points(track, track.step_s) for track in tracks)
    common = sorted(here.keys() & there.keys())
    if len(common) < COMMON:
        return None
    slow, fast = (median(track.step_s[at[step]] for step in common)
                  for track, at in zip(tracks, (here, there), strict=True))  # fmt: skip
    waits = [tracks[0].data_s[here[n]] for n in common if isfinite(tracks[0].data_s[here[n]])]
    if slow < SLOWER * fast or (waits and median(waits) > FED * slow):
        return None
    networks = (said[track.source][0].cite for track in tracks)
    points = (facts.point(track, at[common[-1]]).cite
              for track, at in zip(tracks, (here, there), strict=True))  # fmt: skip
    told = claim("NCCL says that it uses sockets; in the other log it names another network",
                 *networks)  # fmt: skip
    return Finding(
        code=code,
        summary=f"By sockets a step takes {slow:.3g} s; in another log, over a fabric, {fast:.3g}",
        fault_class="slow-interconnect",
        attribution="infrastructure",
        shows=(
            claim(f"Equal steps took {slow:.3g} s in the one log and {fast:.3g} s in the other,"
                  " with losses alike", *points),
            told,
        ),
        implies=(claim(f"{FELL_BACK}.", *told.cites),),
        strength=SURE,
        most=MOST,
        severity="degraded",
        scope="all",
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=(WHY_NOT, "Whether both logs are of the same program: nothing but their"
                       " steps, losses and plan says so."),
        actions=(Action("fix", "See why NCCL found no adapter: the devices and libraries of the"
                        " fabric in the container, and what the pod or job asks for.",
                        "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET"),),
        resubmit="fix_first",
    )  # fmt: skip
