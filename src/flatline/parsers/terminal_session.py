"""
A terminal session: several commands at their prompts, each with what it printed below it.

What was looked at while a run stood still is often kept so: `date`, `squeue`, `kubectl get
pods`, `py-spy dump` in one file.  Each part is read by the format of its own; `date` tells when
the others were asked.  Its lines are searched as a log's are as well.  A log that a program
printed is none, though it shows a command: a part that no format knows is a glance at most.

Source: bash(1) PROMPTING; date(1), its output in the C locale and `-u`, `-Is`, `--rfc-3339`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from itertools import islice
from typing import TypeVar

from flatline.errors import FormatError
from flatline.model import Gap, RecordCite, Records, Scalar
from flatline.parsers import parsed, record_format_of
from flatline.parsers._rows import decoded

FORMAT = "terminal-session"
IN_LINES = True
SEVERAL = True
ZONE_ASSUMED = True
"""Of what its parts tell.  A moment that states its own is not `UTC` itself but as far from it."""
T = TypeVar("T")
_COMMANDS = (
    *("beegfs-ctl", "bhist", "bjobs", "bpeek", "cat", "date", "dcgmi", "df", "dmesg", "free"),
    *("head", "hostname", "ibstat", "ip", "journalctl", "kubectl", "lfs", "ls", "nvidia-smi"),
    *("oc", "ps", "py-spy", "pystack", "qstat", "quota", "rocm-smi", "sacct", "sacctmgr"),
    *("scontrol", "sinfo", "squeue", "sstat", "tail", "top", "uptime", "w"),
)
_PROMPT = re.compile(
    r"(?:\([\w.-]{1,40}\) ?)?(?:\[?[\w.-]{1,40}@[\w.-]{1,80}[ :][^\]$#>%]{0,80}\]?)?[$#>%❯] ?"
    r"((?:sudo |watch |time )?(?:ssh [\w.@-]{1,80} ['\"]?)?(?:"
    + "|".join(map(re.escape, _COMMANDS))
    + r")(?:[ ;|].{0,400})?)"
)
_MAY_ASK = re.compile(
    rb"[$#>%\xaf] ?(?:sudo |watch |time )?(?:ssh [^\n]{1,82} )?['\"]?(?:"
    + b"|".join(re.escape(name).encode() for name in _COMMANDS)
    + rb")(?=[ ;|\r\n])"
)
_DATE = re.compile(
    r"[A-Z][a-z]{2} +([A-Z][a-z]{2}) +(\d{1,2}) (\d\d:\d\d:\d\d)(?: ([AP]M))?"
    r"(?: ([A-Z]{1,5}|[+-]\d\d(?:\d\d)?))? (\d{4})"
)
_ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(Z|[+-]\d\d:?\d\d)?")
_POINTER = re.compile(r"command (\d{1,4}), (.{1,200})")
_NEED = "scheduler records"
MOST_PARTS, HEAD_PARTS = 400, 20
"""Commands that are read, and that tell what a file is."""
GLANCE_LINES = 60
"""As a stack, a list of processes or a few lines of a log are.  A judgement."""


@dataclass(frozen=True, slots=True)
class _Part:
    """What one command printed; `number` counts from 1, 0 is what stands above the first."""

    number: int
    lines: tuple[str, ...]
    dated: str | None
    """What `date` had printed last."""

    def told(self) -> bytes | None:
        """As a file of its own that a format knows, where possible below the date; else None."""
        if not self.lines:
            return None
        text = "\n".join(self.lines) + "\n"
        alone = text.encode("utf-8", "surrogateescape")
        form = record_format_of("", alone)
        if form is None or self.dated is None:
            return alone if form else None
        dated = f"{self.dated}\n{text}".encode("utf-8", "surrogateescape")
        return dated if record_format_of("", dated) is form else alone


def recognise(name: str, head: bytes) -> bool:
    """Whether commands stand there, nothing but what a format knows above them, and the output of
    one is; a part that none knows is a glance.  Dates and lists of files alone are a log's lines.
    """
    if _MAY_ASK.search(head) is None:
        return False
    try:
        parts = list(islice(_parts(decoded(head)), HEAD_PARTS))
    except FormatError:
        return False
    above, asked = parts[0], parts[1:]
    if not asked or (above.lines and above.told() is None):
        return False
    if len(asked) == 1 and not above.lines:
        return False  # its own format passes over the one command
    known = [part.told() is not None for part in parts]
    return any(known) and all(
        told or len(part.lines) <= GLANCE_LINES for told, part in zip(known, parts, strict=True)
    )


def holds_output(head: bytes) -> bool:
    """Whether a command printed what no format knows: a log's end, a stack, a shell's word."""
    return any(
        part.lines and part.told() is None and _moment(part) is None
        for part in islice(_parts(decoded(head)), HEAD_PARTS)
    )


def parse(data: bytes, source: str) -> Records:
    """Raises `FormatError` where no part is known; one that its format cannot read is a gap."""
    made, nows = [Records()], list[datetime]()
    known = False
    for part in _parts(decoded(data)):
        if part.number == MOST_PARTS:
            made.append(
                Records(gaps=(Gap(_NEED, f"only {MOST_PARTS} commands are read", source),))
            )
            break
        moment, told = _moment(part), part.told()
        known |= moment is not None or told is not None
        nows += [moment] if moment else []
        form = record_format_of("", told) if told is not None else None
        if form is None or told is None:
            continue
        try:
            records = parsed(form, told, source)
        except FormatError as fault:
            made.append(Records(gaps=(Gap(_NEED, str(fault), source),)))
            continue
        nows += [records.now] if records.now and not part.dated else []
        made.append(_pointing(records, part.number))
    if not known:
        raise FormatError("no session of commands that are known")
    return Records(
        jobs=tuple(job for one in made for job in one.jobs),
        node_events=tuple(event for one in made for event in one.node_events),
        now=max(nows, default=None),
        addresses={name: node for one in made for name, node in one.addresses.items()},
        gaps=tuple(gap for one in made for gap in one.gaps),
        pods=tuple(pod for one in made for pod in one.pods),
    )


def resolve(data: bytes, pointer: str) -> Scalar:
    """The value at `command 2, row 1, ST`: the second command's output, by its own format."""
    found = _POINTER.fullmatch(pointer)
    parts = {part.number: part for part in _parts(decoded(data))} if found else {}
    part = parts.get(int(found[1])) if found else None
    told = part.told() if part else None
    form = record_format_of("", told) if told is not None else None
    if found is None or form is None or told is None:
        raise FormatError(f"nothing stands at {pointer!r}")
    return form.resolve(told, found[2])


def _parts(text: str) -> Iterator[_Part]:
    """What stands above the first prompt, then the output of each command."""
    number, lines, dated = 0, list[str](), None
    for line in text.split("\n"):
        if _PROMPT.fullmatch(line.rstrip()) is None:
            lines.append(line)
            continue
        part = _Part(number, _stripped(lines), dated)
        yield part
        dated = part.lines[0].strip() if _moment(part) is not None else dated
        number, lines = number + 1, []
    yield _Part(number, _stripped(lines), dated)


def _stripped(lines: list[str]) -> tuple[str, ...]:
    told = [n for n, line in enumerate(lines) if line.strip()]
    return tuple(lines[told[0] : told[-1] + 1]) if told else ()


def _moment(part: _Part) -> datetime | None:
    """What `date` printed, where a command printed its one line, or that above others."""
    line = part.lines[0].strip() if part.lines and part.number else ""
    found, iso = _DATE.fullmatch(line), _ISO.fullmatch(line)
    try:
        if found is not None:
            month, day, clock, half, zone, year = found.groups()
            form = "%d %b %Y %I:%M:%S %p" if half else "%d %b %Y %H:%M:%S"
            text = f"{day} {month} {year} {clock}" + (f" {half}" if half else "")
            return _in(datetime.strptime(text, form).replace(tzinfo=UTC), zone)
        if iso is not None:
            told = line.replace(",", ".")
            bare = told[: -len(iso[1])] if iso[1] else told
            return _in(datetime.fromisoformat(bare).replace(tzinfo=UTC), iso[1])
    except ValueError:
        return None
    return None


def _in(at: datetime, zone: str | None) -> datetime:
    """In the zone that is stated by an offset or as UTC's; names of others say too little."""
    if zone in ("UTC", "Z", "GMT"):
        return at.replace(tzinfo=timezone(timedelta(0), "stated"))
    if zone is None or zone[0] not in "+-":
        return at
    digits = zone[1:].replace(":", "")
    away = timedelta(hours=int(digits[:2]), minutes=int(digits[2:] or 0))
    return at.replace(tzinfo=timezone(away if zone[0] == "+" else -away))


def _pointing(value: T, number: int) -> T:
    """With every pointer as one into the session."""
    moved: object = value
    if isinstance(value, RecordCite):
        moved = replace(value, pointer=f"command {number}, {value.pointer}")
    elif isinstance(value, tuple):
        moved = tuple(_pointing(item, number) for item in value)
    elif is_dataclass(value) and not isinstance(value, type):
        moved = replace(
            value, **{f.name: _pointing(getattr(value, f.name), number) for f in fields(value)}
        )
    return moved  # type: ignore[return-value]
