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
from flatline.judging.named_logs import host_of_log
from flatline.judging.unreached import lacking
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
        if len(logs) >= LEAST and not _few(len(silent), len(logs)):
            silent = _fell_behind(facts, logs, told)
        if len(logs) >= LEAST and _few(len(silent), len(logs)):
            return _named(facts, silent, len(logs) - len(silent))
    return _labelled(facts, code)


def _few(silent: int, logs: int) -> bool:
    came = logs - silent
    return came >= LEAST - 1 and silent > 0 and (silent == 1 or silent <= FEW_RATIO * came)


def _fell_behind(facts: Facts, logs: list[FileRead], told: set[str]) -> list[FileRead]:
    """The logs that end before the line that all others print last above the failure: who waits
    without a word has printed it, and is ended before it gives up.  A line may be some host's own
    duty: as many must be counted as missing as these logs are of."""
    gave_up, counted = [read for read in logs if read.source in told], lacking(facts)
    if not gave_up or counted is None or any(read.lines > LINES for read in logs):
        return []
    texts = {read.source: _masked(facts, read.source, read.lines) for read in logs}
    first = min(f.cite.line for f in failures(facts) if f.cite.source == gave_up[0].source)
    above = _masked(facts, gave_up[0].source, first - 1)
    others = [texts[read.source] for read in logs if read.source not in told]
    shared = (line for line in reversed(above) if line and any(line in text for text in others))
    last = next(shared, None)
    behind = [read for read in logs if last is not None and last not in texts[read.source]]
    _, came, world = counted
    return behind if (world - came) * len(logs) == len(behind) * world else []


def _masked(facts: Facts, source: str, lines: int) -> list[str]:
    return [_NUMBER.sub("#", line).strip() for line in facts.lines(source, 1, lines)]


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
        host = _host(facts, read)
        if read.source in said or host is None or not read.lines:
            return (), None
        places.append(facts.on_host(Place(host=host)))
        cites.append(LogCite(read.source, read.lines, facts.text(read.source, read.lines)))
    text = f"Of {came + len(silent)} logs alone that of {name_places(places)} ends before the"
    return tuple(places), claim(f"{text} rendezvous", *cites)


def _host(facts: Facts, read: FileRead) -> str | None:
    """The host of the job whose log it is by its name and what it says of itself, or the one that
    it names."""
    if read.lines > LINES:
        return None
    if (own := host_of_log(facts, read.source)) in facts.hosts:
        return own
    words = set(_WORD.findall("\n".join(facts.lines(read.source, 1, read.lines))))
    named = [host for host in facts.hosts if host in words]
    return named[0] if len(named) == 1 else None
