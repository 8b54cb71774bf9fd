"""
The parameters of a request as Prometheus reads them (`web/api/v1/api.go`).

A time is seconds since 1970 or RFC 3339, a duration is seconds or as PromQL writes it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import inf, isfinite
from types import MappingProxyType
from urllib.parse import parse_qsl

from flatline.errors import FlatlineError

STATUS: Mapping[str, int] = MappingProxyType(
    {"bad_data": 400, "unauthorized": 401, "forbidden": 403, "not_found": 404,
     "method_not_allowed": 405, "too_large": 413, "execution": 422, "internal": 500,
     "timeout": 503}
)  # fmt: skip
"""HTTP status by `errorType`; `bad_data`, `execution`, `timeout`, `internal` and `not_found` are
Prometheus's own."""
MOST_FIELDS = 1000
_UNITS_S = {"y": 31_536_000.0, "w": 604_800.0, "d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0,
            "ms": 0.001}  # fmt: skip
_DURATION = re.compile("".join(rf"(?:(\d{{1,15}}){unit})?" for unit in _UNITS_S))
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?")
_BEYOND = re.compile(r"([-+])\d{5,}-\d\d-\d\dT.*Z")
"""The least and the greatest time of Go, which clients send for an open end."""


class Refused(FlatlineError):
    """A request that gets an error for an answer; `kind` is its `errorType`."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def wrong(name: str, said: str, reason: str) -> Refused:
    """The refusal of one parameter."""
    return Refused("bad_data", f'invalid parameter "{name}": {said[:200]!r} {reason}')


@dataclass(frozen=True, slots=True)
class Form:
    """The fields of a request; of one that stands there twice the first counts."""

    fields: Mapping[str, Sequence[str]]

    def text(self, name: str, default: str = "") -> str:
        found = self.fields.get(name)
        return found[0] if found else default

    def texts(self, *names: str) -> list[str]:
        return [said for name in names for said in self.fields.get(name, ())]

    def instant(self, name: str, default: float | None = None) -> float:
        """Seconds since 1970. Raises Refused, also where it is missing and has no default."""
        said = self.text(name)
        if not said and default is not None:
            return default
        at = _instant(said)
        if at is None:
            raise wrong(name, said, "is no time: give RFC 3339 or seconds since 1970")
        return at

    def duration(self, name: str, default: float | None = None) -> float:
        """Seconds above zero. Raises Refused."""
        said = self.text(name)
        if not said and default is not None:
            return default
        length_s = _duration(said)
        if length_s is None:
            raise wrong(name, said, "is no duration: give seconds, or as 15s, 1m, 1h30m")
        if length_s <= 0:
            raise wrong(name, said, "has to be above zero")
        return length_s

    def limit(self) -> int | None:
        """How many results are wanted; None where as many as there are."""
        said = self.text("limit")
        if not said:
            return None
        if not said.isascii() or not said.isdecimal() or len(said) > 15:
            raise wrong("limit", said, "is no count")
        return int(said) or None


def form_of(query: str, body: str) -> Form:
    """The fields of a body before those of the address. Raises Refused where there are many."""
    fields: dict[str, list[str]] = {}
    try:
        for text in (body, query):
            pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS)
            for name, said in pairs:
                fields.setdefault(name, []).append(said)
    except ValueError as fault:
        raise Refused("bad_data", f"the fields of the request cannot be read: {fault}") from fault
    return Form(fields)


def _instant(said: str) -> float | None:
    if _NUMBER.fullmatch(said):
        at = float(said)
        return at if isfinite(at) and abs(at) < 1e13 else None
    beyond = _BEYOND.fullmatch(said)
    if beyond:
        return -inf if beyond[1] == "-" else inf
    if not re.fullmatch(
        r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[-+]\d\d:\d\d)", said
    ):
        return None
    try:
        return datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", said.upper())).timestamp()
    except (ValueError, OverflowError):
        return None


def _duration(said: str) -> float | None:
    if _NUMBER.fullmatch(said):
        length_s = float(said)
        return length_s if isfinite(length_s) and abs(length_s) < 1e13 else None
    found = _DURATION.fullmatch(said)
    if not said or found is None:
        return None
    parts = zip(found.groups(), _UNITS_S.values(), strict=True)
    return sum(float(number) * unit_s for number, unit_s in parts if number)
