"""
What a log shows of one program that ran twice: with a setting and without it, or over several
hosts by sockets and on one alone.

Only what a shell or a person wrote above either tells what was changed; steps of both are
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
BETWEEN = 200
"""Lines between the two, at most: NCCL tells of each rank."""
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
    r"(?i)(?:^\W{0,12}|\b(?:on|with|using) )(?:one|a single|single|1)[ -](?:node|host|machine)\b"
    r"|\s--nnodes[= ]1\b"
)
_SEVERAL = re.compile(
    r"(?i)(?:^\W{0,12}|\b(?:on|over|across|with|using) )(?:[2-9]|[1-9]\d{1,3}|two|three|four"
    r"|eight) (?:nodes|hosts|machines)\b|\s--nnodes[= ](?:[2-9]|[1-9]\d{1,3})\b"
)
_HOST = re.compile(r"\b([\w.-]{1,80}):\d{1,10}:\d{1,10} \[\d{1,3}\] (?:NCCL|RCCL) ")


@dataclass(frozen=True, slots=True)
class _Tries:
    """A try and the one behind it in the same log: seconds of a step, the lines above each, and
    what shows how long steps took."""

    track: Track
    first: int
    took: tuple[float, float]
    above: tuple[LogCite, ...]
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
    return _over_hosts(facts, code, tries)


def _over_hosts(facts: Facts, code: str, tries: _Tries) -> Finding | None:
    """Whichever of the two came first, of the same work as far as its losses and rates tell."""
    late = int(tries.took[1] > tries.took[0])
    slow, fast = tries.took[late], tries.took[1 - late]
    heads = (tries.above, tries.between)
    if slow < FASTER_ALONE * fast or not _same_work(tries, late):
        return None
    sockets = _by_sockets(facts, tries, late, heads[late])
    alone = next((cite for cite in heads[1 - late] if _ALONE.search(cite.text)), None)
    if not sockets or alone is None:
        return None
    return _network(code, tries, late, sockets, alone)


def _same_work(tries: _Tries, late: int) -> bool:
    """Whether equal steps, where there are any, have losses alike, and what was done in a second
    is less as well."""
    track, n = tries.track, tries.first
    old, new = _equal_steps(tries)
    rates = [[track.throughput[i] for i in track.of_attempt(m) if isfinite(track.throughput[i])]
             for m in (n, n + 1)]  # fmt: skip
    if all(rates) and median(rates[1 - late]) < FASTER * median(rates[late]):
        return False
    return not old or alike(track, old, new)


def _tries(facts: Facts) -> list[_Tries]:
    found = []
    for track in facts.tracks:
        timed = [(n, _timed(track, n)) for n in range(facts.last.n + 1)]
        for (n, a), (m, b) in pairwise(timed):
            if not a or not b:
                continue
            last, first = track.lines[track.of_attempt(n)[-1]], track.lines[track.of_attempt(m)[0]]
            if first <= last or first - last > BETWEEN:
                continue
            took = tuple(median(seconds for _, seconds in points) for points in (a, b))
            cites = (facts.point(track, points[-1][0]).cite for points in (a, b))
            text = f"A step took {took[0]:.3g} s in the one try and {took[1]:.3g} s in the next"
            begins = track.lines[track.of_attempt(n)[0]]
            above = _lines(facts, track, max(1, begins - BETWEEN), begins)
            between = _lines(facts, track, last + 1, first)
            shown = claim(text, *cites)
            found.append(_Tries(track, n, (took[0], took[1]), above, between, shown))
    return found


def _lines(facts: Facts, track: Track, start: int, stop: int) -> tuple[LogCite, ...]:
    texts = enumerate(facts.lines(track.source, start, stop - start), start)
    return tuple(LogCite(track.source, at, text, track.place) for at, text in texts)


def _timed(track: Track, attempt: int) -> Sequence[tuple[int, float]]:
    """Points of an attempt with how long a step took, as they say or by their dates, where they
    are enough."""
    span = track.of_attempt(attempt)
    told = [(i, track.step_s[i]) for i in span if isfinite(track.step_s[i])]
    dated = [(b, (track.at[b] - track.at[a]) / (track.steps[b] - track.steps[a]))
             for a, b in pairwise(() if track.assumed else span)
             if track.at[b] > track.at[a] and track.steps[b] > track.steps[a] >= 0]  # fmt: skip
    timed = (told or dated)[FIRST:]
    return timed if len(timed) >= STEPS else ()


def _equal_steps(tries: _Tries) -> tuple[list[int], list[int]]:
    """The points of both tries at the same steps."""
    track, n = tries.track, tries.first
    at = {track.steps[i]: i for i in track.of_attempt(n)}
    pairs = [(at[track.steps[i]], i) for i in track.of_attempt(n + 1) if track.steps[i] in at]
    return [a for a, _ in pairs], [b for _, b in pairs]


def _learns_alike(facts: Facts, tries: _Tries) -> bool:
    """Whether equal steps of both have the same losses, and the second shows no such setting."""
    track = tries.track
    old, new = _equal_steps(tries)
    until = track.lines[track.of_attempt(tries.first)[-1]]
    set_ = any(m.cite.line > until for m in facts.tagged("launch-blocking"))
    return len(old) >= STEPS and not set_ and alike(track, old, new)


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


def _by_sockets(facts: Facts, tries: _Tries, late: int, head: Sequence[LogCite]) -> list[Match]:
    """Lines of the slower try by which NCCL says so, of several hosts, where none says another."""
    track, n = tries.track, tries.first
    ends = [track.lines[track.of_attempt(m)[-1]] for m in (n, n + 1)]
    before = track.of_attempt(n - 1) if n else ()
    begins = ends[0] if late else track.lines[before[-1]] if before else 0
    said = [m for m in facts.matches if m.signature.id == CARRIED
            and m.cite.source == track.source and begins < m.cite.line <= ends[late]]  # fmt: skip
    hosts = {host for m in said if (host := host_of(m.cite.text)) is not None}
    several = len(hosts) > 1 or any(_SEVERAL.search(cite.text) for cite in head)
    return said if several and {m.groups["transport"] for m in said} == {SOCKETS} else []


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


def _network(
    code: str, tries: _Tries, late: int, said: Sequence[Match], alone: LogCite
) -> Finding:
    slow, fast = tries.took[late], tries.took[1 - late]
    told = claim(f"The {'try before' if late else 'next try'} is said to be of one host", alone)
    return replace(
        waits_for_launches(code, tries.first + late, (slow, fast), tries.shown, told),
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
