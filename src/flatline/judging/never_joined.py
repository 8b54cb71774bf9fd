"""Whose log ends before it went to the rendezvous that the others waited at in vain."""

from __future__ import annotations

import re
from collections import defaultdict

from flatline.facts import LOG, Facts, FileRead
from flatline.judging.claims import claim, name_places
from flatline.judging.crashes import failures
from flatline.judging.waiting import FEW_RATIO
from flatline.model import Claim, LogCite, Place

LEAST, LINES = 3, 60
"""Logs of one series, and lines of one in which its host may be named."""
_NUMBER, _WORD = re.compile(r"\d+"), re.compile(r"[\w-]+(?:\.[\w-]+)*")


def never_joined(facts: Facts, code: str) -> tuple[tuple[Place, ...], Claim | None]:
    """The hosts of the few logs, of one for each node or task, in which nothing failed and nobody
    waited; nothing where a log names no host of the job, or several."""
    told = {f.cite.source for f in failures(facts) if f.family == code}
    series: dict[str, list[FileRead]] = defaultdict(list)
    for read in facts.log_files(LOG):
        series[_NUMBER.sub("#", read.source)].append(read)
    for logs in series.values():
        silent = [read for read in logs if read.source not in told]
        came = len(logs) - len(silent)
        few = len(silent) == 1 or len(silent) <= FEW_RATIO * came
        if len(logs) >= LEAST and came >= LEAST - 1 and silent and few:
            return _named(facts, silent, came)
    return (), None


def _named(
    facts: Facts, silent: list[FileRead], came: int
) -> tuple[tuple[Place, ...], Claim | None]:
    said = {m.cite.source for m in facts.matches if m.signature.role != "benign"}
    places, cites = [], []
    for read in silent:
        hosts = _hosts(facts, read)
        if read.source in said or len(hosts) != 1 or not read.lines:
            return (), None
        places.append(facts.on_host(Place(host=hosts.pop())))
        cites.append(LogCite(read.source, read.lines, facts.text(read.source, read.lines)))
    text = f"Of {came + len(silent)} logs alone that of {name_places(places)} ends before the"
    return tuple(places), claim(f"{text} rendezvous", *cites)


def _hosts(facts: Facts, read: FileRead) -> set[str]:
    """The job's hosts that a log names."""
    if read.lines > LINES:
        return set()
    text = "\n".join(facts.lines(read.source, 1, read.lines))
    words = set(_WORD.findall(text))
    return {host for host in facts.hosts if host in words}
