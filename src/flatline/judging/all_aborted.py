"""Tasks that aborted, all of them or so that nothing tells why."""

from __future__ import annotations

from collections.abc import Sequence, Set

from flatline.facts import LOG, Facts
from flatline.model import Cite, LogCite

FEW_LINES = 40


def unheard(facts: Facts, told: Sequence[Cite], tasks: Set[int | None]) -> bool:
    """Whether no log holds more than a launcher's few lines, or the task of every node aborted and
    nobody but their launcher says so: what one of them did by itself is not told then."""
    if not facts.has_progress and all(r.lines <= FEW_LINES for r in facts.log_files(LOG)):
        return True
    launchers = {(e.cite.source, e.cite.line) for e in facts.exits if isinstance(e.cite, LogCite)}
    known = all(isinstance(c, LogCite) and (c.source, c.line) in launchers for c in told)
    nodes = len(facts.job.nodes) if facts.job is not None else 0
    return known and nodes > 1 and tasks == {*range(nodes)}
