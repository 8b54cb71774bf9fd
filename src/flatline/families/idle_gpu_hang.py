"""
A single-GPU run holds its GPU and does nothing.

Symptom:
    Memory is held on the GPU, nothing runs on it, and the log is empty or has stopped.

Mechanism:
    The process is stuck before or between GPU work: a lock, a blocking read, a prompt that waits
    for input, a data loader that never yields.

Told apart from:
    C1 rendezvous-hang: a cold run of several ranks.
    C2 collective-hang: ranks wait in a collective, their GPUs busy.
    D1 input-starvation: work still comes, in bursts.

Do:
    Dump the stack of the process (py-spy dump), then cancel and resubmit.

References:
    py-spy; NVIDIA DCGM profiling metrics (SM activity, engine activity).
"""

from __future__ import annotations

from flatline.facts import Facts
from flatline.model import Judgement

CODE = "C3"
NAME = "idle-gpu-hang"
NEEDS = ("GPU activity, memory and power metrics",)
EXPLAINS = {"F3": "a run that does nothing holds its allocation to the wall"}


def judge(facts: Facts) -> Judgement:
    """Neither logs nor records decide it: without the signals named above, not measurable."""
    del facts
    return None
