"""A claim as a model hands it over: a JSON object, its schema, and the reading of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from flatline.claims.model import COMPARATORS, LARGEST_TOLERANCE_RATIO, Claim, Window
from flatline.errors import UsageError
from flatline.model import NOWHERE, Place

_TEXT_CHARS = 2_000
_STRINGS = ("host", "gpu", "device", "domain")
_WHOLE = ("rank", "task")

CLAIM_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["evidence", "quantity", "comparator", "value"],
    "properties": {
        "evidence": {"type": "string", "description": "id of one piece of evidence, as e4"},
        "quantity": {
            "type": "string",
            "description": "what is measured: a signal or PromQL as its evidence names it; of a"
            " log line: line, line number, step, loss, exit code or another name of a number it"
            " prints; of a record its field; of an absence: count of lines; or host, rank, task,"
            " gpu, device, time",
        },
        "comparator": {"enum": list(COMPARATORS)},
        "value": {
            "type": ["string", "number", "boolean"],
            "description": "number, text, ISO 8601 instant with its zone, or (before, after) an"
            " evidence id",
        },
        "unit": {"type": ["string", "null"], "description": "as W, %, GiB, ms; null for none"},
        "place": {
            "type": ["object", "null"],
            "additionalProperties": False,
            "properties": {
                **{name: {"type": ["string", "null"]} for name in _STRINGS},
                **{name: {"type": ["integer", "null"]} for name in _WHOLE},
            },
        },
        "window": {
            "type": ["array", "null"],
            "items": {"type": "string", "description": "ISO 8601 with its zone"},
            "minItems": 2,
            "maxItems": 2,
        },
        "tolerance_ratio": {
            "type": ["number", "null"],
            "description": f"only with approx, and then needed: above 0, {LARGEST_TOLERANCE_RATIO}"
            " at most",
        },
    },
}
"""What a tool that takes claims declares; closed, so that nothing rides along."""


def claim_from(given: object) -> Claim:
    """The claim of a JSON object. Raises `UsageError` that says what is wrong with it."""
    if not isinstance(given, Mapping):
        raise UsageError("a claim is an object")
    unknown = sorted(map(str, set(given) - set(CLAIM_SCHEMA["properties"])))
    if unknown:
        raise UsageError(f"a claim has no {unknown[0][:40]!r}")
    value, unit = given.get("value"), given.get("unit")
    if value is None or not isinstance(value, str | int | float):
        raise UsageError("a claim's value is a number or a text")
    if isinstance(value, str) and len(value) > _TEXT_CHARS:
        raise UsageError(f"a claim's value has {_TEXT_CHARS} characters at most")
    tolerance = given.get("tolerance_ratio")
    if tolerance is not None and (
        isinstance(tolerance, bool) or not isinstance(tolerance, int | float)
    ):
        raise UsageError("tolerance_ratio is a number")
    if unit is not None and not isinstance(unit, str):
        raise UsageError("a claim's unit is a text, or null")
    comparator: Any = _text(given, "comparator")
    return Claim(
        evidence=_text(given, "evidence"),
        quantity=_text(given, "quantity"),
        comparator=comparator,
        value=value,
        unit=unit or None,
        place=_place(given.get("place")),
        window=_window(given.get("window")),
        tolerance_ratio=None if tolerance is None else float(tolerance),
    )


def _text(given: Mapping[Any, Any], name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str) or not value.strip() or len(value) > _TEXT_CHARS:
        raise UsageError(f"a claim's {name} is a text")
    return value.strip()


def _place(given: object) -> Place:
    if given is None:
        return NOWHERE
    if not isinstance(given, Mapping) or set(given) - {*_STRINGS, *_WHOLE}:
        raise UsageError(f"a place is an object of {', '.join((*_STRINGS, *_WHOLE))}")
    parts: dict[str, Any] = {}
    for name in _STRINGS:
        if given.get(name) is not None:
            parts[name] = str(given[name])
    for name in _WHOLE:
        number = given.get(name)
        if number is None:
            continue
        if isinstance(number, bool) or not isinstance(number, int):
            raise UsageError(f"a place's {name} is a whole number")
        parts[name] = number
    return Place(**parts)


def _window(given: object) -> Window | None:
    if given is None:
        return None
    if not isinstance(given, list | tuple) or len(given) != 2:
        raise UsageError("a window is [start, end]")
    start, end = (instant_of(at, "a window's time") for at in given)
    return start, end


def instant_of(given: object, what: str) -> datetime:
    """An aware instant. Raises `UsageError` where it is none, or does not say its zone."""
    try:
        at = datetime.fromisoformat(str(given))
    except ValueError:
        raise UsageError(f"{what} {str(given)[:40]!r} is no ISO 8601 instant") from None
    if at.tzinfo is None:
        raise UsageError(f"{what} {str(given)[:40]!r} does not say its zone; Z is UTC")
    return at
