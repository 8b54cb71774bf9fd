"""
What a site knows by itself: its records and outcomes, text files in a folder that git can hold.

The folder is `$FLATLINE_KNOWLEDGE`, else `~/.config/flatline/knowledge`.  A `.toml` file holds
records; `outcomes.tsv` a line for each verdict that was found right or wrong.  What is broken
there is named and passed over: it must not keep a run from its verdict.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path

from flatline.collect.masking import masked
from flatline.errors import FormatError, UsageError
from flatline.knowledge.incident import KEYS, LIST_KEYS, Incident, check, parse
from flatline.knowledge.index import Embedder, Index
from flatline.knowledge.kept import shipped
from flatline.knowledge.outcome import Outcome

VARIABLE = "FLATLINE_KNOWLEDGE"
ORIGIN = "site"
MOST_BYTES = 4 << 20
"""Of one file: some thousand records. A larger one is not what it should be."""
OUTCOMES = "outcomes.tsv"
CONFIRMED, WRONG = "confirmed", "wrong"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, slots=True)
class Site:
    """The site's own records and outcomes, and what of its folder could not be read, as
    (file, reason)."""

    incidents: tuple[Incident, ...] = ()
    outcomes: tuple[tuple[str, str, str], ...] = ()
    """(record or family, confirmed or wrong, run), as they were written, once each."""
    broken: tuple[tuple[str, str], ...] = ()

    def counted(self) -> dict[str, Outcome]:
        """By record or family."""
        made: dict[str, Outcome] = {}
        for name, what, _ in self.outcomes:
            so_far = made.get(name, Outcome())
            made[name] = (
                replace(so_far, confirmed=so_far.confirmed + 1)
                if what == CONFIRMED
                else replace(so_far, wrong=so_far.wrong + 1)
            )
        return made


def folder(said: str | None = None) -> Path:
    """The site's folder, whether it exists or not."""
    named = said or os.environ.get(VARIABLE)
    return Path(named).expanduser() if named else Path.home() / ".config/flatline/knowledge"


def site(where: Path) -> Site:
    """All that lies there; nothing where there is no folder."""
    incidents: dict[str, Incident] = {}
    broken: list[tuple[str, str]] = []
    taken = {incident.id for incident in shipped()[0]}
    for file in _files(where, broken):
        try:
            for incident in parse(_read(file), file.stem, shipped=False):
                if incident.id in incidents or incident.id in taken:
                    broken.append((file.name, f"{incident.id}: two records have this id"))
                    continue
                incidents[incident.id] = replace(masked(incident), origin=ORIGIN)
        except (OSError, FormatError) as fault:
            broken.append((file.name, _reason(fault)))
    return Site(tuple(incidents.values()), _outcomes(where, broken), tuple(broken))


def index(where: Path, embedder: Embedder | None = None) -> tuple[Index, Site]:
    """Shipped and site records together, and the site they come from."""
    incidents, words = shipped()
    own = site(where)
    return Index((*incidents, *own.incidents), own.counted(), embedder, words), own


def _files(where: Path, broken: list[tuple[str, str]]) -> list[Path]:
    try:
        return sorted(p for p in where.iterdir() if p.suffix == ".toml" and p.is_file())
    except FileNotFoundError:
        return []
    except OSError as fault:
        broken.append((str(where), _reason(fault)))
        return []


def _read(file: Path) -> str:
    with file.open("rb") as opened:
        data = opened.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise FormatError(f"{file.name}: more than {MOST_BYTES >> 20} MB")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as fault:
        raise FormatError(f"{file.name}: not UTF-8 ({fault.reason})") from fault


def _reason(fault: Exception) -> str:
    return (fault.strerror if isinstance(fault, OSError) else None) or str(fault)


def _outcomes(where: Path, broken: list[tuple[str, str]]) -> tuple[tuple[str, str, str], ...]:
    file = where / OUTCOMES
    try:
        text = _read(file) if file.is_file() else ""
    except (OSError, FormatError) as fault:
        broken.append((OUTCOMES, _reason(fault)))
        return ()
    made: dict[tuple[str, str, str], None] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = line.split("\t")
        if len(parts) != 4 or parts[2] not in (CONFIRMED, WRONG):
            broken.append((OUTCOMES, f"line {number} is not date, record, outcome and run"))
            continue
        made[parts[1], parts[2], parts[3]] = None
    return tuple(made)


# --- writing ----------------------------------------------------------------------------------


def written(incidents: Sequence[Incident]) -> str:
    """The records as a file: what `parse` reads."""
    blocks = []
    for incident in incidents:
        lines = ["[[incident]]"]
        for key in KEYS:
            value = getattr(incident, key)
            if key in LIST_KEYS and not value:
                continue
            said = list(value) if key in LIST_KEYS else value
            quoted = json.dumps(said, ensure_ascii=False).replace("\x7f", "\\u007f")
            lines.append(f"{key} = {quoted}")
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


def add(file: Path, where: Path) -> tuple[Path, tuple[Incident, ...]]:
    """Copies the records of a file, secrets masked, into the site's folder under its own name.
    Raises `UsageError` where it is no such file, names what does not exist, or would overwrite."""
    if not _NAME.fullmatch(file.name) or file.suffix != ".toml":
        raise UsageError(
            f"{file.name!r} is no name for a file of records: call it as switches.toml"
        )
    try:
        incidents = parse(_read(file), file.stem, shipped=False)
    except OSError as fault:
        raise UsageError(f"{file}: {_reason(fault)}") from fault
    except FormatError as fault:
        raise UsageError(str(fault)) from fault
    own = site(where)
    taken = {incident.id for incident in (*shipped()[0], *own.incidents)}
    for incident in incidents:
        fault_said = check(incident) or (
            "a record of this id is there already" if incident.id in taken else None
        )
        if fault_said:
            raise UsageError(f"{file.name}: {incident.id}: {fault_said}")
    safe = tuple(_safe(incident) for incident in incidents)
    return _put(where / file.name, written(safe)), safe


def add_one(incident: Incident, where: Path) -> Path:
    """A record in a file of its own. Raises `UsageError` where it would overwrite one."""
    return _put(where / f"{incident.id}.toml", written([_safe(incident)]))


def _safe(incident: Incident) -> Incident:
    """With secrets masked, in texts and lists alike."""
    return Incident(**{f.name: masked(getattr(incident, f.name)) for f in fields(incident)})


def _put(file: Path, text: str) -> Path:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError as fault:
        raise UsageError(f"{file} is there already, and nothing is overwritten") from fault
    except OSError as fault:
        raise UsageError(f"{file}: {_reason(fault)}") from fault
    return file


def note(where: Path, name: str, outcome: str, run: str) -> bool:
    """Writes an outcome at the end of the site's list; False where the same is there already.
    Raises `UsageError` where this run was told otherwise, or the file cannot be written."""
    run = re.sub(r"\s+", " ", run)[:200]
    for told, so, of in site(where).outcomes:
        if of == run and (told, so) == (name, outcome):
            return False
        if of == run:
            raise UsageError(
                f"{run} was told before: {told}, {so}. A run has one vote; to change it, edit its "
                f"line in {where / OUTCOMES}"
            )
    line = f"{datetime.now(UTC):%Y-%m-%d}\t{name}\t{outcome}\t{run}\n"
    file = where / OUTCOMES
    try:
        where.mkdir(parents=True, exist_ok=True)
        head = "" if file.exists() else "# date\trecord or family\toutcome\trun\n"
        with file.open("a", encoding="utf-8") as opened:
            opened.write(head + line)
    except OSError as fault:
        raise UsageError(f"{file}: {_reason(fault)}") from fault
    return True
