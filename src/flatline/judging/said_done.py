"""Whether a program had said that it was done before something was told of it."""

from __future__ import annotations

from flatline.facts import Facts
from flatline.model import LogCite


def once_done(facts: Facts, cite: LogCite, attempt: int) -> LogCite | None:
    """The line by which the program, or its framework, had said before in the same file that it
    was done, where no further steps were made."""
    said = facts.memo("said done", _said_done).get((cite.source, attempt))
    return said if said is not None and said.line < cite.line else None


def _said_done(facts: Facts) -> dict[tuple[str, int], LogCite]:
    """The first such line of each file and attempt."""
    said = [(m.cite, m.attempt) for m in facts.tagged("end-ok")]
    said += [(m.cite, m.attempt) for m in facts.markers_of("finished")]
    first: dict[tuple[str, int], LogCite] = {}
    for cite, attempt in sorted(said, key=lambda one: -one[0].line):
        if not facts.went_on(cite, attempt):
            first[cite.source, attempt] = cite
    return first
