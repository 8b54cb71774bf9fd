"""
What part of its steps a run spends in reducing gradients, where it prints that.

DeepSpeed and Megatron-LM print one rank's time, in which it may have waited for a late one;
Megatron-Core prints the shortest and the longest of all ranks, and the rank that comes last waits
for none: the shortest is what the network takes.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from statistics import median

from flatline.facts import Facts
from flatline.model import LogCite

LEAST_LINES = 3
"""The first is left out: communicators are made and kernels compiled in it."""
_PART = re.compile(r"\b([a-z][\w-]*) ?\.{0,80}: \(?([0-9]{1,12}(?:\.[0-9]{1,12})?)")
_REDUCED = re.compile(
    r"(?:bwd|backward)_allreduce(_microstep)?|backward-params-all-reduce|all-grads-sync"
)
_WHOLE = re.compile(
    r"(?:fwd|bwd|forward|backward|step)(?:_microstep)?|(?:forward|backward)-compute|optimizer"
)


@dataclass(frozen=True, slots=True)
class Reduction:
    """Seconds spent in reducing gradients, those of the steps they were of, and lines that say so.
    `least` marks times of the rank that waited least."""

    lost_s: float
    wall_s: float
    cites: tuple[LogCite, ...]
    least: bool


def reduction(facts: Facts) -> Reduction | None:
    """None where fewer than three lines of the last attempt tell it."""
    kinds: dict[str, list[tuple[float, float, LogCite]]] = defaultdict(list)
    usual = _usual_ms(facts)
    for match in facts.tagged("reduction-time"):
        if match.attempt != facts.last.n:
            continue
        parts = {name: float(value) for name, value in _PART.findall(match.cite.text.lower())}
        kind = next((name for name in parts if _REDUCED.fullmatch(name)), None)
        if kind is None:
            continue
        whole = usual if kind == "all-grads-sync" else _whole(parts, kind)
        if whole:
            kinds[kind].append((parts[kind], whole, match.cite))
    for kind in sorted(kinds, key=lambda kind: kind.endswith("_microstep")):
        told = kinds[kind][1:]
        if len(told) >= LEAST_LINES - 1:
            return _sum(told, least=kind == "all-grads-sync")
    return None


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
