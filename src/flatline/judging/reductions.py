"""
What part of its steps a run spends in reducing gradients, where it prints that.

DeepSpeed and Megatron-LM print one rank's time, in which it may have waited for a late one;
Megatron-Core prints the shortest and the longest of all ranks, and the rank that comes last waits
for none: the shortest is what the network takes.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from statistics import median

from flatline.facts import Facts, Track
from flatline.judging.printed_waits import by_clock
from flatline.model import LogCite

LEAST_LINES = 3
"""The first is left out: communicators are made and kernels compiled in it."""
AGREES = 0.1
"""By which the parts of one line may differ from what most steps took, where no more was kept of
a log."""
LEAST_STEPS = 10
"""Lines of steps that tell it: by chance one of a few is long."""
_ACROSS = re.compile(r": \([0-9.]{1,16}, [0-9.]{1,16}\)")
"""The shortest and the longest of all ranks."""
_TIMED = re.compile(
    r"(?i)(?:sync|all[-_ ]?reduce|comm(?:unication)?|nccl|collectives?|barrier)"
    r"(?:[ _](?:time|wait)(?:_m?s)?\b|_m?s\b|[ :=]{1,4}[0-9.]{1,12} ?m?s(?:ec)?\b)"
)
"""What says that it is a time: a share, a size and a loss may be called so as well."""
_BOTH = re.compile(
    r"(?i)\b(?:bwd|backward) ?[+&/] ?(?:all[-_ ]?reduce|(?:grad[-_ ]?)?sync|comm(?:unication)?)\b"
    r"[ :=]{1,4}([0-9]{1,9}(?:\.[0-9]{1,9})?)"
)
_FORWARD = re.compile(r"(?i)\b(?:fwd|forward)[ :=]{1,4}([0-9]{1,9}(?:\.[0-9]{1,9})?)")
BACKWARD = 3.0
"""Times the forward pass: what the backward one computes takes twice as long, and once more where
activations are computed anew."""
_PART = re.compile(r"\b([a-z][\w-]*) ?\.{0,80}: \(?([0-9]{1,12}(?:\.[0-9]{1,12})?)")
_REDUCED = re.compile(
    r"(?:bwd|backward)_allreduce(_microstep)?|backward-(?:params-)?all-?reduce|all-grads-sync"
)
_WHOLE = re.compile(
    r"(?:fwd|bwd|forward|backward|step)(?:_microstep)?|(?:forward|backward)-compute|optimizer"
)


PROFILED = "step-parts"
_WITHIN = re.compile(r"\([^()]{0,200}\)")
"""What a part is made of."""
_NAMED = re.compile(r"\b([A-Za-z][\w-]{0,40})[=:] ?([0-9]{1,9}(?:\.[0-9]{1,9})?) ?(ms|s)\b")
_MOVED = re.compile(r"comm(?:unication)?(?:_|$)|all[-_]?reduce|collective")


@dataclass(frozen=True, slots=True)
class Reduction:
    """Seconds spent in reducing gradients, those of the steps they were of, and lines that say so.
    `least` marks times of the rank that waited least."""

    lost_s: float
    wall_s: float
    cites: tuple[LogCite, ...]
    least: bool


def reduction(facts: Facts) -> Reduction | None:
    """None where fewer than three lines of the last attempt tell it, or one that its steps bear
    out."""
    kinds: dict[str, list[tuple[float, float, LogCite]]] = defaultdict(list)
    usual = _usual_ms(facts)
    least: dict[str, bool] = {}
    for match in facts.tagged("reduction-time"):
        if match.attempt != facts.last.n:
            continue
        parts = {name: float(value) for name, value in _PART.findall(match.cite.text.lower())}
        kind = next((name for name in parts if _REDUCED.fullmatch(name)), None)
        if kind is None:
            continue
        across = _ACROSS.search(match.cite.text) is not None
        whole = usual if across else _whole(parts, kind)
        if whole:
            kinds[kind].append((parts[kind], whole, match.cite))
            least[kind] = across
    for kind in sorted(kinds, key=lambda kind: kind.endswith("_microstep")):
        told = kinds[kind][1:]
        if len(told) >= LEAST_LINES - 1:
            return _sum(told, least=least[kind])
    return _of_steps(facts) or _of_one(facts, kinds) or _of_a_profile(facts)


def _of_one(
    facts: Facts, kinds: Mapping[str, Sequence[tuple[float, float, LogCite]]]
) -> Reduction | None:
    """By a single line, whose parts add up to what steps took by the clock."""
    usual, track = _usual_ms(facts), facts.main_track(facts.last.n)
    if usual is None or track is None or len(track.of_attempt(facts.last.n)) < LEAST_STEPS:
        return None
    for told in kinds.values():
        fits = [one for one in told if abs(one[1] - usual) <= AGREES * usual]
        if fits:
            return _sum(fits[-1:], least=False)
    return None


def _of_a_profile(facts: Facts) -> Reduction | None:
    """By what a loop that profiled some of its steps says of their parts, which add up to what
    steps took: by the last such line."""
    track = facts.main_track(facts.last.n)
    span = [i for i in track.of_attempt(facts.last.n) if track.steps[i] >= 0] if track else []
    if track is None or len(span) < LEAST_STEPS:
        return None
    usual = _usual_ms(facts) or 1e3 * by_clock(track, span)
    for match in reversed([m for m in facts.tagged(PROFILED) if m.attempt == facts.last.n]):
        text = _WITHIN.sub("", match.cite.text)
        parts = {name.lower(): float(told) * (1.0 if unit == "ms" else 1e3)
                 for name, told, unit in _NAMED.findall(text)}  # fmt: skip
        moved = [took for name, took in parts.items() if _MOVED.search(name)]
        if len(moved) == 1 and abs(sum(parts.values()) - usual) <= AGREES * usual:
            return _sum([(moved[0], sum(parts.values()), match.cite)], least=False)
    return None


def _of_steps(facts: Facts) -> Reduction | None:
    """By what the lines of steps say of it; of several ranks that do, at each step by the one that
    waited least, whose share it is where all of them are heard."""
    tracks = [track for track in facts.tracks if _tells(facts, track)]
    if not tracks:
        return None
    main = tracks[0]
    waits: dict[int, float] = {}
    for track in tracks:
        own = {track.steps[i]: track.sync_s[i] for i in track.of_attempt(facts.last.n)
               if isfinite(track.sync_s[i]) and track.steps[i] >= 0}  # fmt: skip
        waits = own if not waits else {s: min(waits[s], own[s]) for s in waits.keys() & own.keys()}
    span = [i for i in main.of_attempt(facts.last.n) if main.steps[i] in waits][1:]
    each = by_clock(main, span)
    cites = {i: facts.point(main, i).cite for i in span}
    told = [
        (1e3 * beyond, 1e3 * whole, cites[i])
        for i in span
        if isfinite(whole := main.step_s[i] if isfinite(main.step_s[i]) else each)
        and waits[main.steps[i]] <= whole
        and (beyond := _beyond_computing(cites[i].text, waits[main.steps[i]])) is not None
    ]
    if len(told) < LEAST_STEPS or 2 * len(told) < len(span):
        return None
    if not all(
        _TIMED.search(cite.text) or _BOTH.search(cite.text) for *_, cite in told[:LEAST_STEPS]
    ):
        return None
    return _sum(told, least=len(tracks) > 1 and len(tracks) == facts.world_size)


def _beyond_computing(text: str, seconds: float) -> float | None:
    """Of a time that is told of the backward pass and the reduction in one, what no backward pass
    takes by that of the forward one, where it is told."""
    both, forward = _BOTH.search(text), _FORWARD.search(text)
    if both is None:
        return seconds
    if forward is None or not float(both[1]):
        return None
    return seconds * max(0.0, 1 - BACKWARD * float(forward[1]) / float(both[1]))


def _tells(facts: Facts, track: Track) -> bool:
    told = [i for i in track.of_attempt(facts.last.n) if isfinite(track.sync_s[i])]
    return len(told) >= LEAST_STEPS


def _whole(parts: dict[str, float], kind: str) -> float:
    """Milliseconds of all that the line tells apart; Megatron's reduction stands beside its
    backward pass, DeepSpeed's within."""
    own = parts[kind] if kind == "backward-params-all-reduce" else 0.0
    return own + sum(value for name, value in parts.items() if _WHOLE.fullmatch(name))


def _usual_ms(facts: Facts) -> float | None:
    track = facts.main_track(facts.last.n)
    if track is None:
        return None
    told = [track.step_s[i] for i in track.of_attempt(facts.last.n) if isfinite(track.step_s[i])]
    return 1e3 * median(told) if told else None


def _sum(told: Sequence[tuple[float, float, LogCite]], *, least: bool) -> Reduction:
    return Reduction(
        lost_s=sum(reduced for reduced, _, _ in told) / 1e3,
        wall_s=sum(whole for _, whole, _ in told) / 1e3,
        cites=tuple(cite for _, _, cite in told),
        least=least,
    )
