"""
The GPUs wait for input.

Symptom:
    Progress with a low duty cycle: kernels in bursts, gaps of a step's length between them.

Mechanism:
    The data pipeline (reading, decoding, tokenising, copying to the device) is slower than the
    model.

Told apart from:
    D3 straggler: one rank is slow and the others wait in a collective.
    D5 host-contention: the pipeline is slow because something else uses the host.
    G1 healthy: a small model can leave a large GPU idle by nature.

Do:
    More loader workers, prefetching, pinned memory, data prepared beforehand.

References:
    PyTorch DataLoader documentation; NVIDIA DCGM profiling metrics.
"""

from __future__ import annotations

from flatline.facts import Facts
from flatline.model import Judgement

CODE = "D1"
NAME = "input-starvation"
NEEDS = ("GPU activity metrics", "profiler traces|a baseline run")
EXPLAINS = {"F3": "a run that waits for input does not reach its plan in time"}


def judge(facts: Facts) -> Judgement:
    """Neither logs nor records decide it: without the signals named above, not measurable."""
    del facts
    return None
