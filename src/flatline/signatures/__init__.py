"""
Error signatures, one origin a TOML file, loaded into `Signature` values.

A file holds `origin = "torch"` and any number of `[[signature]]` tables with the fields of
`flatline.model.Signature`; `sample`/`near_miss` hold one text or a list of them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, cast, get_args

from flatline.errors import CatalogueError
from flatline.model import Attribution, Signature, SignatureRole

FIELDS = {
    "id", "pattern", "role", "meaning", "not_proof", "source", "sample", "near_miss", "family",
    "fault_class", "late_family", "late_class", "attribution", "strength", "action", "tags",
}  # fmt: skip
REQUIRED = {"id", "pattern", "role", "meaning", "not_proof", "source", "sample"}


def _texts(value: object, where: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise CatalogueError(f"{where}: expected a text or a list of texts, found {value!r}")


def _signature(table: dict[str, Any], origin: str) -> Signature:
    where = f"signatures/{origin}.toml: {table.get('id', '(no id)')}"
    unknown = set(table) - FIELDS
    absent = REQUIRED - set(table)
    if unknown or absent:
        raise CatalogueError(f"{where}: unknown {sorted(unknown)}, missing {sorted(absent)}")
    if table["role"] not in get_args(SignatureRole):
        raise CatalogueError(
            f"{where}: role {table['role']!r} is none of {get_args(SignatureRole)}"
        )
    if table.get("attribution", "unknown") not in get_args(Attribution):
        raise CatalogueError(f"{where}: attribution {table['attribution']!r}")
    if table["role"] == "root" and not (table.get("family") and table.get("near_miss")):
        raise CatalogueError(f"{where}: a root candidate needs a family and a near miss")
    return Signature(
        id=table["id"],
        pattern=table["pattern"],
        role=cast(SignatureRole, table["role"]),
        meaning=table["meaning"],
        not_proof=table["not_proof"],
        source=table["source"],
        samples=_texts(table["sample"], where),
        near_misses=_texts(table.get("near_miss"), where),
        family=table.get("family"),
        fault_class=table.get("fault_class"),
        late_family=table.get("late_family"),
        late_class=table.get("late_class"),
        attribution=table.get("attribution", "unknown"),
        strength=float(table.get("strength", 0.5)),
        origin=origin,
        action=table.get("action"),
        tags=_texts(table.get("tags"), where),
    )


def parse(text: str, name: str) -> tuple[Signature, ...]:
    """Signatures of one file. Raises `CatalogueError` naming the table and the field at fault."""
    return tuple(_signature(table, name) for table in tables(text, name))


def tables(text: str, name: str) -> list[dict[str, Any]]:
    """The tables of one file, of text and numbers alone. Raises `CatalogueError`."""
    try:
        return cast(list[dict[str, Any]], tomllib.loads(text).get("signature", []))
    except tomllib.TOMLDecodeError as fault:
        raise CatalogueError(f"signatures/{name}.toml: {fault}") from fault


def texts() -> dict[str, str]:
    """Every file by the name of its origin."""
    files = sorted(resources.files(__name__).iterdir(), key=lambda entry: entry.name)
    return {
        entry.name.removesuffix(".toml"): entry.read_text("utf-8")
        for entry in files
        if entry.name.endswith(".toml")
    }


def made(held: Mapping[str, Sequence[dict[str, Any]]]) -> tuple[Signature, ...]:
    """The signatures of such tables by origin, sorted by id. Raises `CatalogueError` where two
    share an id."""
    found: dict[str, Signature] = {}
    for name, rows in held.items():
        for signature in (_signature(row, name) for row in rows):
            if signature.id in found:
                raise CatalogueError(f"two signatures are called {signature.id!r}")
            found[signature.id] = signature
    return tuple(found[key] for key in sorted(found))


@cache
def load() -> tuple[Signature, ...]:
    """All signatures, sorted by id. Raises `CatalogueError` where two share an id."""
    return made({name: tables(text, name) for name, text in texts().items()})
