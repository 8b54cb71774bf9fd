"""Secrets in what is not text: submit lines, reasons and comments of records, words of gaps."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TypeVar, cast

from flatline.model import Gap, Job, NodeEvent, RecordCite, Step
from flatline.redact import mask

R = TypeVar("R", Job, NodeEvent, Gap, RecordCite, Step)
T = TypeVar("T")


def masked(record: R) -> R:
    """The record with secrets masked in all that it says, its citation and steps included."""
    held = {field.name: getattr(record, field.name) for field in fields(record)}
    changed = {name: _masked(value) for name, value in held.items()}
    return record if changed == held else replace(record, **changed)


def _masked(value: T) -> T:
    new: object = value
    if isinstance(value, str):
        new = mask(value)
    elif isinstance(value, RecordCite):
        new = masked(value)
    elif isinstance(value, tuple) and any(isinstance(item, Step) for item in value):
        new = tuple(masked(step) for step in value)
    return cast(T, new)
