"""
Incident records: one origin a TOML file of `[[incident]]` tables, loaded into `Incident` values.

Every key stands in `KEYS`; a table that lacks one, has another or holds what it may not is
refused with the file and the id named.  What no shape can tell, that a family or signature
exists, is asked by `check`, which needs the whole catalogue: `flatline kb add` and the tests do.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from typing import Any

from flatline.errors import CatalogueError, FormatError

LIST_KEYS = ("lines", "environment", "families", "signatures")
OPTIONAL = ("signatures",)
LONGEST = {"problem": 140, "symptom": 700, "function": 300, "cause": 900, "fix": 900,
           "source": 400, "settled": 200, "id": 80}  # fmt: skip
"""Characters: a record is read beside a verdict, not instead of the thread it points to."""
MOST_LINES, LONGEST_LINE = 4, 200
MOST_SENTENCES = 3
_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)+")
_CODE = re.compile(r"[A-G][1-9]")
_SENTENCE = re.compile(r"[.!?](?=\s+[A-Z<`])")
_URL = re.compile(r"https://[^\s/]+\.[^\s/]+/\S+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Incident:
    """
    One problem that was met and settled.

    `lines` are shapes of typical lines, with `<placeholders>`; `function` names the command, query
    or page that settles whether this is it; `settled` says by whom the cause was; `origin` is the
    file's name, or `site`.
    """

    id: str
    problem: str
    symptom: str
    lines: tuple[str, ...]
    environment: tuple[str, ...]
    function: str
    cause: str
    fix: str
    families: tuple[str, ...]
    source: str
    settled: str
    signatures: tuple[str, ...] = ()
    origin: str = ""


KEYS = tuple(field.name for field in fields(Incident) if field.name != "origin")


def parse(text: str, origin: str, *, shipped: bool = True) -> tuple[Incident, ...]:
    """
    The records of one file, in its order.

    A shipped record's id begins with its origin and its source is a URL; a site's may have any id
    and any source.  Raises `FormatError` naming the file, the id and what is wrong.
    """
    file = f"{origin}.toml"
    try:
        tables = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as fault:
        raise FormatError(f"{file}: {fault or 'nested too deeply'}") from fault
    listed = tables.get("incident")
    if set(tables) != {"incident"} or not isinstance(listed, list):
        found = ", ".join(sorted(tables)) or "nothing"
        raise FormatError(f"{file}: it holds [[incident]] tables and nothing else, found {found}")
    made: dict[str, Incident] = {}
    for number, table in enumerate(listed, 1):
        name = table.get("id") if isinstance(table, dict) else None
        where = f"{file}: {name}" if isinstance(name, str) else f"{file}: incident {number}"
        incident = _incident(table, where, origin, shipped)
        if incident.id in made:
            raise FormatError(f"{where}: two records have this id")
        made[incident.id] = incident
    return tuple(made.values())


def _incident(table: Any, where: str, origin: str, shipped: bool) -> Incident:
    if not isinstance(table, dict):
        raise FormatError(f"{where}: a record is a table")
    unknown, absent = set(table) - set(KEYS), set(KEYS) - set(OPTIONAL) - set(table)
    if unknown or absent:
        raise FormatError(
            f"{where}: unknown keys {sorted(unknown)}, missing keys {sorted(absent)}"
        )
    held: dict[str, Any] = {
        key: _listed(table[key], key, where) if key in LIST_KEYS else _text(table[key], key, where)
        for key in table
    }
    incident = Incident(**held, origin=origin)
    fault = _fault(incident) or (_shipped_fault(incident) if shipped else None)
    if fault:
        raise FormatError(f"{where}: {fault}")
    return incident


def _text(value: object, key: str, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise FormatError(f"{where}: {key} is a text, found {value!r:.80}")
    if _CONTROL.search(value):
        raise FormatError(f"{where}: {key} is one line without control characters")
    if len(value) > LONGEST.get(key, LONGEST_LINE):
        raise FormatError(
            f"{where}: {key} has {len(value)} characters, at most {LONGEST.get(key, LONGEST_LINE)}"
        )
    return value.strip()


def _listed(value: object, key: str, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or (not value and key not in OPTIONAL):
        raise FormatError(f"{where}: {key} is a list of texts, found {value!r:.80}")
    return tuple(_text(item, key, where) for item in value)


def _fault(incident: Incident) -> str | None:
    if not _ID.fullmatch(incident.id):
        return "id is in kebab-case, as nccl-socket-interface-wrong"
    if len(_SENTENCE.findall(incident.symptom)) >= MOST_SENTENCES:
        return f"symptom has more than {MOST_SENTENCES} sentences"
    if len(incident.lines) > MOST_LINES:
        return f"lines are at most {MOST_LINES}, found {len(incident.lines)}"
    wrong = [code for code in incident.families if not _CODE.fullmatch(code)]
    return f"families holds {wrong}: a family is its code, as C2" if wrong else None


def _shipped_fault(incident: Incident) -> str | None:
    if not incident.id.startswith(f"{incident.origin}-"):
        return f"id begins with the file's origin, {incident.origin}-"
    if not _URL.fullmatch(incident.source):
        return f"source is the https address of a public report, found {incident.source!r}"
    return None


@cache
def load() -> tuple[Incident, ...]:
    """All shipped records, sorted by id. Raises `CatalogueError` where one is broken."""
    found: dict[str, Incident] = {}
    folder = resources.files("flatline.knowledge") / "records"
    for entry in sorted(folder.iterdir(), key=lambda e: e.name):
        if not entry.name.endswith(".toml"):
            continue
        try:
            incidents = parse(entry.read_text("utf-8"), entry.name.removesuffix(".toml"))
        except FormatError as fault:
            raise CatalogueError(f"knowledge/records/{fault}") from fault
        for incident in incidents:
            if incident.id in found:
                raise CatalogueError(f"two incident records are called {incident.id!r}")
            found[incident.id] = incident
    return tuple(found[key] for key in sorted(found))


def check(incident: Incident) -> str | None:
    """What in the record names something that this Flatline does not have; None where nothing."""
    from flatline import signatures
    from flatline.families import all_families

    known = {family.code for family in all_families()}
    lost = [code for code in incident.families if code not in known]
    if lost:
        return f"no family has the code {', '.join(lost)}; `flatline families` lists them"
    ids = {signature.id for signature in signatures.load()}
    lost = [name for name in incident.signatures if name not in ids]
    return f"no signature is called {', '.join(lost)}" if lost else None
