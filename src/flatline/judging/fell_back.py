"""
Collectives over sockets in a run that was set as a faster one was, which used a fabric.

NCCL and RCCL fall back without an error where a plugin or a device is not found.  Where the fabric
carries IP as well, as Slingshot does, its counters look the same in both, and the libraries' own
word is all that tells them apart.
"""

from __future__ import annotations

from flatline.facts import Facts
from flatline.judging.beside import beside
from flatline.judging.claims import claim
from flatline.judging.losses import CARRIED, fabric, on_sockets
from flatline.judging.uniform import uniform
from flatline.model import Action, Finding
from flatline.signals import LOSS

LOST = 0.15
"""Of the baseline's speed: so much that neither other nodes nor another time make of it."""
SURE = 0.75
"""A judgement: settings that no log prints may differ as well."""
NAMES = {"AWS": "AWS Libfabric"}
"""As the plugin of libfabric calls itself, on other networks than Amazon's too."""
WORSE = (("gpu_sm_clock_hertz", -1), ("host_procs_running", 1), *((name, 1) for name in LOSS))
"""What would slow a run by itself: none of it may have moved, where both were measured."""


def fell_back(facts: Facts, code: str) -> Finding | None:
    """None where the settings differ, or are not known to be alike, or the speed hardly does."""
    known = beside(facts)
    if known is None or not known.compared.alike or known.lost < LOST or not known.slower:
        return None
    said, other = on_sockets(facts), fabric(known.other.matches)
    if said is None or said.signature.id != CARRIED or other is None or len(facts.hosts) < 2:
        return None
    if any(known.rose(name, way) for name, way in WORSE):
        return None
    name = NAMES.get(other.groups["transport"], other.groups["transport"])
    return uniform(
        known, code,
        fault_class="slow-interconnect",
        attribution="infrastructure",
        summary=f"The collectives use sockets, in the baseline they used a fabric ({name})",
        shows=(claim(f"The library says that it uses sockets, in the baseline {name}",
                     said.cite, other.cite),),
        implies="Every collective takes longer, on every host alike and without an error.",
        strength=SURE,
        action=Action("fix", "Have the library find its plugin and the adapters as in the"
                      " baseline: compare modules, LD_LIBRARY_PATH and the container of both.",
                      "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET"),
        cannot=("Whether all of the time is lost in collectives: a profiler trace of a step of"
                " each would tell.",),
    )  # fmt: skip
