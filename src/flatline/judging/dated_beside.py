"""A record of Kubernetes that a person's shell shows above the log, told by its own time."""

from __future__ import annotations

import re
from datetime import datetime

from flatline.facts import Facts
from flatline.model import Match

NEAR = 4
"""Lines of one condition: its message, reason, status, times and type."""
AFTER = 2
"""Steps that may still have been made once the record says that the pods are to go."""
SOON_S = 900.0
"""From the last step: as much as most runs print within, and longer than pods are given to end."""
_TIME = re.compile(
    r"\b[Ll]ast ?[Tt]ransition ?[Tt]ime\"?:\s{1,40}\"?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)"
)


def dated_beside(facts: Facts, tag: str) -> tuple[Match, ...]:
    """Tagged conditions of which the time stands beside them, after which their attempt made no
    more steps, by the dates of these."""
    return tuple(
        m for m in facts.tagged(tag)
        if m.signature.origin == "kubernetes" and m.cite.at is None
        and (at := _time(facts, m)) is not None and _ends_by(facts, m.attempt, at.timestamp())
    )  # fmt: skip


def _time(facts: Facts, match: Match) -> datetime | None:
    """That of the nearest line, above first: kubectl prints it first of a condition."""
    line, first = match.cite.line, max(1, match.cite.line - NEAR)
    texts = facts.lines(match.cite.source, first, 2 * NEAR + 1)
    near = sorted(enumerate(texts, first), key=lambda one: (abs(one[0] - line), one[0] > line))
    told = next((found[1] for _, text in near if (found := _TIME.search(text))), None)
    return None if told is None else datetime.fromisoformat(told)


def _ends_by(facts: Facts, attempt: int, at: float) -> bool:
    """Whether steps are dated, and the attempt's last ones were made shortly before that time."""
    spans = [(t, t.of_attempt(attempt)) for t in facts.tracks if not t.assumed]
    times = [t.at[i] for t, span in spans for i in span if t.at[i] == t.at[i]]
    last = max((time for time in times if time <= at), default=None)
    after = sum(time > at for time in times)
    return last is not None and at - last <= SOON_S and after <= AFTER
