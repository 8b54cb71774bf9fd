"""Ranks that were in another collective than the others, by the watchdog's own lines."""

from __future__ import annotations

import pytest

from flatline.judging.at_odds import at_odds
from flatline.model import LogCite, Match, Place, Signature

TIMEOUT = Signature("x.timeout", "x", "root", "", "", "", ("x",), family="C2", tags=("timeout",))


def told(rank: int, op: str, seq: int = 342817, group: str = "") -> Match:
    cite = LogCite("job.log", rank + 1, f"{group}Watchdog caught it", Place(rank=rank))
    return Match(TIMEOUT, cite, {"seq": str(seq), "op": op})


def odd(*matches: Match) -> list[int | None]:
    return [match.cite.place.rank for match in at_odds(matches)]


MOST = [told(rank, "ALLREDUCE") for rank in range(7)]


def test_the_one_in_another_operation_of_the_same_number() -> None:
    """It left a call out, or made one more."""
    assert odd(*MOST, told(7, "_ALLGATHER_BASE")) == [7]


@pytest.mark.parametrize(
    "other",
    [
        (told(7, "ALLREDUCE"),),
        (told(7, "_ALLGATHER_BASE", seq=342818),),  # behind or ahead: told by the number
        (told(7, "COALESCED"),),  # hides what it is
        (told(7, "SEND"),),
        (told(7, "BROADCAST"), told(8, "BROADCAST"), told(9, "BROADCAST")),  # who is odd is open
        (told(7, "_ALLGATHER_BASE", group="[PG ID 3 PG GUID 9 Rank 7] "),),
    ],
    ids=["alike", "another number", "coalesced", "pairs", "too many", "another group"],
)
def test_near_misses(other: tuple[Match, ...]) -> None:
    """Nobody is named."""
    assert odd(*MOST, *other) == []


def test_small_numbers_of_groups_that_are_not_named() -> None:
    """Each group counts from 1 on: two may have come as far."""
    early = [told(rank, "ALLREDUCE", seq=4) for rank in range(7)]

    assert odd(*early, told(7, "_ALLGATHER_BASE", seq=4)) == []


def test_small_numbers_of_one_group() -> None:
    """Its name stands in every line."""
    name = "[PG ID 0 PG GUID 0(default_pg) Rank 0] "
    early = [told(rank, "ALLREDUCE", 4, name) for rank in range(7)]

    assert odd(*early, told(7, "_ALLGATHER_BASE", 4, name)) == [7]
