"""
File systems that a host's own log, or what reads its mounts, says are not mounted there.

A launch that looks for a file on one finds none, and says so in the words of a file that is
nowhere: what was asked for is there on the hosts that have it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from flatline.facts import Facts
from flatline.judging.timeline import alone, instant
from flatline.model import Cite, Match

NOT, AGAIN = "unmounted", "mounted"
MOUNTED = "filesystem_mounted"
_PATH = re.compile(r"(?<![\w.~/-])/[\w.+@-]{1,100}(?:/[\w.+@-]{1,100}){0,40}")
_LACKED = re.compile(
    r"(?i)\bno such file|\bnot found|\bnot exist|\bcan(?:not|'t)\b|\bcould(?: not|n't)\b|\bunable"
    r"|\bfail|error"
)
MOST = 64
"""Paths of what is said that are looked at."""
NEAR_THE_ROOT = 3
"""Folders of a path that may be where a file system of such a name is mounted."""


def unmounted(facts: Facts, host: str, said: Iterable[str]) -> Cite | None:
    """What says that this host alone of the run has not what a path leads through that was not
    found."""
    lacked = (text for text in said if _LACKED.search(text))
    paths = [path for text in lacked for path in _PATH.findall(text)][:MOST]
    return _by_logs(facts, host, paths) or _as_read(facts, host, paths)


def _as_read(facts: Facts, host: str, paths: Iterable[str]) -> Cite | None:
    """Its state as it was read last in the run, where it was mounted on every other host that was
    read, and was on one."""
    end = facts.lived[1] or (facts.window or (None, None))[1]
    if end is None or not facts.measured(MOUNTED):
        return None
    read = instant(facts, MOUNTED, end.timestamp())
    rows = alone(
        ((facts.node_of(row.place.host), row.place.device), row)
        for row in (read.rows if read is not None else ())
        if row.place.host and row.place.device and facts.node_of(row.place.host) in facts.hosts
    )
    for mount in sorted({mount for _, mount in rows if any(_through(p, mount) for p in paths)}):
        there = {node: row.last >= 1 for (node, where), row in rows.items() if where == mount}
        if there.pop(host, True) is False and there and all(there.values()):
            return read.cite(rows[host, mount], f"whether {mount} is mounted") if read else None
    return None


def _by_logs(facts: Facts, host: str, paths: Sequence[str]) -> Cite | None:
    """The last line by which it says so; None where it says later that it has."""
    end = facts.lived[1]
    last: dict[tuple[str, str], Match] = {}
    for match in sorted((*facts.tagged(NOT), *facts.tagged(AGAIN)), key=_when):
        mount = match.groups["path"].rstrip(".").removesuffix("-client")
        at = match.cite.at
        late = end is not None and at is not None and at > end
        if match.cite.place.host and not late and any(_through(path, mount) for path in paths):
            last[facts.node_of(match.cite.place.host), mount] = match
    gone = {node: match.cite for (node, _), match in last.items() if NOT in match.signature.tags}
    return gone[host] if set(gone) == {host} else None


def _when(match: Match) -> tuple[float, str, int]:
    at = match.cite.at
    return (at.timestamp() if at else 0.0, match.cite.source, match.cite.line)


def _through(path: str, mount: str) -> bool:
    """Whether a path leads through where a file system is mounted, or a folder of its name."""
    if mount.startswith("/"):
        return f"{path}/".startswith(f"{mount.rstrip('/')}/")
    return mount in path.split("/")[1 : 1 + NEAR_THE_ROOT]
