"""
Whose log, or whose lines of the one that all write, end before it went to the rendezvous that the
others waited at in vain.
"""

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
ALL_LINES, SHOWN = 5000, 4
"""Lines of a log that all write: of more, something had begun."""
_LABELLED = re.compile(r"\s*(\d{1,5}): ")
_OF_LAUNCHER = re.compile(r"(?i)torch|rdzv|rendezvous|elastic")
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
    return _labelled(facts, code)


def _labelled(facts: Facts, code: str) -> tuple[tuple[Place, ...], Claim | None]:
    """The nodes of the few tasks that srun labels, of one on each node, that speak of something
    else alone, where all others gave up to wait.  Who says nothing may have been ended first."""
    mine = [f for f in failures(facts) if f.attempt == facts.last.n]
    told, sources = {f.place.task: f.cite for f in mine}, {f.cite.source for f in mine}
    nodes = facts.job.nodes if facts.job is not None else ()
    silent = [task for task in range(len(nodes)) if task not in told]
    few = len(silent) == 1 or 0 < len(silent) <= FEW_RATIO * len(told)
    if not few or len(told) < LEAST - 1 or len(sources) > 1 or any(f.family != code for f in mine):
        return (), None
    said = _by_label(facts, sources.pop())
    # With more labels than nodes there are several tasks on each: whose node is whose is unknown.
    if None in told or said.keys() != {*range(len(nodes))}:
        return (), None
    if any(facts.on_host(Place(task=n)).host not in (None, node) for n, node in enumerate(nodes)):
        return (), None
    if any(_OF_LAUNCHER.search(cite.text) for task in silent for cite in said[task]):
        return (), None
    places = tuple(facts.on_host(Place(host=nodes[task])) for task in silent)
    text = f"Of {len(nodes)} tasks alone that of {name_places(places)} never spoke of the"
    last, gave_up = (said[task][-1] for task in silent), [*told.values()][:SHOWN]
    return places, claim(f"{text} rendezvous, and all others gave up", *last, *gave_up)


def _by_label(facts: Facts, source: str) -> dict[int, list[LogCite]]:
    """The lines of each task in a log that all write; nothing where it is too long."""
    read = next((read for read in facts.log_files(LOG) if read.source == source), None)
    out: dict[int, list[LogCite]] = defaultdict(list)
    if read is None or read.lines > ALL_LINES:
        return out
    for line, text in enumerate(facts.lines(source, 1, read.lines), 1):
        if found := _LABELLED.match(text):
            out[int(found[1])].append(LogCite(source, line, text))
    return out


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
