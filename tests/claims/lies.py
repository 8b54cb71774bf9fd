"""Lies: truths of the scenarios changed in one respect, where that is sure to make them false."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache

from claims.truths import READERS, SIGNALS, Truth, every_truth, evidence, raw_line, raw_lines, zone
from flatline.claims import Claim
from flatline.model import Place

WRONG_UNIT = {"hertz": "W", "watts": "MHz", "ratio": "s", "bytes/s": "bytes", "bytes": "bytes/s",
              "celsius": "W", "seconds/s": "s", "1/s": "s", "count/s": "count", "count": "GiB",
              None: "ms", "s": "MB", "ms": "GHz", "value": "%", "flag": "%"}  # fmt: skip
SAME_DIMENSION = {"hertz": ("GHz", "MHz"), "watts": ("W", "mW"), "ratio": ("ratio", "%"),
                  "bytes/s": ("MB/s", "GB/s"), "bytes": ("GiB", "MB"), "s": ("s", "ms"),
                  "ms": ("ms", "s")}  # fmt: skip


@dataclass(frozen=True)
class Lie:
    kind: str
    name: str
    claim: Claim
    of: Truth


def lies_of(truth: Truth) -> Iterator[Lie]:
    for kind, claim in _changed(truth):
        if claim != truth.claim:
            yield Lie(kind, truth.name, claim, truth)


def _changed(truth: Truth) -> Iterator[tuple[str, Claim]]:
    yield "invented evidence", replace(truth.claim, evidence="e9999")
    yield from _other_number(truth)
    yield from _slips(truth)
    yield from _other_quantity(truth)
    yield from _other_unit(truth)
    yield from _other_place(truth)
    yield from _other_time(truth)
    yield from _other_evidence(truth)
    yield from _other_text(truth)


def _other_number(truth: Truth) -> Iterator[tuple[str, Claim]]:
    claim, value = truth.claim, truth.value
    if value is None or not isinstance(claim.value, int | float):
        return
    if claim.comparator == "=":
        scale = claim.value / value if value else 1.0
        for off in (
            value * 1.07 + 1,
            value * 0.9 - 1,
            value + 1 if value == round(value) else value * 2 + 3,
        ):
            if abs(off - value) > 0.02 * abs(value):
                yield "number", replace(claim, value=off * scale)
        yield "comparator", replace(claim, comparator="!=")
        yield (
            "comparator",
            replace(claim, comparator=">", value=claim.value + abs(claim.value) * 0.05 + 1),
        )
        yield (
            "comparator",
            replace(claim, comparator="<", value=claim.value - abs(claim.value) * 0.05 - 1),
        )
    elif claim.comparator in (">", ">=") and claim.value < value:
        yield "comparator", replace(claim, comparator="<=")
    elif claim.comparator in ("<", "<=") and claim.value > value:
        yield "comparator", replace(claim, comparator=">=")
    elif claim.comparator == "approx":
        yield "number", replace(claim, value=claim.value * 1.3)


def _other_quantity(truth: Truth) -> Iterator[tuple[str, Claim]]:
    """The number of one thing for another's: the loss for the gradient, power for the clock."""
    claim, value = truth.claim, truth.value
    item = evidence(truth.name)[claim.evidence]
    if truth.kind == "number in a line":
        line = raw_line(truth.name, item)
        for quantity, pattern, _ in READERS:
            found = re.findall(pattern, line)
            if found and quantity != claim.quantity and abs(float(found[0]) - (value or 0)) > 1:
                yield "another quantity", replace(claim, quantity=quantity)
        yield "another quantity", replace(claim, quantity="temperature")
    if truth.kind == "signal by its name":
        other = next(name for name in SIGNALS.values() if name != claim.quantity)
        yield "another quantity", replace(claim, quantity=other)


def _slips(truth: Truth) -> Iterator[tuple[str, Claim]]:
    """A point or two digits in the wrong place."""
    claim = truth.claim
    if claim.comparator != "=" or not isinstance(claim.value, int | float) or not claim.value:
        return
    yield "number", replace(claim, value=claim.value * 10)
    digits = list(str(claim.value))
    for at in range(len(digits) - 1):
        one, two = digits[at : at + 2]
        if one.isdigit() and two.isdigit() and one != two:
            digits[at : at + 2] = two, one
            swapped = float("".join(digits)) if "." in digits else int("".join(digits))
            if abs(swapped - claim.value) > 0.02 * abs(claim.value):
                yield "number", replace(claim, value=swapped)
            return


def _other_unit(truth: Truth) -> Iterator[tuple[str, Claim]]:
    claim, unit = truth.claim, truth.unit
    if truth.value is None or claim.comparator not in ("=", "approx"):
        return
    if unit in WRONG_UNIT:
        yield "unit", replace(claim, unit=WRONG_UNIT[unit])
    pair = SAME_DIMENSION.get(unit or "")
    if pair is not None and truth.value and isinstance(claim.value, int | float):
        other = pair[1] if claim.unit in (pair[0], unit) and unit != pair[1] else pair[0]
        if claim.unit != other and {claim.unit, other} != {unit, pair[0]}:
            yield "unit", replace(claim, unit=other)
    if unit in ("hertz", "watts", "bytes", "bytes/s", "celsius", "s", "ms"):
        yield "unit", replace(claim, unit=None)


def _other_place(truth: Truth) -> Iterator[tuple[str, Claim]]:
    claim = truth.claim
    own = (evidence(truth.name)[claim.evidence].get("place") or {}) if claim else {}
    hosts = {(item.get("place") or {}).get("host") for item in evidence(truth.name).values()}
    others = sorted(host for host in hosts if host and host != own.get("host"))
    if claim.quantity in ("rank", "task", "gpu"):
        yield "rank or GPU", replace(claim, value=int(claim.value) + 1)  # type: ignore[arg-type]
    if claim.quantity == "host":
        yield "host", replace(claim, value=(others or ["node77"])[0])
    if claim.place.host:
        for host in (*others[:1], "node77", claim.place.host + "0"):
            yield "host", replace(claim, place=replace(claim.place, host=host))
    if claim.place.gpu is not None:
        yield (
            "rank or GPU",
            replace(claim, place=replace(claim.place, gpu=str(int(claim.place.gpu) + 1))),
        )
    if claim.place.rank is not None:
        yield "rank or GPU", replace(claim, place=Place(rank=claim.place.rank + 1))
    if own.get("host") is None and claim.quantity == "line" and "node77" not in str(claim.value):
        yield "host", replace(claim, place=Place(host="node77"))


def _other_time(truth: Truth) -> Iterator[tuple[str, Claim]]:
    claim = truth.claim
    if claim.window is not None:
        for hours in (3, -3, 24):
            off = timedelta(hours=hours)
            yield "window", replace(claim, window=(claim.window[0] + off, claim.window[1] + off))
    if claim.quantity != "time":
        return
    if claim.value in evidence(truth.name):
        yield (
            "order",
            replace(claim, comparator="after" if claim.comparator == "before" else "before"),
        )
        return
    at = datetime.fromisoformat(str(claim.value))
    if claim.comparator == "=":
        for off in (timedelta(hours=1), timedelta(hours=-8), timedelta(seconds=90)):
            yield "shifted time", replace(claim, value=(at + off).isoformat())
        yield "time zone slip", replace(claim, value=at.replace(tzinfo=zone(-7)).isoformat())
        yield "time zone slip", replace(claim, value=at.replace(tzinfo=zone(2)).isoformat())
        yield "time zone slip", replace(claim, value=at.replace(tzinfo=None).isoformat())
    else:
        yield "shifted time", replace(claim, value=(at - timedelta(hours=2)).isoformat())


def _other_evidence(truth: Truth) -> Iterator[tuple[str, Claim]]:
    """The id of another piece: where it says something else, as far as this module can tell."""
    claim, known = truth.claim, evidence(truth.name)
    own = known[claim.evidence]
    for other in list(known.values())[:8]:
        if other is own or other["kind"] != own["kind"]:
            continue
        moved = replace(claim, evidence=other["id"])
        if own["kind"] == "log" and claim.quantity == "line" and claim.comparator == "contains":
            if str(claim.value)[:30] not in raw_line(truth.name, other):
                yield "another's evidence id", moved
        elif own["kind"] == "query" and claim.quantity == own["query"] != other["query"]:
            yield "another's evidence id", moved
        elif own["kind"] == "record" and claim.quantity in ("State", "JobState"):
            if other["value"] != own["value"]:
                yield "another's evidence id", moved
        elif claim.comparator == "absent" and claim.value not in other["searched"]["patterns"]:
            yield "another's evidence id", moved


def _other_text(truth: Truth) -> Iterator[tuple[str, Claim]]:
    claim = truth.claim
    if claim.comparator in ("contains", "last") and claim.quantity == "line":
        text, item = str(claim.value), evidence(truth.name)[claim.evidence]
        lines, at = raw_lines(truth.name, item["source"]), item["line"]
        beside = [line.strip()[:60] for line in lines[at : at + 2] if len(line.strip()) > 8]
        for invented in (
            *beside,
            text[::-1],
            text + " (Xid 79)",
            "CUDA error: unspecified launch failure",
        ):
            if invented not in raw_line(truth.name, item):
                yield "invented line", replace(claim, value=invented)
    if claim.comparator == "absent":
        yield "invented line", replace(claim, value="the loss stayed finite")
    if truth.kind == "record":
        yield "invented line", replace(claim, value=f"{claim.value}X")


@cache
def every_lie() -> tuple[Lie, ...]:
    return tuple(lie for truth in every_truth() for lie in lies_of(truth))
