"""
Rows of a list of Kubernetes' events that tell of what happened before a pod was started again.

The list gives how long ago each was last seen.  A pod that was marked for deletion, and whose
container was started since, runs: what had ended was a try before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from flatline.facts import Facts
from flatline.model import LogCite, Match

MOST_LINES = 2_000
_AGE = re.compile(r"\s{0,8}((?:\d{1,5}[dhms]){1,3})\s")
_PART = re.compile(r"(\d{1,5})([dhms])")
_POD = re.compile(r"\bpod/([\w.-]{1,253})")
_STARTED = re.compile(r"\sStarted\s.{0,300}?\bStarted container\b")
_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}


def before_a_start(facts: Facts, match: Match) -> LogCite | None:
    """The row that tells of the start, of the same pod and seen later by more than ages are
    rounded; None where there is none, or the line is no such row."""
    pod, age = _POD.search(match.cite.text), _age(match.cite.text)
    if pod is None or age is None:
        return None
    for line, text in _rows(facts, match.cite.source):
        since = _age(text) if _STARTED.search(text) else None
        named = _POD.search(text)
        if since is None or named is None or named[1] != pod[1]:
            continue
        if since[0] + since[1] < age[0]:
            return LogCite(match.cite.source, line, text)
    return None


def _rows(facts: Facts, source: str) -> Iterator[tuple[int, str]]:
    yield from enumerate(facts.lines(source, 1, MOST_LINES), 1)


def _age(text: str) -> tuple[int, int] | None:
    """The seconds since, and the unit to which they were cut."""
    found = _AGE.match(text)
    parts = _PART.findall(found[1]) if found else []
    if not parts:
        return None
    return sum(int(n) * _SECONDS[unit] for n, unit in parts), _SECONDS[parts[-1][1]]
