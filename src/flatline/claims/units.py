"""
Units as people write them, and conversion between those of one dimension.

Symbols are told apart by case (mW is no MW, Gb no GB); words are not.  Prefixes are the SI's and
IEC's (SI brochure, 9th edition, table 7; IEC 80000-13).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

PLAIN = frozenset((None, "", "value", "code", "flag", "bitmask"))
"""Units of what has none."""
COUNTED = "count"
_SI = {"n": 1e-9, "u": 1e-6, "µ": 1e-6, "μ": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9,
       "T": 1e12, "P": 1e15}  # fmt: skip
_IEC = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}
_NOUNS = (
    "count", "line", "step", "sample", "token", "tok", "packet", "error", "event", "time", "it",
    "iteration", "rank", "host", "node", "gpu", "process", "task", "retry", "retransmit", "job",
    "retransmission", "request", "row", "page", "epoch", "file", "attempt", "restart",
    "kill", "worker",
)  # fmt: skip
"""What is counted: not a unit, and rates of it are alike."""


@dataclass(frozen=True, slots=True)
class Unit:
    """`base = number * scale + offset`, base being the dimension's own unit."""

    dimension: str
    scale: float = 1.0
    offset: float = 0.0


_RATES = {"1/s": Unit("count/s"), "Bps": Unit("bytes/s"), "bps": Unit("bytes/s", 0.125)}


def _prefixed(dimension: str, symbol: str, prefixes: Iterable[str]) -> dict[str, Unit]:
    every = {**_SI, **_IEC}
    return {f"{prefix}{symbol}": Unit(dimension, every[prefix]) for prefix in prefixes}


@cache
def _symbols() -> dict[str, Unit]:
    return {
        "W": Unit("power"), **_prefixed("power", "W", "umkM"),
        "J": Unit("energy"), **_prefixed("energy", "J", "mkM"),
        "Hz": Unit("frequency"), **_prefixed("frequency", "Hz", "kMG"),
        "B": Unit("bytes"), **_prefixed("bytes", "B", "kMGTP"), "KB": Unit("bytes", 1e3),
        **_prefixed("bytes", "B", _IEC),
        **{f"{p}iB": Unit("bytes", _IEC[f"{p.upper()}i"]) for p in "k"},
        "b": Unit("bytes", 0.125), **{f"{p}b": Unit("bytes", _SI[p] / 8) for p in "kMGT"},
        **{f"{p}bit": Unit("bytes", _SI[p] / 8) for p in "kMGT"}, "bit": Unit("bytes", 0.125),
        "s": Unit("time"), **_prefixed("time", "s", "nuµμm"),
        "h": Unit("time", 3600.0), "d": Unit("time", 86400.0),
        "°C": Unit("temperature"), "C": Unit("temperature"),
        "K": Unit("temperature", 1.0, -273.15),
        "°F": Unit("temperature", 5 / 9, -160 / 9),
        "%": Unit("ratio", 0.01),
    }  # fmt: skip


@cache
def _words() -> dict[str, Unit]:
    scaled = {"milli": 1e-3, "micro": 1e-6, "nano": 1e-9, "kilo": 1e3, "mega": 1e6, "giga": 1e9,
              "tera": 1e12, "kibi": 2.0**10, "mebi": 2.0**20, "gibi": 2.0**30,
              "tebi": 2.0**40, "": 1.0}  # fmt: skip
    words = {"watt": "power", "joule": "energy", "byte": "bytes", "second": "time",
             "hertz": "frequency"}  # fmt: skip
    found = {f"{prefix}{word}{plural}": Unit(dimension, scale)
             for prefix, scale in scaled.items() for word, dimension in words.items()
             for plural in ("", "s")}  # fmt: skip
    for size, names in ((1.0, "sec secs"), (60.0, "min mins minute minutes"),
                        (3600.0, "hr hrs hour hours"), (86400.0, "day days"),
                        (1e-3, "msec msecs")):  # fmt: skip
        found.update({name: Unit("time", size) for name in names.split()})
    found.update({"celsius": Unit("temperature"), "kelvin": Unit("temperature", 1.0, -273.15),
                  "ratio": Unit("ratio"), "percent": Unit("ratio", 0.01),
                  "pct": Unit("ratio", 0.01), "bits": Unit("bytes", 0.125)})  # fmt: skip
    found.update({f"{noun}{plural}": Unit(COUNTED) for noun in _NOUNS for plural in ("", "s")})
    found.update({f"{stem}es": Unit(COUNTED) for stem in ("batch", "process", "retri", "seri")})
    return found


@cache
def unit_named(name: str | None) -> Unit | None:
    """The unit of a name; None where there is no such unit. What has no unit is a plain one."""
    if name in PLAIN or name is None:
        return Unit("plain")
    name = name.strip()
    if name in _RATES:
        return _RATES[name]
    head, slash, tail = name.partition("/")
    for word in (" per second", " a second"):
        if name.endswith(word):
            head, slash, tail = name.removesuffix(word), "/", "s"
    if not slash:
        return _symbols().get(name) or _words().get(name.lower())
    top, below = unit_named(head), unit_named(tail)
    if top is None or below is None or below.dimension != "time" or top.offset:
        return None
    dimension = "ratio" if top.dimension == "time" else f"{top.dimension}/s"
    return Unit(dimension, top.scale / below.scale)


def converted(value: float, unit: str | None, into: str | None) -> float | None:
    """The value in another unit; None where the two measure different things."""
    one, other = unit_named(unit), unit_named(into)
    if one is None or other is None or one.dimension != other.dimension:
        return None
    return ((value * one.scale + one.offset) - other.offset) / other.scale


def claimable(unit: str | None, measured: str | None) -> str | None:
    """
    The unit a measured value is to be compared in, where it is claimed in `unit`.

    None where that is wrong: another dimension, or no unit where the value has one.  A ratio and a
    count may stand without.
    """
    bare = unit in PLAIN
    own = unit_named(measured)
    if own is None:  # a unit nobody converts: it is written as it is, or it is wrong
        return measured if unit == measured else None
    if bare and own.dimension in ("plain", COUNTED, "ratio"):
        return measured if own.dimension != "ratio" else "ratio"
    return unit if converted(1.0, measured, unit) is not None else None


def whole(unit: str | None) -> bool:
    """Whether values of a unit are counted, so that there is no rounding of them."""
    own = unit_named(unit)
    return own is not None and own.dimension in (COUNTED, "plain")


NUMBER = re.compile(
    r"[-+−]?(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+(?:_[0-9]{3})*)(?:\.[0-9]+)?"
    r"(?:[eE][-+]?[0-9]+)?"
    r"|[-+−]?\.[0-9]+(?:[eE][-+]?[0-9]+)?"
)
NOT_FINITE = re.compile(r"(?i)[-+]?(?:nan|inf(?:inity)?)(?![A-Za-z0-9_])")


def number_of(text: str) -> float | None:
    """`1,410`, `1.5e3`, `nan`; None for what is no number."""
    stripped = text.strip()
    if NUMBER.fullmatch(stripped):
        return float(stripped.replace(",", "").replace("_", "").replace("−", "-"))
    return float(stripped) if NOT_FINITE.fullmatch(stripped) else None


def decimals(said: float | str) -> int:
    """Digits behind the point as it was written; a float's are those of its shortest form."""
    text = said if isinstance(said, str) else repr(said)
    mantissa, _, exponent = text.lower().replace(",", "").partition("e")
    places = len(mantissa.partition(".")[2]) if not mantissa.endswith(".0") else 0
    return places - int(exponent or 0)


def same(said: float | str, measured: float, *, exact: bool) -> bool:
    """
    Whether a number as it was written is the measured one.

    What is counted must be equal.  What is measured may be rounded where it was written so, by
    half a percent at most: 18.2 is 18.216, 18 is not.
    """
    number = number_of(said) if isinstance(said, str) else float(said)
    if number is None:
        return False
    if math.isnan(number) or math.isnan(measured):
        return math.isnan(number) and math.isnan(measured)
    if math.isinf(number) or math.isinf(measured) or number == measured:
        return number == measured
    off = abs(number - measured)
    if exact and measured == round(measured):
        return off <= 1e-9 * abs(measured)
    if off <= 1e-4 * abs(measured):
        return True
    rounding = 0.5 * 10.0 ** -min(decimals(said), 300)
    return off <= rounding * (1 + 1e-9) and off <= 0.005 * abs(measured)
