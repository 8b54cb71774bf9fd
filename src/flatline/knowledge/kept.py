"""
The shipped records and their words, kept between runs: reading and splitting them takes 0.2 s.

What is kept lies beside the scanner's database, in the user's own cache
(`flatline.logs.database`), under a name that changes with the records, the signatures and the code
that splits.  It is only an optimisation: where it is missing, damaged or not ours alone to write,
all is made again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from importlib import resources
from typing import Any

import orjson

from flatline.knowledge.incident import LIST_KEYS, Incident, load
from flatline.knowledge.index import Words, words_of
from flatline.logs.database import default_cache, keep, kept


@cache
def shipped() -> tuple[tuple[Incident, ...], tuple[Words, ...]]:
    """All shipped records, as `load` has them, and their words. Raises `CatalogueError`."""
    folder, name = default_cache(), f"incidents-{_key()}.json"
    payload = kept(folder, name) if folder is not None else None
    if payload is not None:
        try:
            return _read(orjson.loads(payload))
        except (ValueError, TypeError, LookupError):
            pass  # written by something else after all
    incidents = load()
    words = tuple(map(words_of, incidents))
    if folder is not None:
        document = [asdict(incident) for incident in incidents], [asdict(held) for held in words]
        keep(folder, name, orjson.dumps(document))
    return incidents, words


def _read(document: Any) -> tuple[tuple[Incident, ...], tuple[Words, ...]]:
    made: list[Incident] = []
    for held in document[0]:
        fields: dict[str, Any] = {k: tuple(v) if k in LIST_KEYS else v for k, v in held.items()}
        made.append(Incident(**fields))
    return tuple(made), tuple(Words(**held) for held in document[1])


def _key() -> str:
    digest = hashlib.sha256()
    for part in _parts():
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()[:32]


def _parts() -> Iterator[bytes]:
    """Everything that the records and their words are made of."""
    knowledge = resources.files("flatline.knowledge")
    for folder in (knowledge / "records", resources.files("flatline.signatures")):
        for entry in sorted(folder.iterdir(), key=lambda e: e.name):
            if entry.name.endswith(".toml"):
                yield entry.name.encode() + entry.read_bytes()
    for name in ("incident.py", "index.py", "tokens.py"):
        source = knowledge / name
        yield source.read_bytes() if source.is_file() else b"unknown"
