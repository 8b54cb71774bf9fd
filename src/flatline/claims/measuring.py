"""What a piece of evidence gives for a quantity when it is read again: a value, or a refusal."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache

from flatline.claims.model import Claim, Evidence
from flatline.claims.rerun import Ask
from flatline.claims.units import COUNTED, NOT_FINITE, NUMBER, number_of, unit_named
from flatline.errors import FormatError, UsageError
from flatline.model import Scalar

PLACES = ("host", "rank", "task", "gpu", "device")
_KEEPS_ITS_SIGNAL = frozenset(
    {f"{name}_over_time" for name in ("avg", "max", "min", "last", "quantile")}
    | {"avg", "max", "min", "quantile", "topk", "bottomk"}
)
"""Functions whose result may still be called by the name of the signal they are of."""
_FUNCTION = re.compile(r"([a-z_]+)\s*(?:(?:by|without)\s*\([^()]*\)\s*)?\(")
_METRIC = re.compile(r"[A-Za-z_:][\w:]*")
_EXIT_CODE = re.compile(r"^(-?\d+)(?::(\d+))?$")


_RANGE = re.compile(r"\[((?:\d+(?:ms|[smhdwy]))+)(?::[^\]]*)?\]")
_PART_S = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0, "y": 31536e3}


@dataclass(frozen=True, slots=True)
class Measured:
    """A value as the evidence gives it now."""

    value: Scalar
    unit: str | None = None


class Refused(Exception):
    """The evidence does not speak of what is claimed. The message says why, for the model."""


def instant_in(item: Evidence) -> datetime | None:
    """When it was, as the evidence has it: of a query the end of what it was asked over."""
    try:
        at = datetime.fromisoformat(str(item.get("at") or item.get("end")))
    except ValueError:
        return None
    return at if at.tzinfo is not None else None


def asked(item: Evidence) -> list[tuple[datetime, datetime]]:
    """The window of a query as asked, and the one its longest range looks back over."""
    start, end = (datetime.fromisoformat(str(item[key])) for key in ("start", "end"))
    windows = [(start, end)]
    ranges = [_seconds(found) for found in _RANGE.findall(str(item.get("query")))]
    if ranges:
        windows.append((start - timedelta(seconds=max(ranges)), end))
    return windows


def _seconds(length: str) -> float:
    parts = re.findall(r"(\d+)(ms|[smhdwy])", length)
    return sum(int(number) * _PART_S[part] for number, part in parts)


# --- log lines ----------------------------------------------------------------------------------


def named(quantity: str) -> re.Pattern[str]:
    """A number behind its name as programs print it: `step 30/260`, `'loss': '2.1'`, `lr=1e-4`,
    `exitcode  : -9`, `Timeout(ms)=600000`."""
    words = [re.escape(word) for word in re.split(r"[\s_-]+", quantity.strip()) if word]
    name = r"[\s_-]*".join(words)
    number = f"(?:{NOT_FINITE.pattern.replace('(?i)', '')}|{NUMBER.pattern})"
    return re.compile(
        rf"(?i)(?<![A-Za-z0-9_]){name}(?![A-Za-z0-9_])(?:\((?P<within>[A-Za-z%/]{{1,8}})\))?"
        rf"['\"]?\s{{0,4}}(?:[:=]|\bis\b|\bof\b)?\s{{0,4}}['\"\[(]?(?P<number>{number})"
        rf"(?:\s?(?P<unit>[A-Za-z%°µ/]{{1,12}}))?"
    )


def numbers_named(line: str, quantity: str) -> Iterator[Measured]:
    """Every number that a line prints under a name, with the unit printed with it."""
    for found in named(quantity).finditer(line):
        value = number_of(found["number"])
        said = found["within"] or found["unit"]
        unit = unit_named(said) if said else None
        if value is not None:
            real = unit is not None and unit.dimension != COUNTED
            yield Measured(value, said if real else None)


def of_line(claim: Claim, item: Evidence, line: str) -> Measured:
    quantity = claim.quantity.strip().lower()
    if quantity == "line number":
        return Measured(int(item["line"]))
    if quantity == "signal" and (got := re.search(r"\bSIG[A-Z]{2,6}\b", line)) is not None:
        number = getattr(signal, got[0], None)
        if number is not None:
            return Measured(int(number))
    found = list(dict.fromkeys(numbers_named(line, claim.quantity)))
    if not found:
        raise Refused(f"the line prints no number called {claim.quantity[:60]!r}")
    if len(found) > 1:
        raise Refused(f"the line prints {len(found)} different numbers called that")
    return found[0]


# --- records, dumps, derived values, absences ---------------------------------------------------


def of_pointer(claim: Claim, item: Evidence, ask: Ask) -> Measured:
    """The field that is cited, or another of the same record by its name."""
    pointer = str(item["pointer"])
    head, comma, own = pointer.rpartition(", ")
    wanted = _key(claim.quantity)
    if wanted in (_key(own), _key(pointer)) or (wanted == "state" and _key(own).endswith("state")):
        return Measured(ask.field(item, pointer))
    if comma:
        field = {"exitcode": "ExitCode", "signal": "ExitCode"}.get(wanted, claim.quantity.strip())
        try:
            value = ask.field(item, f"{head}, {field}")
        except (FormatError, UsageError, KeyError):
            raise Refused(f"the record has no field {claim.quantity[:60]!r}") from None
        return Measured(_exit_part(value, wanted))
    raise Refused(f"what is cited is {own[:60]!r}, not {claim.quantity[:60]!r}")


def _exit_part(value: Scalar, wanted: str) -> Scalar:
    """Slurm writes exit code and signal as `143:0`."""
    found = _EXIT_CODE.match(str(value))
    if found is None or wanted not in ("exitcode", "signal"):
        return value
    return int(found[1] if wanted == "exitcode" else found[2] or 0)


def of_derived(claim: Claim, item: Evidence) -> Measured:
    method = str(item.get("method")).partition("@")[0]
    names = {method, str(item.get("text"))}
    if method == "elapsed":
        names |= {"duration", "time between", "elapsed time"}
    if _key(claim.quantity) not in set(map(_key, names)):
        raise Refused(f"what is cited is {method}, not {claim.quantity[:60]!r}")
    return Measured(item.get("value"), item.get("unit"))


def of_absence(claim: Claim, item: Evidence) -> Measured:
    searched = item.get("searched") or {}
    if _key(claim.quantity) in ("linessearched", "searchedlines"):
        return Measured(searched.get("lines"))
    if _key(claim.quantity) == "files":
        return Measured(len(searched.get("files") or ()))
    raise Refused("of an absence only absent, lines searched and files can be claimed")


# --- queries ------------------------------------------------------------------------------------


def speaks_of(quantity: str, item: Evidence) -> bool:
    """Whether a query measures a quantity: it is the query, its words, or a signal it is of."""
    query = str(item.get("query"))
    wanted = quantity.strip()
    if _key(wanted) in (_key(query), _key(str(item.get("text")))):
        return True
    inner = re.fullmatch(r"([a-z_]+)\(([A-Za-z_:][\w:]*)(?:\[\w+\])?\)", wanted)
    functions = set(_FUNCTION.findall(query)) - {"by", "without", "on", "ignoring"}
    if inner is not None:
        return inner[1] in functions and _of_signal(inner[2], query)
    return functions <= _KEEPS_ITS_SIGNAL and _of_signal(wanted, query)


def _of_signal(name: str, query: str) -> bool:
    """Whether the first metric of a query is the one named, or carries the signal named: what
    stands behind it filters."""
    known = {metric for metrics in _carriers().values() for metric in metrics}
    wanted = {name, *_carriers().get(name, ())}
    first = next((word for word in _METRIC.findall(query) if word in known | wanted), None)
    return first in wanted


@cache
def _carriers() -> dict[str, tuple[str, ...]]:
    from flatline.vocab import vocabularies

    found: dict[str, tuple[str, ...]] = {}
    for vocabulary in vocabularies():
        for carrier in vocabulary.carriers:
            found[carrier.signal] = (*found.get(carrier.signal, ()), carrier.metric)
    return found


def of_query(claim: Claim, item: Evidence, ask: Ask) -> Measured:
    if not speaks_of(claim.quantity, item):
        raise Refused(f"what was asked is {str(item.get('query'))[:120]}: another quantity")
    unit = item.get("unit")
    if claim.comparator in ("first", "last"):
        if claim.window is None:
            raise Refused("first and last of a query are those of a window: name it")
        return Measured(ask.value(item, claim.window[claim.comparator == "last"]), unit)
    return Measured(ask.value(item), unit)


def _key(text: str) -> str:
    return re.sub(r"[\s_-]+", "", text).lower()


def of_any(claim: Claim, item: Evidence, ask: Ask) -> Measured:
    """What evidence without lines and series gives."""
    kind = item.get("kind")
    if claim.comparator in ("first", "last"):
        raise Refused(f"evidence of kind {kind} has no first and last")
    if kind in ("record", "dump"):
        return of_pointer(claim, item, ask)
    if kind == "derived":
        return of_derived(claim, item)
    if kind == "count" and _key(claim.quantity) == "countoflines":
        return Measured(item.get("value"), COUNTED)
    return of_absence(claim, item)
