"""Which host a log is of, by its name or by what it says of itself."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from flatline.facts import LOG, Facts
from flatline.judging.by_endpoint import by_endpoint
from flatline.judging.pods_read import pods_read
from flatline.judging.timeline import by_host, instant
from flatline.model import Claim, LogCite, Place
from flatline.rank_hosts import named_after

MEASURED = ("gpu_power_watts", "gpu_utilization_ratio", "host_procs_running")
HEAD_LINES, MOST_HEADS = 40, 256
_HOSTNAME = re.compile(r"\bhost(?:name)?[=: ]{1,3}([\w.-]{1,64})")
_WORD = re.compile(r"[\w-]+(?:\.[\w-]+)*")
ELSEWHERE = re.compile(
    r"(?i)\b(?:addresses of|connect[\w/]*(?: to)?(?: host)?|reach\w*|from|peer) [(\[]?\S+"
    r"|\b[a-z]\w{1,12}://\S+"
    r"|(?:master|addr|endpoint|rdzv|coordinator|server|store)[\w-]*[= :]+\S+"
)
"""Arguments and addresses that name the host which is connected to."""
_OWN = re.compile(
    r"(?i)(?:\b(?:running|start\w*|launch\w*|task|rank|process|worker|agent|pod)\b[^\n]{0,60}? on"
    r" (?:node |host )?|\bhost(?:name)?[=: ]{1,3}|\bnode(?: \d{1,5})?[=: ]{1,2}"
    r"|^\W{0,2})([a-z][\w-]*(?:\.[\w-]+)*)"
)
LABEL = 80
"""Characters at the beginning of a line in which who wrote it stands."""
_MASTER = re.compile(r"(?i)\bmaster[_-]addr[=: ]{1,2}[\"']?([\w.-]{1,80})")
_NODE_RANK = re.compile(r"(?:\bNODE_RANK[= ]|--node[_-]rank[= ])(\d{1,5})\b")


def known_hosts(facts: Facts) -> tuple[str, ...]:
    """The run's hosts or, where nothing names them, those that were measured."""
    return facts.hosts or facts.memo("named_logs.measured", _measured)


def _measured(facts: Facts) -> tuple[str, ...]:
    if facts.window is None:
        return ()
    start, end = (moment.timestamp() for moment in facts.window)
    for signal in filter(facts.measured, MEASURED):
        query = f"max by (host) (max_over_time({signal}[{max(1, int(end - start))}s]))"
        read = by_host(instant(facts, query, end))
        if read is not None:
            return tuple(sorted(facts.node_of(host) for host in read.rows))
    return ()


def host_of_log(facts: Facts, source: str) -> str | None:
    """By its name, which may be that of a pod that was listed or whose GPUs were read, or like
    that of the host at which all meet, by its first line that names a host of the run or, of a log
    that says which node it is and names no other, by the host that srun says the task of that
    number was on, or by the node of that number where the first one is the master."""
    stem = PurePosixPath(source).stem
    named = named_after(source, known_hosts(facts))
    if named is None:
        pod = named_after(source, tuple(facts.nodes)) or stem
        named = node if (node := facts.node_of(pod)) != pod else None
    if named is None and facts.job is None and (read := pods_read(facts)):
        named = read.get(named_after(source, tuple(read)) or "")
    named = named or by_endpoint(facts).get(source)
    if named is not None:
        return named
    lines = facts.lines(source, 1, HEAD_LINES)
    alone = _alone_named(lines, known_hosts(facts))
    if alone is not None and alone in _named_in_others(facts, source):
        alone = None  # the host of a batch script stands above each of its logs
    told = {int(n) for text in lines for n in _NODE_RANK.findall(text)}
    hosts = {facts.node_of(e.place.host) for e in facts.exits
             if e.reporter == "srun" and e.place.host and {e.place.task} == told}  # fmt: skip
    host = hosts.pop() if len(hosts) == 1 else _numbered(facts, lines, told)
    if host is None or facts.job is None:
        return alone
    own = [n for n in _HOSTNAME.findall("\n".join(lines)) if facts.node_of(n) != host]
    return None if own or alone not in (None, host) else host


def _numbered(facts: Facts, lines: Sequence[str], told: set[int]) -> str | None:
    """The node of the job with the number that a launcher was given: Slurm numbers them in the
    order of its list, the first of which scripts take for the master."""
    nodes = facts.job.nodes if facts.job is not None else ()
    masters = {facts.node_of(host) for line in lines for host in _MASTER.findall(line)}
    if len(told) != 1 or not nodes or masters != {nodes[0]} or max(told) >= len(nodes):
        return None
    return nodes[min(told)]


def _named_in_others(facts: Facts, source: str) -> set[str]:
    """The hosts that the heads of other logs name alone; nothing of the logs of processes, of
    which a host has several."""
    reads = {read.source: read.place for read in facts.log_files(LOG)[:MOST_HEADS]}
    own = reads.get(source)
    if own is not None and (own.task is not None or own.rank is not None):
        return set()
    heads = facts.memo("named_logs.heads", lambda facts: {
        one: _alone_named(facts.lines(one, 1, HEAD_LINES), known_hosts(facts)) for one in reads
    })  # fmt: skip
    return {host for one, host in heads.items() if one != source and host is not None}


def _alone_named(lines: Sequence[str], hosts: Sequence[str]) -> str | None:
    """The one host that the first lines of a log name, where one of them says that it is of it;
    whom it connects to does not count, and a log of several hosts names others soon."""
    named: dict[str, bool] = {}
    for line in lines:
        words = set(_WORD.findall(ELSEWHERE.sub(" ", line)))
        own = {told[1] for told in _OWN.finditer(line)}
        for host in words.intersection(hosts):
            named[host] = named.get(host, False) or host in own
    (alone, says), *others = named.items() or [("", False)]
    return alone if says and not others else None


def hosts_with_logs(facts: Facts) -> set[str]:
    """Hosts of which there is a log of each."""
    told = (host_of_log(facts, read.source) for read in facts.log_files(LOG))
    return {host for host in told if host is not None}


def labelled(facts: Facts, place: Place, shows: Claim) -> Place:
    """With the host that its own line, which is cited first, names in its label; else with that of
    the log that it stands in, where each rank has one of its own."""
    place, line = facts.on_host(place), shows.cites[0]
    if place.host is not None or not isinstance(line, LogCite) or line.place.rank != place.rank:
        return place
    words = set(re.findall(r"[\w.-]+", line.text[:LABEL]))
    named = [host for host in known_hosts(facts) if words & {host, host.partition(".")[0]}]
    if len(named) != 1:
        ranks = {(track.source, track.place.rank) for track in facts.tracks}
        alone = len(ranks) == len({source for source, _ in ranks}) > 1
        named = [host for host in (host_of_log(facts, line.source),) if alone and host]
    return replace(place, host=named[0]) if len(named) == 1 else place
