"""Secrets in what is not text: records, citations and whole verdicts, whatever they hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import TypeVar, cast

from flatline.redact import mask

T = TypeVar("T")


def masked(value: T) -> T:
    """The value with secrets masked in every text it holds; itself where it holds none."""
    return cast(T, _masked(value))


def _masked(value: object) -> object:
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, tuple):
        items = tuple(map(_masked, value))
        return value if all(map(_same, items, value)) else items
    if isinstance(value, Mapping):
        return {_masked(key): _masked(item) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        held = {field.name: getattr(value, field.name) for field in fields(value)}
        changed = {
            name: new for name, item in held.items() if not _same(new := _masked(item), item)
        }
        return replace(value, **changed) if changed else value
    return value


def _same(one: object, other: object) -> bool:
    return one is other or (isinstance(one, str) and one == other)
