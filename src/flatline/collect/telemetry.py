"""
Which canonical signals a target carries, and which families are blind for want of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flatline.collect.files import walk
from flatline.collect.numbers import Numbers
from flatline.facts import METRICS
from flatline.families import Family
from flatline.model import Gap
from flatline.signals import NEEDS, SIGNALS, Signal

if TYPE_CHECKING:
    from flatline.sources.metrics import Carried


@dataclass(frozen=True, slots=True)
class Blind:
    """A family and, of each need in numbers that is not met, signals any one of which would do."""

    code: str
    family: str
    missing: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Telemetry:
    """What was found: carried signals, those known and not carried, families without them."""

    carried: tuple[Carried, ...]
    absent: tuple[Signal, ...]
    blind: tuple[Blind, ...]
    hosts: tuple[str, ...]
    gaps: tuple[Gap, ...]


def telemetry(targets: tuple[str, ...], families: Sequence[Family]) -> Telemetry:
    """Reads the metrics of the targets alone. Raises `UsageError` for a target that is not
    there."""
    gaps: list[Gap] = []
    found = walk(targets, gaps)
    numbers = Numbers([file for file in found if file.kind == METRICS], gaps)
    carried = numbers.carried()
    names = {entry.signal for entry in carried}
    blind = []
    for family in families:
        missing = tuple(group for need in family.needs for group in _unmet(need, numbers, names))
        if missing:
            blind.append(Blind(family.code, family.name, tuple(dict.fromkeys(missing))))
    return Telemetry(
        carried=tuple(sorted(carried, key=lambda c: (list(SIGNALS).index(c.signal), c.exporter))),
        absent=tuple(signal for name, signal in SIGNALS.items() if name not in names),
        blind=tuple(blind),
        hosts=tuple(sorted({host for entry in carried for host in entry.hosts})),
        gaps=tuple(gap for gap in gaps if gap.where is None or "metric" in gap.need),
    )


def _unmet(need: str, numbers: Numbers, names: set[str]) -> list[tuple[str, ...]]:
    """The groups a need in numbers lacks; nothing for one that logs or records may meet."""
    parts = need.split("|")
    if any(part not in NEEDS or part in ELSEWHERE or numbers.measured(part) for part in parts):
        return []
    return [group for part in parts for group in NEEDS[part] if not names & set(group)]


ELSEWHERE = ("training throughput over time",)
"""Needs in numbers that a dated log meets as well."""
