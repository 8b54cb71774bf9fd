"""
The run is slow everywhere alike, for a reason that can be named.

Symptom:
    Every rank advances at the same low pace: checkpoints at nearly every step, collectives over
    sockets instead of the fast fabric, or every launch serialised by a debug setting.

Mechanism:
    Storage, interconnect or the launch path sets the pace of the step, not the compute.

Told apart from:
    D3 straggler: one rank sets the pace.
    D4 network-degradation: some hosts lose packets.
    D6 training-dynamics-slowdown: the work itself grew.

Do:
    Save less often, restore the fast transport, unset CUDA_LAUNCH_BLOCKING.

References:
    NCCL environment variables (NCCL_NET, NCCL_IB_DISABLE); CUDA_LAUNCH_BLOCKING.
"""

from __future__ import annotations

from flatline.facts import Facts
from flatline.model import Judgement

CODE = "D2"
NAME = "throughput-bound"
NEEDS = ("GPU activity metrics", "network and storage metrics", "a baseline run")
EXPLAINS = {"F3": "a run at a fraction of its pace does not reach its plan in time"}


def judge(facts: Facts) -> Judgement:
    """Neither logs nor records decide it: without the signals named above, not measurable."""
    del facts
    return None
