"""
What a log shows of one program that ran twice: with a setting and without it, or over several
hosts by sockets and on one alone.

Only what a shell or a person wrote between the two tells what was changed; steps of both are
timed, and hardly anything else makes one some times as fast as the other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import isfinite
from statistics import median

from flatline.facts import Facts, Track
from flatline.judging.claims import claim
from flatline.judging.losses import CARRIED, SOCKETS
from flatline.judging.tries_beside import alike
from flatline.model import Action, Claim, Finding, LogCite, Match

FASTER, FASTER_ALONE = 1.5, 2.0
"""Times as fast without: repeats differ by percents.  A host alone has half of the work to do, or
none of the waiting; of more hosts, as many times as much.  A judgement."""
STEPS, FIRST = 8, 2
"""Steps of each that are timed, behind the first ones, which compile."""
BETWEEN = 40
"""Lines between the two, at most."""
SURE, MOST = 0.75, 0.79
_PROMPT = r"^\s{0,4}(?:[\w.@:~/()-]{0,80} ?[$#%]|\+{1,3}) +"
_COMMAND = re.compile(
    _PROMPT + r"((?:\w+=\S{0,200} +)*(?:torchrun|accelerate|deepspeed|srun|mpirun|python)\b.+)$"
)
_ASSIGNED = re.compile(r"^(?:\w+=\S{0,200} +)+")
_WAITS = r"(?:CUDA_LAUNCH_BLOCKING|HIP_LAUNCH_BLOCKING|AMD_SERIALIZE_KERNEL)"
_UNSET = re.compile(
    _PROMPT + rf"(?:unset\b.{{0,200}}\b{_WAITS}\b(?!=)|(?:export )?{_WAITS}=[\"']?0\b)"
)
_SAME = re.compile(
    r"(?i)\bsame (?:commit|code|config|command|script|run|job|setup|settings|hardware)\b"
)
_ALONE = re.compile(
    r"(?i)\b(?:on|with|using) (?:one|a single|single|1)[ -](?:node|host|machine)\b"
)
_HOST = re.compile(r"\b([\w.-]{1,80}):\d{1,10}:\d{1,10} \[\d{1,3}\] (?:NCCL|RCCL) ")


@dataclass(frozen=True, slots=True)
class _Tries:
    """A try and the one behind it in the same log: seconds of a step, the lines between them, and
    what shows how long steps took."""

    track: Track
    first: int
    took: tuple[float, float]
    between: tuple[LogCite, ...]
    shown: Claim


def two_tries(facts: Facts, code: str) -> Finding | None:
    """None where nothing tells what was changed, or where it made little difference."""
    found = (_weighed(facts, code, tries) for tries in _tries(facts))
    return next((one for one in found if one is not None), None)


def _weighed(facts: Facts, code: str, tries: _Tries) -> Finding | None:
    slow, fast = tries.took
    if slow >= FASTER * fast:
        said = [m for m in facts.tagged("launch-blocking") if m.attempt == tries.first]
        unset = next((cite for cite in tries.between if _UNSET.search(cite.text)), None)
        same = next((cite for cite in tries.between if _SAME.search(cite.text)), None)
        if said and unset is None and same is not None and _learns_alike(facts, tries):
            shows = claim("The log shows the setting in the one alone, and else they are the same",
                          said[0].cite, same)  # fmt: skip
            return waits_for_launches(code, tries.first, tries.took, tries.shown, shows)
        if said and unset is not None and _same_command(facts, tries):
            shows = claim("The log shows the setting, and that it was taken away", said[0].cite,
                          unset)  # fmt: skip
            return waits_for_launches(code, tries.first, tries.took, tries.shown, shows)
    if slow >= FASTER_ALONE * fast:
        sockets = _by_sockets(facts, tries.first)
        alone = next((cite for cite in tries.between if _ALONE.search(cite.text)), None)
        if sockets and alone is not None:
            return _network(code, tries, sockets, alone)
    return None


def _tries(facts: Facts) -> list[_Tries]:
    found = []
    for track in facts.tracks:
        timed = [(n, _timed(track, n)) for n in range(facts.last.n + 1)]
        for (n, a), (m, b) in pairwise(timed):
            last, first = (track.lines[track.of_attempt(n)[-1]] if a else 0,
                           track.lines[track.of_attempt(m)[0]] if b else 0)  # fmt: skip
            if not a or not b or first <= last or first - last > BETWEEN:
                continue
            lines = facts.lines(track.source, last + 1, first - last - 1)
            between = tuple(LogCite(track.source, at, text, track.place)
                            for at, text in enumerate(lines, last + 1))  # fmt: skip
            took = tuple(median(track.step_s[i] for i in points) for points in (a, b))
            cites = (facts.point(track, points[-1]).cite for points in (a, b))
            text = f"A step took {took[0]:.3g} s in the one try and {took[1]:.3g} s in the next"
            found.append(_Tries(track, n, (took[0], took[1]), between, claim(text, *cites)))
    return found


def _timed(track: Track, attempt: int) -> Sequence[int]:
    """Points of an attempt that tell how long a step took, where they are enough."""
    span = [i for i in track.of_attempt(attempt) if isfinite(track.step_s[i])][FIRST:]
    return span if len(span) >= STEPS else ()


def _learns_alike(facts: Facts, tries: _Tries) -> bool:
    """Whether equal steps of both have the same losses, and the second shows no such setting."""
    track, n = tries.track, tries.first
    at = {track.steps[i]: i for i in track.of_attempt(n)}
    pairs = [(at[track.steps[i]], i) for i in track.of_attempt(n + 1) if track.steps[i] in at]
    old, new = ([pair[side] for pair in pairs] for side in (0, 1))
    until = track.lines[track.of_attempt(n)[-1]]
    set_ = any(m.cite.line > until for m in facts.tagged("launch-blocking"))
    return len(pairs) >= STEPS and not set_ and alike(track, old, new)


def _same_command(facts: Facts, tries: _Tries) -> bool:
    """Whether both began with the same command, but for what it sets."""
    begins = tries.track.lines[tries.track.of_attempt(tries.first)[0]]
    start = max(1, begins - BETWEEN)
    above = facts.lines(tries.track.source, start, begins - start)
    said = command(above)
    return said is not None and said == command([cite.text for cite in tries.between])


def command(texts: Sequence[str]) -> str | None:
    """The last command that a shell shows in these lines, but for what it sets."""
    found = [found for text in texts if (found := _COMMAND.search(text)) is not None]
    return _ASSIGNED.sub("", found[-1][1]).strip() if found else None


def _by_sockets(facts: Facts, attempt: int) -> list[Match]:
    """Lines by which NCCL says so of several hosts, where none of the try says another."""
    said = [m for m in facts.matches if m.signature.id == CARRIED and m.attempt == attempt]
    hosts = {host for m in said if (host := host_of(m.cite.text)) is not None}
    only = {m.groups["transport"] for m in said} == {SOCKETS}
    return said if only and len(hosts) > 1 else []


def host_of(text: str) -> str | None:
    """The host that a line of NCCL names."""
    found = _HOST.search(text)
    return None if found is None else found[1]


def waits_for_launches(
    code: str, attempt: int, took: tuple[float, float], shown: Claim, setting: Claim
) -> Finding:
    """Steps that took so long with the setting, which a claim shows, and without it."""
    slow, fast = took
    return Finding(
        code=code,
        summary="Every kernel launch waited for the one before it: without that debugging setting"
        f" a step takes {fast:.3g} s, not {slow:.3g}",
        fault_class="launch-blocking",
        attribution="job",
        shows=(setting, shown),
        implies=(claim("The host launches a kernel only when the last has ended.",
                       setting.cites[0]),),
        strength=SURE,
        most=MOST,
        severity="degraded",
        scope="all",
        attempt=attempt,
        ended_run=False,
        cannot_decide=("What else that was changed between the two has a part in it.",),
        actions=(Action("fix", "Leave it unset.", "unset CUDA_LAUNCH_BLOCKING"),),
        resubmit="fix_first",
    )  # fmt: skip


def _network(code: str, tries: _Tries, said: Sequence[Match], alone: LogCite) -> Finding:
    slow, fast = tries.took
    told = claim("The next try is said to be of one host", alone)
    return replace(
        waits_for_launches(code, tries.first, tries.took, tries.shown, told),
        summary=f"Over several hosts, by sockets, a step takes {slow:.3g} s; on one alone it takes"
        f" {fast:.3g}",
        fault_class="slow-interconnect",
        attribution="infrastructure",
        shows=(claim("NCCL says that it uses sockets between the hosts", said[0].cite), told,
               tries.shown),
        implies=(claim("Steps take as long as what their collectives send does.", said[0].cite),),
        cannot_decide=("Whether a step does as much in both.",
                       "Whether these hosts have a faster network: their adapters would tell."),
        actions=(Action("rerun", "Have NCCL use the fast adapters where there are any; else send"
                        " less: accumulate gradients, shard within a host.",
                        "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET"),),
    )  # fmt: skip
