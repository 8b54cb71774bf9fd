"""
Points of a log that dates its lines in whole seconds.

Where steps take two seconds, or two and a half, most of them seem to take two: their median hides
a quarter.  Points that are farther apart show it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

LEAST_S = 10.0
"""The half second by which the median of such lengths may be off is a twentieth of it."""
STILL_TELLS = 4
"""Into how many times as many points as are needed a run is divided at least."""


def far_apart(points: Sequence[int], at: Mapping[int, float], needed: int) -> Sequence[int]:
    """All points where they have fractions of a second, or are fewer than `needed`; else those
    that are far enough apart, of a short run as far as leaves enough of them."""
    if len(points) < needed or any(at[i] % 1 for i in points):
        return points
    least_s = min(LEAST_S, (at[points[-1]] - at[points[0]]) / (STILL_TELLS * needed))
    out = [points[0]]
    for i in points[1:]:
        if at[i] - at[out[-1]] >= least_s:
            out.append(i)
    return out
