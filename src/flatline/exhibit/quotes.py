"""The lines around what is cited, masked, for reading evidence where it stands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from flatline.exhibit.model import Quote
from flatline.facts import Facts
from flatline.model import Cite, DerivedCite, LogCite, Verdict

AROUND = 3
"""Lines shown before and after a cited one."""
QUOTES = 150
"""Citations that are shown in context; the others keep their own line."""


def quotes_of(facts: Facts, verdict: Verdict) -> dict[tuple[str, int], Quote]:
    """By source and cited line. One that cannot be read again has no quote."""
    made: dict[tuple[str, int], Quote] = {}
    for cite in _log_cites(_cited(verdict)):
        key = cite.source, cite.line
        if key in made:
            continue
        first = max(cite.line - AROUND, 1)
        lines = facts.lines(cite.source, first, cite.line + AROUND - first + 1)
        if len(lines) > cite.line - first:
            made[key] = Quote(first, lines)
        if len(made) >= QUOTES:
            break
    return made


def _cited(verdict: Verdict) -> Iterator[Sequence[Cite]]:
    for claim in (*verdict.shows, *verdict.implies):
        yield claim.cites
    for judged in verdict.findings:
        yield judged.finding.cites
    for ruled_out in verdict.ruled_out:
        yield ruled_out.cites
    for attempt in verdict.run.attempts:
        yield attempt.cites


def _log_cites(groups: Iterator[Sequence[Cite]]) -> Iterator[LogCite]:
    """In the order of their citation, the inputs of derived values last."""
    left: list[Cite] = [cite for group in groups for cite in group]
    seen: set[int] = set()
    at = 0
    while at < len(left):
        cite = left[at]
        at += 1
        if isinstance(cite, LogCite):
            yield cite
        elif isinstance(cite, DerivedCite) and id(cite) not in seen:
            seen.add(id(cite))
            left += cite.inputs
