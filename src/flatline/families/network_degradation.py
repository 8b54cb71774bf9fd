"""
Some hosts lose traffic, and the run slows with them.

Symptom:
    Throughput falls in phases; link errors or RDMA retransmits on a few hosts rise in the same
    phases.

Mechanism:
    A link that loses packets makes every collective through it wait for retransmission.

Told apart from:
    C5 network-failure: the link is gone, not slow.
    D2 throughput-bound (slow-interconnect): uniform, without link errors.
    TCP retransmits alone do not slow collectives that run over RDMA.

Do:
    Exclude the hosts in the order of their errors and resubmit; have their links checked.

References:
    InfiniBand port and hardware counters (Linux RDMA documentation).
"""

from __future__ import annotations

from flatline.facts import Facts
from flatline.model import Judgement

CODE = "D4"
NAME = "network-degradation"
NEEDS = ("RDMA and link counters per host", "training throughput over time")
EXPLAINS = {
    "F3": "a slowed run does not reach its plan in time",
    "D3": "the rank behind a losing link is the one the others wait for",
}


def judge(facts: Facts) -> Judgement:
    """Neither logs nor records decide it: without the signals named above, not measurable."""
    del facts
    return None
