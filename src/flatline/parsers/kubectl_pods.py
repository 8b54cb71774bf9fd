"""
`kubectl get pods -o wide`: on which node each pod runs, its address there, and how it fares.

Columns stand at least two spaces apart and hold single ones (`2 (5h ago)`).  A name or address
that two nodes show, as of two namespaces or given anew, tells neither; a pod that was moved since
stands with its new node.  Rows without their header (`--no-headers`, or as `grep` left them) are
read where the first holds what each of its columns may.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import chain

from flatline.model import Pod, RecordCite, Records, Scalar
from flatline.parsers._rows import Row, decoded, mentions, shown, top, under_header
from flatline.parsers._rows import resolved as found_at
from flatline.parsers._slurm import named_once

FORMAT = "kubectl-pods"
IN_LINES = True
_APART = re.compile(r" {2,}|\t+")
_NEEDED = {"NAME", "READY", "STATUS", "NODE"}
_DATE = r"date(?: [^|;&]{1,60})?"
_PROMPT = re.compile(
    rf"[^|]{{0,120}}[$#>%] ?(?:(?:{_DATE} ?(?:;|&&) ?)?kubectl [^|]{{1,200}}"
    rf"(?:\| ?(?:grep|egrep|head|sort) [^|]{{1,120}}){{0,2}}|{_DATE})"
    r"|[A-Z][a-z]{2} (?:[A-Z][a-z]{2} {1,2}\d{1,2}|\d{1,2} [A-Z][a-z]{2}) [\w: ]{4,40}"
    r"|[#=> -]{0,8}(?i:(?:collected|captured|taken|as of|date|time)(?: at| on)?:? {1,2})?"
    r"(?P<day>20\d\d-\d\d-\d\d)[T ](?P<clock>\d\d:\d\d:\d\d)(?:[.,]\d{1,9})?"
    r" ?(?P<zone>Z|UTC|[+-]\d\d:?\d\d)?[#= -]{0,8}"
    r"|# .{1,200}"
)
"""The command, the time that was asked for with it, and what is noted above its answer."""
_ANSWERED = re.compile(
    r"[A-Z][a-z]{2} ([A-Z][a-z]{2}) {1,2}(\d{1,2}) (\d\d:\d\d:\d\d) UTC (20\d\d)"
)
"""What `date` answers; of other zones its letters tell no offset."""
_AGE_TOLD = r"(?=\d)(?:\d{1,3}y)?(?:\d{1,5}d)?(?:\d{1,4}h)?(?:\d{1,5}m)?(?:\d{1,6}s)?"
_BARE = re.compile(
    r"(?P<space>[a-z0-9][a-z0-9-]{0,62} {2,})?[a-z0-9][a-z0-9.-]{0,252} {2,}\d{1,3}/\d{1,3} {2,}"
    r"[A-Z][\w:/.-]{1,60} {2,}\d{1,6}(?: \([\w ]{1,20} ago\))? {2,}" + _AGE_TOLD + r" {2,}"
    r"(?:<none>|[\d.]{7,15}|[\da-f:]{2,39}) {2,}(?:<none>|[a-z0-9][a-z0-9.-]{0,252})"
    r"(?: {2,}(?:<none>|\d{1,2}/\d{1,2}|[a-z0-9][a-z0-9.-]{0,252})){0,2} {0,4}"
)
_MAY_BE_BARE = re.compile(rb"[a-z0-9] {2,}\d{1,3}/\d{1,3} {2,}[A-Z]")
_HEADER = "NAME  READY  STATUS  RESTARTS  AGE  IP  NODE  NOMINATED NODE  READINESS GATES"
_AGE = re.compile(
    r"(?=\d)(?:(\d{1,3})y)?(?:(\d{1,5})d)?(?:(\d{1,4})h)?(?:(\d{1,5})m)?(?:(\d{1,6})s)?"
)
_UNITS_S = (365 * 86_400, 86_400, 3_600, 60, 1)
_NONE = ("", "<none>")


def _columns(line: str) -> list[str] | None:
    names = _APART.split(line.strip())
    return names if set(names) >= _NEEDED and len(set(names)) == len(names) else None


def _rows(data: bytes) -> Iterator[Row]:
    """Rows under their header. Raises `FormatError` where the first line is none, nor such a
    row."""
    lines = shown(decoded(data), _PROMPT)
    first = next(lines, "")
    bare = _BARE.fullmatch(first)
    if bare is None:
        yield from under_header(chain((first,), lines), _columns, _APART)
        return
    header = f"NAMESPACE  {_HEADER}" if bare["space"] else _HEADER
    least = len(_APART.split(first.strip()))
    yield from under_header(chain((header, first), lines), _columns, _APART, least)


def parse(data: bytes, source: str) -> Records:
    """Raises `FormatError` without the header of `-o wide`."""
    placed = [row for row in _rows(data) if row["NODE"] not in _NONE]
    names = [(row[key], row["NODE"]) for row in placed for key in ("NAME", "IP")]
    return Records(
        addresses=named_once(pair for pair in names if pair[0] not in _NONE),
        pods=tuple(_pod(row, source) for row in _rows(data)),
        now=_noted(data),
    )


def _noted(data: bytes) -> datetime | None:
    """The moment that stands above the one table with its zone; those of several tell of each."""
    lines = decoded(data).split("\n")
    if sum(_columns(line) is not None for line in lines) > 1:
        return None
    said = [found for line in lines if (found := _PROMPT.fullmatch(line)) and found["zone"]]
    asked = [found.groups() for line in lines if (found := _ANSWERED.fullmatch(line.strip()))]
    if len(said) + len(asked) != 1:
        return None
    try:
        if asked:
            return datetime.strptime(" ".join(asked[0]) + " +0000", "%b %d %H:%M:%S %Y %z")
        zone = "+00:00" if said[0]["zone"] in ("Z", "UTC") else said[0]["zone"]
        return datetime.fromisoformat(f"{said[0]['day']}T{said[0]['clock']}{zone}").astimezone(UTC)
    except ValueError:
        return None


def _pod(row: Row, source: str) -> Pod:
    status, node = row["STATUS"], row["NODE"]
    text = f"NAME={row['NAME']} STATUS={status} NODE={node}"
    cite = RecordCite(source, row.pointer("STATUS"), status, text)
    on = None if node in _NONE else node
    return Pod(row["NAME"], status, cite, node=on, age_s=_age_s(row["AGE"]))


def _age_s(told: str) -> float | None:
    """What `137m`, `5h32m` or `2d4h` is in seconds (apimachinery, HumanDuration)."""
    parts = _AGE.fullmatch(told)
    if parts is None:
        return None
    counts = map(int, parts.groups("0"))
    return float(sum(count * unit for count, unit in zip(counts, _UNITS_S, strict=True)))


def recognise(name: str, head: bytes) -> bool:
    """Whether the first line, or the one after the command, is that header or such a row."""
    bare = _MAY_BE_BARE.search(head) is not None
    if not bare and not mentions(head, "READY"):
        return False
    lines = top(head, _PROMPT)
    if not lines:
        return False
    return _columns(lines[0]) is not None or (bare and _BARE.fullmatch(lines[0]) is not None)


def resolve(data: bytes, pointer: str) -> Scalar:
    """The value at `row 2, NODE`; rows count from 1, headers left out."""
    return found_at(data, pointer, _rows)
