"""
Functions of one sample at a time: rounding, logarithms, angles, and the calendar in UTC.

Each takes the values of a vector and its scalar arguments by step, and gives values and which
of them stay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flatline.series.promql.vector import Bools
from flatline.series.storage import Floats, Ints

Instant = Callable[..., tuple[Floats, Bools | bool]]


def _plain(function: Callable[[Any], Floats]) -> Instant:
    return lambda values: (function(values), True)


def lesser(a: Floats, b: Floats) -> Floats:
    """Go's `math.Min`: -Inf goes before NaN, and NaN before any other number."""
    return np.where((a == -np.inf) | (b == -np.inf), -np.inf, np.minimum(a, b))


def greater(a: Floats, b: Floats) -> Floats:
    """Go's `math.Max`: +Inf goes before NaN, and NaN before any other number."""
    return np.where((a == np.inf) | (b == np.inf), np.inf, np.maximum(a, b))


def _clamp(values: Floats, least: Floats, most: Floats) -> tuple[Floats, Bools]:
    """Nothing is left at a step where the bounds cross."""
    return greater(least, lesser(most, values)), ~(least > most)


def _round(values: Floats, nearest: Floats | None = None) -> tuple[Floats, bool]:
    """To the nearest multiple, ties upwards, through its inverse as Prometheus does."""
    inverse = 1.0 if nearest is None else 1.0 / nearest
    return np.floor(values * inverse + 0.5) / inverse, True


def _sign(values: Floats) -> Floats:
    return np.where(values < 0, -1.0, np.where(values > 0, 1.0, values))


INSTANT: dict[str, Instant] = {
    "abs": _plain(np.abs),
    "ceil": _plain(np.ceil),
    "floor": _plain(np.floor),
    "sqrt": _plain(np.sqrt),
    "exp": _plain(np.exp),
    "ln": _plain(np.log),
    "log2": _plain(np.log2),
    "log10": _plain(np.log10),
    "sgn": _plain(_sign),
    "sin": _plain(np.sin),
    "cos": _plain(np.cos),
    "tan": _plain(np.tan),
    "asin": _plain(np.arcsin),
    "acos": _plain(np.arccos),
    "atan": _plain(np.arctan),
    "sinh": _plain(np.sinh),
    "cosh": _plain(np.cosh),
    "tanh": _plain(np.tanh),
    "asinh": _plain(np.arcsinh),
    "acosh": _plain(np.arccosh),
    "atanh": _plain(np.arctanh),
    "rad": _plain(lambda values: values * np.pi / 180),
    "deg": _plain(lambda values: values * 180 / np.pi),
    "round": _round,
    "clamp": _clamp,
    "clamp_min": lambda values, least: (greater(least, values), True),
    "clamp_max": lambda values, most: (lesser(most, values), True),
}


# --- the calendar -------------------------------------------------------------------------------

Wide = NDArray[np.uint64]
DAY_S = 86_400
TO_ZERO_S = 62_135_596_800 + 9_223_371_966_579_724_800
"""Seconds from the first day of ZERO_YEAR to 1970: Go's `time` counts from there, in 64 bits
that wrap, so that its answer for what is no instant (NaN, 1e30) is met too."""
ZERO_YEAR = -292_277_022_399
_BEFORE = np.array([0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365])
"""Days of a common year before each month."""


def _absolute(values: Floats) -> Wide:
    """Whole seconds since the first day of ZERO_YEAR."""
    known = np.abs(values) < 2.0**63
    whole = np.where(known, values, 0.0).astype(np.int64)
    whole[~known] = np.iinfo(np.int64).min
    return whole.view(np.uint64) + np.uint64(TO_ZERO_S)


def _calendar(values: Floats) -> tuple[Ints, Ints, Bools]:
    """Year, days of the year gone by, and whether it is a leap year."""
    days = (_absolute(values) // np.uint64(DAY_S)).astype(np.int64)
    eras, days = np.divmod(days, 146_097)
    hundreds = np.minimum(days // 36_524, 3)
    days = days - hundreds * 36_524
    fours, days = np.divmod(days, 1461)
    ones = np.minimum(days // 365, 3)
    leap = (ones == 3) & ((fours < 24) | (hundreds == 3))
    year = eras * 400 + hundreds * 100 + fours * 4 + ones + ZERO_YEAR
    return year, days - ones * 365, leap


def _month_and_day(values: Floats) -> tuple[Ints, Ints, Bools]:
    """Month from 0, day from 1, and whether the month is a leap year's February."""
    _, gone, leap = _calendar(values)
    common = np.where(leap & (gone > 59), gone - 1, gone)
    month = np.searchsorted(_BEFORE, common, "right") - 1
    day = common - _BEFORE[month] + 1
    leap_day = leap & (gone == 59)
    month = np.where(leap_day, 1, month).astype(np.int64)
    return month, np.where(leap_day, 29, day), leap & (month == 1)


def _days_in_month(values: Floats) -> Ints:
    month, _, longer = _month_and_day(values)
    days: Ints = np.diff(_BEFORE)[month] + longer
    return days


def _weekday(values: Floats) -> Wide:
    """From Sunday; the first day of ZERO_YEAR was a Monday."""
    return (_absolute(values) // np.uint64(DAY_S) + np.uint64(1)) % np.uint64(7)


CALENDAR: dict[str, Callable[[Floats], Any]] = {
    "year": lambda values: _calendar(values)[0],
    "month": lambda values: _month_and_day(values)[0] + 1,
    "day_of_month": lambda values: _month_and_day(values)[1],
    "day_of_year": lambda values: _calendar(values)[1] + 1,
    "days_in_month": _days_in_month,
    "day_of_week": _weekday,
    "hour": lambda values: _absolute(values) % np.uint64(DAY_S) // np.uint64(3600),
    "minute": lambda values: _absolute(values) % np.uint64(3600) // np.uint64(60),
}
"""Functions of an instant in seconds; without an argument they take the step's own."""


def calendar(name: str, values: Floats) -> Floats:
    """One of CALENDAR as floats."""
    out: Floats = np.asarray(CALENDAR[name](values)).astype(np.float64)
    return out
