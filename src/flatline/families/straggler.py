"""
One rank is slower than the others, and all wait for it.

Symptom:
    Steps take longer than they should; one rank waits least in collectives, or is late before
    each synchronisation.

Mechanism:
    Synchronous training runs at the pace of its slowest rank: a slow device, a slow host, more
    data, or worse placement.

Told apart from:
    B2, B3, D4 and D5 explain a slow rank and go before it.
    Victims: synchronised step time is the same on every rank and names nobody.

Do:
    Compare the rank's device, host and data with its peers'; exclude its host if it recurs.

References:
    NCCL collective timing; NVIDIA DCGM SM activity.
"""

from __future__ import annotations

from flatline.facts import Facts
from flatline.model import Judgement

CODE = "D3"
NAME = "straggler"
NEEDS = (
    "per-rank collective or compute times (profiler traces, flight recorder)",
    "GPU activity metrics",
)
EXPLAINS = {"F3": "a run at the pace of its slowest rank does not reach its plan in time"}


def judge(facts: Facts) -> Judgement:
    """Neither logs nor records decide it: without the signals named above, not measurable."""
    del facts
    return None
