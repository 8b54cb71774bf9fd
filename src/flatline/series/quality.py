"""
Whether series are worth reading: an exporter that repeats an old reading says nothing.

A web server goes on serving the last page after its collector has died: every series of the host
stands still to the last digit, while those of other hosts move.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from flatline.series.storage import Floats, Series

STILL_S = 300.0
"""Shorter than this a reading may truly not change: collectors that fail are restarted within
minutes, and a power rounded to watts holds for seconds."""
STILL_SAMPLES = 10
BLANKS = np.array([
    *(2.0**47 + n for n in range(4)), float(0x7FFFFFFFFFFFFFF0), float(2**64 - 1)
])  # fmt: skip
"""What stands for no value: DCGM's blank, not found, not supported and not permitted, as numbers
with a fraction and as whole ones (dcgm_structs.h), and all ones, as AMD's drivers give it."""
Sampled = tuple[Floats, Floats]
"""Times and values of one series."""


def longest_still(series: Sequence[Sampled]) -> tuple[float, float] | None:
    """
    The longest time in which no series changed though it was sampled; None where one always did.

    Series of one host, sampled together: a change of any of them ends the standstill.
    """
    changes = [times[1:][values[1:] != values[:-1]] for times, values in series if len(times) > 1]
    sampled = [times for times, _ in series if len(times) > 1]
    if not sampled:
        return None
    first = min(float(times[0]) for times in sampled)
    last = max(float(times[-1]) for times in sampled)
    moments = np.unique(np.concatenate([np.array([first, last]), *changes]))
    gaps = np.diff(moments)
    if not gaps.size:
        return None
    longest = int(np.argmax(gaps))
    start, end = float(moments[longest]), float(moments[longest + 1])
    inside = max(int(np.count_nonzero((t >= start) & (t < end))) for t in sampled)
    return (start, end) if end - start >= STILL_S and inside >= STILL_SAMPLES else None


def without_blanks(series: Series) -> tuple[Series, int]:
    """The series without samples that say that there is no value, and how many these are."""
    if not (np.abs(series.values) >= BLANKS.min()).any():
        return series, 0
    kept = ~np.isin(series.values, BLANKS)
    ends = np.concatenate(([0], np.cumsum(kept)))
    return (Series(series.labels, series.times[kept], series.values[kept], ends[series.offsets]),
            int(series.values.size - kept.sum()))  # fmt: skip


def moved(series: Sequence[Sampled], start: float, end: float) -> bool:
    """Whether any series changed within start..end."""
    for times, values in series:
        inside = values[(times >= start) & (times <= end)]
        if len(inside) > 1 and bool(np.any(np.diff(inside) != 0)):
            return True
    return False


def stood_still(by_host: Mapping[str, Sequence[Sampled]]) -> dict[str, tuple[float, float]]:
    """Hosts whose every series stood still while those of most other hosts moved."""
    found = {}
    for host, series in by_host.items():
        still = longest_still(series)
        others = [other for name, other in by_host.items() if name != host]
        if still is None or not others:
            continue
        if 2 * sum(moved(other, *still) for other in others) > len(others):
            found[host] = still
    return found
