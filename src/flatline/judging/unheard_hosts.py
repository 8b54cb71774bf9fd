"""Why a wait that singles nobody out may not be the whole answer: hosts of which nothing was read,
or a monitor's word alone."""

from __future__ import annotations

from math import gcd

from flatline.facts import Facts
from flatline.judging.claims import name_places, number
from flatline.judging.waiting import Waiting
from flatline.judging.watchdog_stuck import STUCK
from flatline.model import Place

OF_A_HOST = (4, 8, 16)
"""GPUs that hosts have: where one log alone tells of a wait, other ranks in a row may be any."""
BY_MONITOR = (
    "Whether it waited in a collective at all: its monitor says the same of a process in which"
    " another thread holds the GIL."
)


def left_open(facts: Facts, victims: Waiting) -> str | None:
    """The question, where there is one."""
    if all(match.signature.id == STUCK for match in victims.matches):
        alone = len({number(match.cite.place) for match in victims.matches}) == 1
        return BY_MONITOR if alone else None
    ranks = unheard(facts, victims)
    if not ranks:
        return None
    shown = name_places(tuple(Place(rank=rank) for rank in ranks))
    return (
        f"What became of {shown}: nothing that their host or their processes printed was read, so"
        " they may have failed, or their host, before the others waited."
    )


def unheard(facts: Facts, victims: Waiting) -> tuple[int, ...]:
    """
    The ranks of whole hosts that nothing is heard of, where each log is one host's: as many ranks
    as one of them reports, in a row, or as lie between the first ranks of all.
    """
    logs: dict[str, set[int]] = {}
    for match in victims.matches:
        if (rank := number(match.cite.place)) is not None:
            logs.setdefault(match.cite.source, set()).add(rank)
    spans = sorted((min(ranks), max(ranks)) for ranks in logs.values())
    each = max((high - low + 1 for low, high in spans), default=0)
    if each == 1 and len(spans) > 1:
        each = gcd(*(low for low, _ in spans))
    if len(spans) == 1 and each not in OF_A_HOST:
        return ()
    if each < 2 or any(low // each != high // each for low, high in spans):
        return ()
    heard = {rank // each for rank in (*facts.ranks, *(low for low, _ in spans))}
    last = max(max(heard), (facts.world_size or 0) // each - 1)
    missing = [block for block in range(last + 1) if block not in heard]
    return tuple(rank for block in missing for rank in range(block * each, (block + 1) * each))
