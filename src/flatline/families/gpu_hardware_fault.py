"""
A GPU, its memory or its links failed under the run.

Symptom:
    The kernel log names an XID or SXid, an uncorrectable memory error, a row-remap failure, an
    NVLink error, or a GPU that fell off the bus; on AMD, a RAS event or a GPU reset.  Job logs
    show CUDA errors and peers that time out.

Mechanism:
    The device can no longer serve the process: it is reset, loses its memory's content, or stops
    answering.  Peers wait in a collective for a rank that cannot come.

Told apart from:
    A3 runtime-crash: XID 13, 31, 43 and 45 in a job are usually the program's own doing.
    XID 45 follows another error; 154 only carries the recovery action for one.
    Latent degradation: counters that are old and did not rise during the run are a warning.

Do:
    Exclude the node and resubmit; reset or replace the GPU; give the vendor the kernel lines.

References:
    NVIDIA XID errors catalogue; NVIDIA GPU debug guidelines; amdgpu RAS documentation.
"""

from __future__ import annotations

from flatline.facts import KERNEL, Facts
from flatline.judging.signed import signed
from flatline.model import Cleared, Judgement

CODE = "B2"
NAME = "gpu-hardware-fault"
NEEDS = ("kernel log", "GPU health metrics (XID, ECC, row remap, NVLink)")
EXPLAINS = {
    "C2": "a rank whose GPU failed cannot enter the collective its peers wait in",
    "A3/cuda": "the CUDA runtime reports the failed device as an error in the program",
    "A2": "the runtime aborts when its device is lost",
    "C5": "peers see the connection of the rank whose GPU failed close",
    "F1": "operations or the health check take a node with a failed GPU out of service",
    "B1": "a device in error refuses allocations",
    "E1": "corrupted memory reaches the weights",
}


def judge(facts: Facts) -> Judgement:
    """Blame the first fault line that the vendor's catalogue counts as hardware."""
    found = signed(
        facts,
        CODE,
        implies="The hardware failed under the run; the program did not cause it.",
        cannot_decide=("Whether the part will fail again: the vendor's diagnostics would tell.",),
        advice="Reset or replace the GPU and give the vendor the kernel lines.",
    )
    if found is not None:
        return found
    absent = facts.absence(["family:B2"], "no hardware fault in any kernel log", KERNEL)
    return None if absent is None else Cleared(CODE, absent.text, (absent,))
