"""
The ranks that the watchdog found in another collective than all others, under the same number.

Each process group of NCCL's numbers its collectives from 1 on, on every rank alike: where one
number is an all-reduce to all but one, which is in an all-gather, or in an all-reduce of another
size, that one left a call out, or made one more.  All that is read must be of one group, by its
name: ranks that wait in two groups may have come to the same number in both.  Older watchdogs name
no group and number each rank within it: that this is the rank's own number, on every rank, is so
in none but the world's, or by chance in that of the first ranks.  Then not all ranks need to have
told, if the number is high: two groups seldom come to the same one far from where they began.
"""

from __future__ import annotations

import re
from collections import Counter

from flatline.facts import Facts
from flatline.judging.claims import number
from flatline.model import Match
from flatline.rank_hosts import stated_world

LEAST = 4
"""Ranks that told: of fewer, who is the odd one out is open."""
FEW = 1 / 8
"""Of all ranks, as many as may have left a call out together: of one stage, or of one pair."""
FAR = 1000
"""Collectives, behind which it is no chance that ranks of no named group are at the same one."""
PAIRED = ("SEND", "RECV", "RECVANYSOURCE", "COALESCED", "UNKNOWN")
"""Operations of which the ranks of one group do not all do the same, and those that hide which."""
ALIKE = ("ALLREDUCE", "BROADCAST", "REDUCE", "_ALLGATHER_BASE", "_REDUCE_SCATTER_BASE")
"""Operations that take as many elements from every rank of a group; of others, such as an
all-to-all or a gather of uneven parts, each rank has its own."""
_RANK = re.compile(r"^\W{0,3}rank ?(\d{1,6})\]", re.IGNORECASE)
"""As torchrun and c10d's logger label a line."""
_GROUP = re.compile(r"\[(PG .{1,120}?) Rank \d")
_SIZE = re.compile(r"\bNumelIn=(\d{1,18}),")


def at_odds(facts: Facts, victims: tuple[Match, ...]) -> tuple[tuple[Match, ...], bool] | None:
    """Its line, or those of a few that are in one other together, and whether all ranks of a named
    group told; None where it is not plain."""
    told = {number(m.cite.place): m for m in victims if _entered(m) and m.groups.get("op")}
    said = (_GROUP.search(m.cite.text) for m in facts.matches if m.attempt == facts.last.n)
    groups = {found[1] for found in said if found is not None}
    world = max(stated_world(facts.matches) or 0, (facts.job.gpus if facts.job else None) or 0)
    if not world and (groups or len({m.cite.source for m in told.values()}) == len(told)):
        world = len(facts.ranks)  # of a log for each rank that of a silent one would be there
    whole = world >= LEAST and told.keys() == {*range(world)}
    one = len(groups) == 1 or (
        not groups and all(_of_the_world(rank, m) for rank, m in told.items())
    )
    if not whole and (not one or len(told) < LEAST or None in told):
        return None
    numbers = {_entered(m) or "" for m in told.values()}
    within = [own for m in told.values() if (own := m.groups.get("rank")) is not None]
    if not (whole or groups) and min(map(int, numbers)) < FAR:
        return None
    if len(numbers) != 1 or not one or len({*within}) < len(within):
        return None  # two of one number are of two groups that bear one name
    entered = {m: (m.groups["op"], "") for m in told.values()}
    if len({*entered.values()}) == 1 and all(map(size_of, told.values())):
        entered = {m: (m.groups["op"], size_of(m)) for m in told.values()}
    operations = Counter(entered.values())
    if len(operations) != 2 or any(operation in PAIRED for operation, _ in operations):
        return None
    _, (rare, times) = operations.most_common()
    all_told = whole or (not world and told.keys() == {*range(len(told))})
    if times > 1 and (not all_told or times > FEW * len(told)):
        return None
    odd = tuple(m for m in told.values() if entered[m] == rare)
    return odd, whole and bool(groups) and times == 1


def _entered(match: Match) -> str | None:
    """The number of the collective that a rank was in: what timed out or, where it only learnt of
    a time-out, what it had enqueued last and not completed."""
    last = match.groups.get("last_enqueued")
    if last is None:
        return match.groups.get("seq")
    return last if last != match.groups.get("last_completed") else None


def size_of(match: Match) -> str:
    """Elements that a line says its rank gave, where all ranks give as many; else ""."""
    size = _SIZE.search(match.cite.text) if match.groups["op"] in ALIKE else None
    return size[1] if size else ""


def _of_the_world(rank: int | None, match: Match) -> bool:
    """Whether a rank counts within its group as it does in the world, by a label of its own."""
    own = _RANK.search(match.cite.text)
    return own is not None and int(own[1]) == rank == int(match.groups.get("rank") or -1)
