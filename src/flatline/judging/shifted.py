"""
Hosts whose metrics were written by a clock of their own.

What all hosts of a synchronous run do together, pauses and phases, such a host shows earlier or
later: it seems to work while they wait, and to wait while they work.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flatline.series.storage import Floats

FARTHEST = 12
"""Stretches by which it may be off: an eighth of a run that is cut finely."""
ALIKE, BETTER = 0.5, 0.3
"""How well what it shows must follow the others' once it is moved, and by how much better than as
it stands.  A judgement: of a host that works on while the others wait neither follows."""
MANY = 16
"""Hosts of which one hardly moves the median."""
LEAST = 24
"""Stretches in which both were read."""


def shifted(by_host: Mapping[str, Floats], asked: Set[str]) -> frozenset[str]:
    """Those of the hosts that are asked, of three and more, whose means over the same stretches
    follow the others' better when they are moved."""
    import numpy as np  # where numbers were read alone

    from flatline.series.standing import medians

    if len(by_host) < 3:
        return frozenset()
    hosts, values = list(by_host), np.vstack(list(by_host.values()))
    found, all_ = set(), medians(values.T)
    for at, host in enumerate(hosts):
        if host not in asked:
            continue
        few = len(hosts) < MANY
        others = medians(np.delete(values, at, axis=0).T) if few else all_
        fits = {lag: _follows(values[at], others, lag) for lag in range(-FARTHEST, FARTHEST + 1)}
        best = max(fits, key=lambda lag: (fits[lag], -abs(lag)))
        if best and fits[best] >= ALIKE and fits[best] >= fits[0] + BETTER:
            found.add(host)
    return frozenset(found)


def _follows(own: Floats, others: Floats, lag: int) -> float:
    """The correlation of the two, one moved by so many stretches; 0 where one does not change."""
    import numpy as np  # as above

    first, last = max(0, lag), min(len(own), len(own) + lag)
    if last - first < LEAST:
        return 0.0
    a, b = own[first:last], others[first - lag : last - lag]
    known = np.isfinite(a) & np.isfinite(b)
    if known.sum() < LEAST or not a[known].std() or not b[known].std():
        return 0.0
    return float(np.corrcoef(a[known], b[known])[0, 1])
