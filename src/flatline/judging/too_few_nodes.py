"""
A launch of more nodes than the job has.

torchrun's agents wait at the rendezvous until as many have come as `--nnodes` says at the least.
Where each node of the record has its agent there, and those are fewer, nobody else can come.  A
log that one agent wrote to shows no others: two on one node, or a second job of a heterogeneous
one, would be as many.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from flatline.facts import LOG, Facts
from flatline.judging.claims import claim
from flatline.model import Claim, LogCite

LINES, SHOWN = 4_000, 4
"""Of a log that shows no more than a start: of more, something had begun."""
_LEAST = re.compile(
    r"launcher/api\.py:\d{1,5}\] {1,8}min_nodes {1,12}: (\d{1,5})\s*$"
    r"|\btorchrun\b.{0,400} --?nnodes?[ =]['\"]?(\d{1,5})(?::\d{1,5})?['\"]?(?:\s|$)"
)
_WAITS = re.compile(
    r"\b(?P<pid>\d{1,9}) torch/distributed/elastic/agent/server/api\.py:\d{1,5}\]"
    r" \[\w{1,40}\] Rendezvous'ing worker group"
)
_MET = "Rendezvous complete for workers"


@dataclass(frozen=True, slots=True)
class TooFew:
    """How many nodes the launch waits for, how many there are, and what shows it."""

    wanted: int
    nodes: int
    shows: tuple[Claim, ...]
    first: LogCite
    all_heard: bool


def too_few_nodes(facts: Facts) -> TooFew | None:
    """None where anything was begun, two agents were heard and not all, or no numbers are told."""
    job = facts.job
    if facts.has_progress or job is None or not job.nodes or facts.disposition == "completed":
        return None
    least: dict[int, LogCite] = {}
    waits: dict[tuple[str, str], LogCite] = {}
    logs = facts.log_files(LOG)
    for read in logs if all(one.lines <= LINES for one in logs) else ():
        for line, text in enumerate(facts.lines(read.source, 1, LINES), 1):
            if _MET in text:
                return None
            if "nodes" not in text and "Rendezvous" not in text:
                continue
            cite = LogCite(read.source, line, text, read.place)
            if told := _LEAST.search(text):
                least.setdefault(int(told[1] or told[2]), cite)
            if told := _WAITS.search(text):
                waits.setdefault((read.source, told["pid"]), cite)
    nodes = len({*job.nodes})
    if len(least) != 1 or len(waits) not in (1, nodes):
        return None
    ((wanted, said),) = least.items()
    if wanted <= nodes:
        return None
    cites = list(waits.values())
    shows = (
        claim(f"The launch waits for {wanted} nodes", said),
        claim(f"The job has {nodes}", job.cite),
        claim(f"{_how_many(len(cites), nodes)} went to the rendezvous and waited there",
              *cites[:SHOWN]),
    )  # fmt: skip
    return TooFew(wanted, nodes, shows, cites[0], len(cites) == nodes)


def _how_many(heard: int, nodes: int) -> str:
    return f"All {nodes} agents" if heard == nodes > 1 else "An agent"
