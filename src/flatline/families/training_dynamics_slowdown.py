"""
The work itself grew.

Symptom:
    Throughput slides while every system signal is clean; a training metric moved at the same
    step: expert imbalance, sequence length, recompilation.

Mechanism:
    The model or the data changed the amount or the balance of work per step.

Told apart from:
    D2 to D5: a system signal moved.
    E1 loss-divergence: the loss itself is wrong.

Do:
    Look at the metric that moved: router balance, length buckets, compilation counts.

References:
    MaxText and Megatron mixture-of-experts metrics; JAX compilation logging.
"""

from __future__ import annotations

from flatline.facts import Facts
from flatline.model import Judgement

CODE = "D6"
NAME = "training-dynamics-slowdown"
NEEDS = ("training throughput over time", "training metrics", "GPU, host and network metrics")
EXPLAINS = {"F3": "a slowed run does not reach its plan in time"}


def judge(facts: Facts) -> Judgement:
    """Neither logs nor records decide it: without the signals named above, not measurable."""
    del facts
    return None
