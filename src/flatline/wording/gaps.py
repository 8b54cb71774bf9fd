"""What could not be had, each trouble said once, on every surface."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from flatline.model import DerivedCite, Gap, LogCite, Verdict

ZONE = "time zone"
NAMES = 8
"""Needs of one reason that are named before the rest is counted."""
_TIME = re.compile(r"\b\d\d:\d\d(?::\d\d)?\b")
_MEANING = re.compile(r" \(.*\)$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Trouble:
    """One reason, what was not had for it, and where."""

    need: str
    reason: str
    wheres: tuple[str, ...]


def troubles(verdict: Verdict) -> tuple[Trouble, ...]:
    """
    The gaps of a verdict: those of one need that differ in times alone are one, and so are needs
    that one reason leaves open everywhere.

    That times are of an assumed zone is said only where the verdict sets them beside others.
    """
    alike: dict[tuple[str, str], list[Gap]] = {}
    for gap in verdict.gaps:
        if gap.need != ZONE or _compared(verdict):
            alike.setdefault((gap.need, _TIME.sub("", gap.reason)), []).append(gap)
    by_reason: dict[str, list[Trouble]] = {}
    for same in alike.values():
        wheres = tuple(dict.fromkeys(gap.where for gap in same if gap.where))
        one = Trouble(same[0].need, same[0].reason, wheres)
        by_reason.setdefault(one.reason, []).append(one)
    return tuple(_joined(by_reason))


def _joined(by_reason: dict[str, list[Trouble]]) -> Iterator[Trouble]:
    for reason, each in by_reason.items():
        everywhere = [one for one in each if not one.wheres]
        if len(everywhere) < 2:
            yield from each
            continue
        names = [_MEANING.sub("", one.need) for one in everywhere]
        left = len(names) - NAMES
        more = f" and {left} more" if left > 0 else ""
        yield Trouble(", ".join(names[:NAMES]) + more, reason, ())
        yield from (one for one in each if one.wheres)


def _compared(verdict: Verdict) -> bool:
    """Whether its own evidence is of more than logs, so that clocks meet."""
    cites = [cite for claim in (*verdict.shows, *verdict.implies) for cite in claim.cites]
    while cites:
        cite = cites.pop()
        if isinstance(cite, DerivedCite):
            cites += cite.inputs
        elif not isinstance(cite, LogCite):
            return True
    return False
