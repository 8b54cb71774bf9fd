"""
Ranks that nvidia-resiliency-ext's monitors ended while they made steps.

`ft_launcher` gives each rank a monitor of its own, which says that it heard nothing of the rank
for so long and then ends it (SIGKILL where nothing else is set).  A rank that is gone has lost the
monitor's socket and is no longer waited for: who is said to be unheard was there until then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

from flatline.facts import Facts
from flatline.judging.claims import number
from flatline.judging.last_printed import heard
from flatline.judging.watchdog_stuck import Aborted, made_through
from flatline.model import LogCite, Match, Place, ProcessExit

UNHEARD = "rank-monitor"
SIGNALS = (9, 15)
SOON = timedelta(seconds=300)
"""Launchers tell of a rank's end within their own interval and the time that they leave others."""
BELOW = 2
"""Lines behind the monitor's in which a launcher names the rank."""
_NAMED = re.compile(r"\b[Rr]ank (\d{1,6}) (?:is |was )?(?:considered|declared)\b.{0,12} dead")
_SECONDS = re.compile(r"\b(?:Waited|open for|section for) (\d{1,7})\.\d\d seconds")


def unheard(facts: Facts, attempt: int) -> Iterator[tuple[int | None, Match]]:
    """The lines by which monitors gave ranks up, and which those are."""
    for match in facts.tagged(UNHEARD):
        if match.attempt != attempt:
            continue
        rank = match.groups.get("rank")
        if rank is not None:
            yield int(rank), match
            continue
        below = facts.lines(match.cite.source, match.cite.line + 1, BELOW)
        found = next(filter(None, map(_NAMED.search, below)), None)
        yield None if found is None else int(found[1]), match


def ended_by_monitor(facts: Facts, event: ProcessExit) -> bool:
    """Whether that rank's monitor, or that of a rank in the launcher's own log where it names
    none, had given it up right before, and the kernel killed nothing."""
    if event.signal not in SIGNALS or facts.standing("oom-kill"):
        return False
    cite, own = event.cite, number(event.place)
    return isinstance(cite, LogCite) and any(
        (rank == own is not None or (own is None and cite.source == match.cite.source))
        and facts.after(cite, match.cite) is True
        and (cite.at is None or match.cite.at is None or cite.at - match.cite.at <= SOON)
        for rank, match in unheard(facts, event.attempt)
    )


def unheard_ranks(facts: Facts) -> Aborted | None:
    """None where one of those ranks is not known to have made steps all through that time, the
    kernel killed a process, or anything of the run is dated long after."""
    if facts.standing("oom-kill"):
        return None
    first: dict[int, Match] = {}
    for rank, match in unheard(facts, facts.last.n):
        if rank is None:
            return None
        first.setdefault(rank, match)
    times = [match.cite.at for match in first.values() if match.cite.at is not None]
    if not times or any(seen > max(times) + SOON for seen in heard(facts).values()):
        return None
    shown = [made_through(facts, rank, match, _seconds(match)) for rank, match in first.items()]
    proofs = [one for one in shown if one is not None]
    if len(proofs) < len(first):
        return None
    places = tuple(facts.on_host(Place(rank=rank)) for rank in first)
    return Aborted(tuple(first.values()), places, tuple(proofs), min(times))


def _seconds(match: Match) -> float:
    found = _SECONDS.search(match.cite.text)
    return float(found[1]) if found is not None else 0.0
