"""
Ranks that the watchdog found in another collective than all the others, under the same number.

Each process group of NCCL's numbers its collectives from 1 on, on every rank alike: where one
number is an all-reduce to most and an all-gather to one, that one left a call out, or made one
more.
"""

from __future__ import annotations

import re
from collections import Counter

from flatline.judging.claims import number
from flatline.judging.waiting import FEW_RATIO
from flatline.model import Match

LEAST = 3
"""Ranks that must have told theirs."""
OF_ONE_GROUP = 100
"""Groups that are not named may have come to one number, as long as it is small: a judgement."""
PAIRED = ("SEND", "RECV", "RECVANYSOURCE", "COALESCED", "UNKNOWN")
"""Operations of which the ranks of one group do not all do the same, and those that hide which."""
_GROUP = re.compile(r"\[PG (?:ID )?(\w{1,40})")


def at_odds(victims: tuple[Match, ...]) -> tuple[Match, ...]:
    """The lines of the few ranks that were in another operation; none where that is not plain."""
    told = [m for m in victims if m.groups.get("seq") and m.groups.get("op")
            and number(m.cite.place) is not None]  # fmt: skip
    numbers = {m.groups["seq"] for m in told}
    groups = {found[1] if (found := _GROUP.search(m.cite.text)) else None for m in told}
    operations = Counter(m.groups["op"] for m in told)
    if len(told) < LEAST or len(numbers) != 1 or len(groups) != 1 or len(operations) < 2:
        return ()
    if groups == {None} and int(numbers.pop()) < OF_ONE_GROUP:
        return ()
    if any(operation in PAIRED for operation in operations):
        return ()
    (usual, _), *_ = operations.most_common(1)
    odd = tuple(m for m in told if m.groups["op"] != usual)
    return odd if len(odd) == 1 or len(odd) <= FEW_RATIO * len(told) else ()
