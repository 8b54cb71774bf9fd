"""
Something else uses the host the run needs.

Symptom:
    Steps are slower while the host shows a longer run queue, memory or I/O pressure, or threads
    that were never ended.

Mechanism:
    Data loading, launches and progress threads compete for CPU, memory bandwidth or I/O.

Told apart from:
    D1 input-starvation: the pipeline is slow by itself.
    D3 straggler: the slow rank's host shows no pressure.

Do:
    End what competes, pin the ranks' cores, or take the host alone (--exclusive).

References:
    Linux pressure stall information; /proc/stat procs_running.
"""

from __future__ import annotations

from flatline.facts import Facts
from flatline.model import Judgement

CODE = "D5"
NAME = "host-contention"
NEEDS = ("host metrics (run queue, pressure, memory)", "a baseline run|other hosts of the run")
EXPLAINS = {
    "D1": "a starved host cannot feed its GPUs",
    "D3": "the rank on the contended host is the one the others wait for",
    "F3": "a slowed run does not reach its plan in time",
}


def judge(facts: Facts) -> Judgement:
    """Neither logs nor records decide it: without the signals named above, not measurable."""
    del facts
    return None
