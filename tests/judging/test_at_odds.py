"""The rank that was in another collective than the others, by the watchdog's own lines."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from flatline.facts import Facts
from flatline.judging.at_odds import at_odds
from flatline.model import Attempt, LogCite, Match, Place, Signature

TIMEOUT = Signature("x.timeout", "x", "root", "", "", "", ("x",), family="C2", tags=("timeout",))
GROUP = "[PG ID 0 PG GUID 0(default_pg) Rank {}] "


def told(rank: int, op: str, seq: int = 342817, group: str = GROUP, size: str = "") -> Match:
    text = f"{group.format(rank)}Watchdog caught it{size and f', NumelIn={size},'}"
    return Match(TIMEOUT, LogCite("job.log", rank + 1, text, Place(rank=rank)),
                 {"seq": str(seq), "op": op, "rank": str(rank)})  # fmt: skip


def of_world(size: int | None) -> tuple[Match, ...]:
    """The line by which a program says how many ranks it has."""
    cite = LogCite("job.log", 1, f"world size {size}", Place())
    return () if size is None else (Match(TIMEOUT, cite, {"world_size": str(size)}),)


def odd(*matches: Match, world: int = 8) -> int | None:
    said = (*matches, *of_world(world))
    facts = SimpleNamespace(matches=said, job=None, ranks=(), last=Attempt(0, "failed"))
    found = at_odds(cast(Facts, facts), matches)
    return None if found is None else found[0][0].cite.place.rank


MOST = [told(rank, "ALLREDUCE") for rank in range(7)]


def test_the_one_in_another_operation_of_the_same_number() -> None:
    """It left a call out, or made one more."""
    assert odd(*MOST, told(7, "_ALLGATHER_BASE")) == 7


@pytest.mark.parametrize(
    ("last", "done", "op", "named"),
    [(342817, 342816, "BROADCAST", 7), (342817, 342817, "BROADCAST", None),
     (342819, 342816, "BROADCAST", None), (342817, 342816, "ALLREDUCE", None)],
    ids=["in another", "completed", "a later one", "in the same"],
)  # fmt: skip
def test_one_that_only_learnt_of_the_time_out(
    last: int, done: int, op: str, named: int | None
) -> None:
    """It says what it had enqueued last, and whether that was completed."""
    line = told(7, op)
    learnt = {"op": op, "rank": "7", "last_enqueued": str(last), "last_completed": str(done)}

    assert odd(*MOST, Match(TIMEOUT, line.cite, learnt)) == named


@pytest.mark.parametrize(
    "other",
    [
        (),
        (told(7, "ALLREDUCE"),),
        (told(7, "_ALLGATHER_BASE", seq=342818),),  # behind or ahead: told by the number
        (told(7, "COALESCED"),),  # hides what it is
        (told(7, "SEND"),),
        (told(7, "_ALLGATHER_BASE", group="[PG ID 3 PG GUID 9(dp) Rank {}] "),),
    ],
    ids=["silent", "alike", "another number", "coalesced", "pairs", "another group"],
)
def test_near_misses(other: tuple[Match, ...]) -> None:
    """Nobody is named."""
    assert odd(*MOST, *other) is None


def sized(op: str, *sizes: str, group: str = GROUP) -> list[Match]:
    return [told(rank, op, group=group, size=size) for rank, size in enumerate(sizes)]


SAME = sized("ALLREDUCE", *["8192"] * 7)


@pytest.mark.parametrize("op", ["ALLREDUCE", "BROADCAST", "_REDUCE_SCATTER_BASE"])
def test_the_one_in_a_collective_of_another_size(op: str) -> None:
    """Of these every rank gives as many elements."""
    assert odd(*sized(op, "8192", "8192", "16", *["8192"] * 5)) == 2


@pytest.mark.parametrize(
    "lines",
    [
        sized("ALLTOALL", "16", *["8192"] * 7),
        sized("ALLGATHER", "16", *["8192"] * 7),
        sized("ALLREDUCE", *["16"] * 4, *["8192"] * 4),
        sized("ALLREDUCE", "16", "64", *["8192"] * 6),
        sized("ALLREDUCE", "16", *["8192"] * 6, ""),
        [*SAME, told(7, "ALLREDUCE", 342818, size="16")],
        [*SAME, told(7, "ALLREDUCE", group="[PG ID 3 PG GUID 9(dp) Rank {}] ", size="16")],
    ],
    ids=["uneven", "gathered", "halves", "three sizes", "cut off", "another number",
         "another group"],
)  # fmt: skip
def test_sizes_that_single_out_nobody(lines: list[Match]) -> None:
    """They may differ, or are of two collectives."""
    assert odd(*lines) is None


def test_an_operation_counts_before_sizes() -> None:
    """Where operations differ, their sizes do as well."""
    assert odd(*SAME, told(7, "BROADCAST", size="16")) == 7


def test_two_groups_of_one_name() -> None:
    """Each counts its ranks anew: a split group is called the same on all of them."""
    lines = sized("ALLREDUCE", *["8192"] * 7, "16")
    anew = [Match(m.signature, m.cite, {**m.groups, "rank": str(n % 4)})
            for n, m in enumerate(lines)]  # fmt: skip

    assert odd(*anew) is None


def test_groups_without_a_name() -> None:
    """Ranks that wait in two groups may have come to the same number in both."""
    lines = [told(rank, "ALLREDUCE", group="") for rank in range(7)]

    assert odd(*lines, told(7, "_ALLGATHER_BASE", group="")) is None


@pytest.mark.parametrize(("ranks", "world", "named"), [(16, 16, (6, 7)), (15, 16, None),
                          (16, None, (6, 7)), (12, 12, None)])  # fmt: skip
def test_two_of_many_in_another_operation(
    ranks: int, world: int | None, named: tuple[int, ...] | None
) -> None:
    """Where all told, two of sixteen left a call out together; never surely."""
    label = "[rank{0}]:[E0414 x] [Rank {0}] "
    lines = tuple(told(r, "ALLREDUCE" if r in (6, 7) else "_REDUCE_SCATTER_BASE",
                       group=label.format(r)) for r in range(ranks))  # fmt: skip
    said = (*lines, *of_world(world))
    facts = SimpleNamespace(matches=said, job=None, ranks=(), last=Attempt(0, "failed"))
    found = at_odds(cast(Facts, facts), lines)

    assert (None if found is None else tuple(m.cite.place.rank for m in found[0])) == named
    assert found is None or not found[1]


def test_two_of_another_operation() -> None:
    """A group of their own may be waiting."""
    assert odd(*MOST[:6], told(6, "BROADCAST"), told(7, "BROADCAST")) is None


@pytest.mark.parametrize(("told_by", "world", "named"), [(8, 64, (7, False)), (8, 8, (7, True)),
                                                          (3, 64, None)])  # fmt: skip
def test_a_world_that_did_not_all_tell(
    told_by: int, world: int, named: tuple[int, bool] | None
) -> None:
    """The one is named, but not surely: the majority may be among those that say nothing."""
    lines = (*MOST[8 - told_by :], told(7, "_ALLGATHER_BASE"))
    said = (*lines, *of_world(world))
    facts = SimpleNamespace(matches=said, job=None, ranks=(), last=Attempt(0, "failed"))

    found = at_odds(cast(Facts, facts), lines)

    assert (None if found is None else (found[0][0].cite.place.rank, found[1])) == named


@pytest.mark.parametrize(("seq", "named"), [(342817, 7), (41, None)])
def test_a_group_without_a_name_that_did_not_all_tell(seq: int, named: int | None) -> None:
    """Two groups may have come to the same number, near to where they began."""
    label = "[rank{0}]:[E0414 x] [Rank {0}] "
    lines = [told(r, "ALLREDUCE", seq, group=label.format(r)) for r in range(7)]
    other = told(7, "_ALLGATHER_BASE", seq, group=label.format(7))

    assert odd(*lines, other, world=64) == named


@pytest.mark.parametrize(("label", "named"), [("[rank{}]:[E0414 x] [Rank {}] ", 7),
                                              ("[rank{}]:[E0414 x] [Rank 0] ", None)])  # fmt: skip
def test_a_group_without_a_name_that_numbers_as_the_world_does(
    label: str, named: int | None
) -> None:
    """No part of the ranks counts so on every one of them."""
    lines = []
    for rank in range(8):
        one = told(rank, "ALLREDUCE" if rank < 7 else "_ALLGATHER_BASE")
        text = label.format(rank, rank) + "Watchdog caught it"
        own = {**one.groups, "rank": str(rank) if named else "0"}
        lines.append(Match(TIMEOUT, LogCite("job.log", rank + 1, text, Place(rank=rank)), own))

    assert odd(*lines) == named


@pytest.mark.parametrize(("stated", "gpus", "own_logs", "named"),
                         [(None, None, False, None), (None, 8, False, 7), (8, 32, False, None),
                          (None, None, True, 7)])  # fmt: skip
def test_a_world_that_nobody_counts(
    stated: int | None, gpus: int | None, own_logs: bool, named: int | None
) -> None:
    """Those that spoke into one log need not be all; of a log for each rank they are, of which
    even a low number tells."""
    lines = []
    for rank in range(8):
        one = told(rank, "ALLREDUCE" if rank < 7 else "_ALLGATHER_BASE", 41, group="")
        source = f"rank_{rank}.log" if own_logs else "job.log"
        text = f"[rank{rank}]:[E0414 x] [Rank {rank}] Watchdog caught it"
        cite = LogCite(source, rank + 1, text, Place(rank=rank))
        lines.append(Match(TIMEOUT, cite, {**one.groups, "rank": str(rank)}))
    job = None if gpus is None else SimpleNamespace(gpus=gpus)
    said = (*lines, *of_world(stated))
    facts = SimpleNamespace(
        matches=said, job=job, ranks=tuple(range(8)), last=Attempt(0, "failed")
    )
    found = at_odds(cast(Facts, facts), tuple(lines))

    assert (None if found is None else found[0][0].cite.place.rank) == named
