"""
The hosts of logs that are named after them, where nothing names the hosts of the run.

Each node's launcher is told where they meet.  Of logs whose names differ in their digits alone,
one that is named after that place is of that host, and so the others are of those that they are
named after.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import PurePosixPath

from flatline.facts import LOG, Facts

HEAD_LINES, MOST = 40, 256
_DIGITS = re.compile(r"\d+")
_ENDPOINT = re.compile(
    r"(?i)\b(?:rdzv[_-]endpoint|master[_-]addr|coordinator[_-]address)[=: ]{1,2}[\"']?"
    r"(?P<host>[a-z][\w-]{0,62})"
)


def by_endpoint(facts: Facts) -> dict[str, str]:
    """The host of each such log; empty where the run's hosts are named."""
    return {} if facts.hosts else facts.memo("by_endpoint", _by_endpoint)


def _by_endpoint(facts: Facts) -> dict[str, str]:
    series: dict[str, list[str]] = defaultdict(list)
    for read in facts.log_files(LOG)[:MOST]:
        series[_DIGITS.sub("#", read.source)].append(read.source)
    told = [found for logs in series.values() if len(logs) > 1 and (found := _named(facts, logs))]
    return told[0] if len(told) == 1 else {}


def _named(facts: Facts, logs: list[str]) -> dict[str, str]:
    """Empty where one of the logs names no endpoint, or another, or two are of one host."""
    heads = [facts.lines(source, 1, HEAD_LINES) for source in logs]
    places = [{found["host"] for line in head for found in _ENDPOINT.finditer(line)}
              for head in heads]  # fmt: skip
    if len({frozenset(one) for one in places}) != 1 or len(places[0]) != 1:
        return {}
    (endpoint,) = places[0]
    parts = [(*PurePosixPath(source).parent.parts, PurePosixPath(source).stem) for source in logs]
    word = re.compile(rf"(?<![A-Za-z0-9]){re.escape(endpoint)}(?![A-Za-z0-9])")
    named = next(((n, part) for one in parts for n, part in enumerate(one) if word.search(part)),
                 None)  # fmt: skip
    if named is None:
        return {}
    n, part = named
    before, _, after = part.partition(endpoint)
    hosts = [one[n].removeprefix(before).removesuffix(after) for one in parts]
    alike = {_DIGITS.sub("#", host) for host in hosts} == {_DIGITS.sub("#", endpoint)}
    return dict(zip(logs, hosts, strict=True)) if alike and len({*hosts}) == len(logs) else {}
