"""
Functions of one sample at a time: rounding, clamping, logarithms.

Each takes the values of a vector and its scalar arguments by step, and gives values and which
of them stay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flatline.series.promql.vector import Bools
from flatline.series.storage import Floats

Instant = Callable[..., tuple[Floats, Bools | bool]]


def _plain(function: Callable[[Any], Floats]) -> Instant:
    return lambda values: (function(values), True)


def _clamp(values: Floats, least: Floats, most: Floats) -> tuple[Floats, Bools]:
    """Nothing is left at a step where the bounds cross."""
    return np.maximum(least, np.minimum(most, values)), ~(least > most)


def _round(values: Floats, nearest: Floats | None = None) -> tuple[Floats, bool]:
    """To the nearest multiple, ties upwards, through its inverse as Prometheus does."""
    inverse = 1.0 if nearest is None else 1.0 / nearest
    return np.floor(values * inverse + 0.5) / inverse, True


INSTANT: dict[str, Instant] = {
    "abs": _plain(np.abs),
    "ceil": _plain(np.ceil),
    "floor": _plain(np.floor),
    "sqrt": _plain(np.sqrt),
    "exp": _plain(np.exp),
    "ln": _plain(np.log),
    "log2": _plain(np.log2),
    "log10": _plain(np.log10),
    "sgn": _plain(np.sign),
    "round": _round,
    "clamp": _clamp,
    "clamp_min": lambda values, least: (np.maximum(least, values), True),
    "clamp_max": lambda values, most: (np.minimum(most, values), True),
}
