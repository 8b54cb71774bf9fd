"""
The one host whose software does not fit, where every host has a log of its own.

The same program runs on all of them.  One log ends with an error of what its host provides; all
the others go on to what that one never says: they came past it.  Logs that only end tell nothing,
for their programs may have been ended before they came to it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from flatline.facts import LOG, Facts
from flatline.judging.claims import claim
from flatline.judging.leads import Lead
from flatline.judging.named_logs import host_of_log, known_hosts
from flatline.model import Claim, LogCite, Place

ENV = "env"
LEAST, LINES, SHOWN = 3, 4_000, 3
"""Hosts, for one other may say what is its own duty; and lines of a log that shows no more than a
start."""
_VARIES = re.compile(r"\b(?:0x)?[0-9a-f]{6,}\b|\d+")
_ENDS = re.compile(
    r"(?i)\bsig[a-z]{3,4}\b|\bsignals?\b|terminat|\bkill|abort|cancel|shut(?:ting)? ?down|\bexit"
    r"|\breset by\b|refused|\bbroken\b|\bclosed?\b|\blost\b|\bleft\b|fail|error|timed? ?out"
    r"|restart"
)
"""What is said once one of the others is gone."""
_OF_LAUNCHER = re.compile(
    r"(?i)rdzv|rendezvous|elastic|c10d|socket|\bstore\b|\bsrun\b|slurm|\bagents?\b|launch|retry"
    r"|\bwait\w* .{0,20}\b(?:nodes?|peers?|workers?|agents?|master|hosts?|others?)\b|\bjoin"
)
"""Who comes first says that it waits for the last, whose program has not begun then."""
_SHARED_BUILD = re.compile(r"torch_extensions|/\.?cache/|/\.triton|\bninja\b|file too short")
"""Built by one process while others load it: who came too early fails, on any host."""
_INSTALLED, _WORD = re.compile(r"/(?:site|dist)-packages/"), re.compile(r"[A-Za-z]{3}")


@dataclass(slots=True)
class _Said:
    """The kinds of lines that a host's logs show, each with the first of them: those of any place,
    and those from before anything ended or failed there."""

    kinds: set[str] = field(default_factory=set)
    before: dict[str, LogCite] = field(default_factory=dict)


def alone_raised(facts: Facts, found: Lead) -> tuple[Lead, Claim | None]:
    """With the host as the place; as it is where the others did not all come past it, or one of
    them raised something too."""
    hosts = known_hosts(facts)
    known = found.scope == "all" or any(place.host for place in found.culprits)
    if found.first.fault_class != ENV or known or len(hosts) < LEAST:
        return found, None
    if facts.has_progress or len(facts.attempts) > 1:
        return found, None
    logs = {read.source: host_of_log(facts, read.source)
            for read in facts.log_files(LOG) if 0 < read.lines <= LINES}  # fmt: skip
    raised_on = {logs.get(f.cite.source) for f in (*found.group, *found.others)}
    host = raised_on.pop() if len(raised_on) == 1 else None
    if host not in hosts or not _of_every_host(found, at_an_end=host in (hosts[0], hosts[-1])):
        return found, None
    if any(logs.get(crash.cite.source) != host and not _of_the_end(found, crash.exception)
           for crash in facts.crashes):  # fmt: skip
        return found, None
    said = _said(facts, {source: on for source, on in logs.items() if on is not None})
    if said.keys() != {*hosts}:
        return found, None
    own = said.pop(host or "")
    past = _past(own, said.values())
    if not past:
        return found, None
    some = next(iter(said.values()))
    first = min(past, key=lambda kind: (some.before[kind].source, some.before[kind].line))
    cites = [one.before[first] for one in said.values()]
    text = f"The logs of the {len(said)} other hosts show what comes next: they came past it"
    place = Place(host=host)
    group = tuple(replace(f, place=replace(f.place, host=host)) for f in found.group)
    of_group = next(f for f in group if f.cite == found.first.cite)
    culprits = tuple(replace(p, host=host) for p in found.culprits) or (place,)
    found = replace(found, first=of_group, group=group, scope="place", culprits=culprits)
    return found, claim(text, *cites[:SHOWN])


def _of_every_host(found: Lead, *, at_an_end: bool) -> bool:
    """Whether all hosts load it, whenever they do.  The first one and the last have duties of
    their own: what the program's own modules import as they are imported is none."""
    crash = found.first.crash
    if _SHARED_BUILD.search(found.first.cite.text):
        return False
    frames = () if crash is None else crash.frames
    own = [frame for frame in frames if not _INSTALLED.search(frame.file.replace("\\", "/"))]
    by_import = all(frame.function == "<module>" for frame in frames) and len(own) > 1
    return by_import or not at_an_end


def _of_the_end(found: Lead, exception: str) -> bool:
    """Whether an exception of another host is none of this kind, and says that a peer is gone."""
    crash = found.first.crash
    alike = crash is not None and crash.exception == exception
    return not alike and re.search(r"Dist|Connection|Signal|ChildFailed", exception) is not None


def _said(facts: Facts, logs: Mapping[str, str]) -> dict[str, _Said]:
    """By host."""
    out: dict[str, _Said] = defaultdict(_Said)
    lengths = {read.source: read.lines for read in facts.log_files(LOG)}
    for source, host in logs.items():
        heads = [crash.head.line for crash in facts.crashes if crash.cite.source == source]
        stops = [m.cite.line for m in facts.at_line(source, 1, lengths[source])
                 if m.signature.role not in ("benign", "marker")]  # fmt: skip
        ends = min((*heads, *stops), default=lengths[source] + 1)
        for line, text in enumerate(facts.lines(source, 1, lengths[source]), 1):
            if not (kind := _kind(text, host)):
                continue
            out[host].kinds.add(kind)
            if line < ends and _ENDS.search(text):
                ends = line
            elif line < ends and kind not in out[host].before:
                out[host].before[kind] = LogCite(source, line, facts.text(source, line))
    return out


def _kind(text: str, host: str) -> str:
    """A line without its numbers and the name of its host."""
    return _VARIES.sub("#", text.replace(host, "@").replace(host.partition(".")[0], "@")).strip()


def _past(own: _Said, others: Iterable[_Said]) -> list[str]:
    """The kinds of lines that all the others show and this one lacks, where it began as they
    did."""
    common = set.intersection(*(set(one.before) for one in others))
    if not own.before or not common.issuperset(own.before):
        return []
    beyond = common - own.kinds
    return [k for k in beyond if _WORD.search(k) and not _OF_LAUNCHER.search(k)]
