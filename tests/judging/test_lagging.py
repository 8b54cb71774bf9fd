"""Ranks that had not enqueued the collective which their peers wait in."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.facts import Facts
from flatline.judging.waiting import lagging, waiting
from flatline.model import LogCite, Match, Place, Signature, Verdict

TIMEOUT = Signature("x.timeout", "x", "root", "", "", "", ("x",), family="C2", tags=("timeout",))
SIGNAL = Signature("x.signal", "x", "cascade", "", "", "", ("x",))
"""What tells how far a rank had come, and not that it waited."""
WORLD, PART = "[PG ID 0 PG GUID 0(default_pg) Rank {}]", "[PG ID 4 PG GUID 11 Rank {}]"
BY_NUMBER = "[PG 2 Rank {}]"
Said = tuple[int, str, int]
"""A rank, the group in which it speaks, and the last that it had enqueued there."""


def line(told: Said, n: int, *, kind: Signature = TIMEOUT, seq: str = "", tried: int = 0) -> Match:
    rank, group, enqueued = told
    text = f"{group.format(rank)} last enqueued NCCL work: {enqueued}"
    cite = LogCite(f"rank{rank}.log", n, text, Place(rank=rank))
    groups = {"last_enqueued": str(enqueued), **({"seq": seq} if seq else {})}
    return Match(kind, cite, groups, attempt=tried)


def behind(matches: Iterable[Match]) -> list[int | None]:
    facts = Facts(targets=("run",), matches=tuple(matches))
    found = waiting(facts, "timeout")
    assert found is not None
    return [match.cite.place.rank for match in lagging(facts, found)]


def stuck(*told: Said, seq: str = "52") -> list[int | None]:
    """Of all but the last it is said in which collective they wait."""
    *others, last = told
    return behind([*(line(one, n, seq=seq) for n, one in enumerate(others)), line(last, 99)])


@pytest.mark.parametrize(
    ("last", "told"),
    [(51, [3]), (50, [3]), (52, []), (53, []), (54, [])],
    ids=["one before it", "two before it", "it is in it", "one ahead", "as far ahead"],
)
def test_who_had_not_enqueued_what_the_others_are_stuck_in(
    last: int, told: list[int | None]
) -> None:
    """Ranks enqueue ahead of the collective that hangs, some more than others."""
    assert stuck((0, WORLD, 54), (1, WORLD, 54), (2, WORLD, 54), (3, WORLD, last)) == told


def test_the_first_of_several_that_hang_counts() -> None:
    """One rank's watchdog names a later one."""
    said = [line((0, WORLD, 54), 1, seq="52"), line((1, WORLD, 54), 1, seq="54"),
            line((2, WORLD, 54), 1, seq="52"), line((3, WORLD, 53), 1)]  # fmt: skip

    assert behind(said) == []
    assert behind([*said[:3], line((3, WORLD, 51), 1)]) == [3]


def test_lines_that_tell_of_no_wait_tell_how_far_a_rank_had_come() -> None:
    """Only three of the four waited."""
    told = [line((rank, WORLD, 42), 1, seq="42") for rank in range(3)]

    assert behind([*told, line((3, WORLD, 41), 1, kind=SIGNAL)]) == [3]
    assert behind([*told, line((3, WORLD, 42), 1, kind=SIGNAL)]) == []


def test_those_of_another_attempt_say_nothing() -> None:
    """The counters begin anew."""
    told = [line((rank, WORLD, 42), 9, seq="42", tried=1) for rank in range(3)]

    assert behind([line((3, WORLD, 7), 1), *told]) == []
    assert behind([line((3, WORLD, 7), 1, tried=1), *told]) == [3]


@pytest.mark.parametrize(
    ("group", "told"),
    [(PART, []), (BY_NUMBER, []), (WORLD, [3]), ("", [3])],
    ids=["by its name", "by its number", "the same", "none is named"],
)
def test_ranks_are_compared_within_one_group(group: str, told: list[int | None]) -> None:
    """Each counts its own collectives; a line without a group is of the only one there is."""
    assert stuck((0, WORLD, 52), (1, WORLD, 52), (2, WORLD, 52), (3, group, 7)) == told


def test_a_line_without_a_group_is_of_none_of_two() -> None:
    others = [line((rank, WORLD, 52), 1, seq="52") for rank in range(3)]
    pairs = [line((rank, PART, 7), 2, seq="7") for rank in range(3)]

    assert behind([*others, *pairs, line((3, "", 6), 1)]) == []
    assert behind([*others, *pairs, line((3, PART, 6), 1)]) == [3]


def test_what_a_rank_said_in_the_group_outweighs_a_line_without_one() -> None:
    others = [line((rank, WORLD, 52), 1, seq="52") for rank in range(4)]

    assert behind([*others, line((3, "", 7), 2)]) == []


ANNOUNCED = (
    "[rank{rank}]:[E714 04:11:52.110956967 ProcessGroupNCCL.cpp:1746] [PG ID 0 PG GUID"
    " 0(default_pg) Rank {rank}] Received a dump signal due to a collective timeout from {whom}"
    " and we will try our best to dump the debug info. Last enqueued NCCL work: {n}, last"
    " completed NCCL work: {n}.\n"
)
TIMED_OUT = (
    "[rank{rank}]:[E714 04:11:52.100000000 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught"
    " collective operation timeout: WorkNCCL(SeqNum=42, OpType=ALLREDUCE, NumelIn=25600,"
    " NumelOut=25600, Timeout(ms)=600000) ran for 600010 milliseconds before timing out.\n"
    "[rank{rank}]:[E714 04:11:52.100000001 ProcessGroupNCCL.cpp:1664] [PG ID 0 PG GUID"
    " 0(default_pg) Rank {rank}] Exception (either an error or timeout) detected by watchdog at"
    " work: 42, last enqueued NCCL work: {ahead}, last completed NCCL work: 41.\n"
)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (ANNOUNCED.format(rank=3, whom=" rank 0", n=41), ("3", "0", "41", "41")),
        (ANNOUNCED.format(rank=0, whom="this local rank", n=41), ("0", None, "41", "41")),
        (ANNOUNCED.format(rank=3, whom=" rank 0", n=-1), ("3", "0", "-1", "-1")),
        (ANNOUNCED.format(rank=3, whom="rank 0", n=41).partition(" Last")[0],
         ("3", "0", None, None)),
    ],
    ids=["of another", "its own", "nothing was enqueued", "older ones"],
)  # fmt: skip
def test_an_announced_time_out_says_how_far_the_rank_had_come(
    tmp_path: Path, text: str, told: tuple[str | None, ...]
) -> None:
    """Where it is printed: not by older releases."""
    (tmp_path / "train.log").write_text(f"{text}\n")
    (found,) = collect(Request((str(tmp_path),))).matches

    assert found.signature.id == "nccl-dump-signal"
    names = ("rank", "peer", "last_enqueued", "last_completed")
    assert tuple(found.groups.get(name) for name in names) == told


def ranks(folder: Path, late: int, ahead: int = 42) -> Verdict:
    """Three of four ranks time out in collective 42; the last learns of it through the store."""
    for rank in range(4):
        steps = "".join(f"step {n}/900 loss {4 / n:.4f}\n" for n in range(1, 41))
        end = (
            TIMED_OUT.format(rank=rank, ahead=ahead)
            if rank < 3
            else ANNOUNCED.format(rank=3, whom=" rank 0", n=late)
        )
        (folder / f"rank{rank}.log").write_text(f"world_size=4 rank={rank}\n{steps}{end}")
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize("ahead", [42, 45])
def test_the_rank_that_only_learnt_of_the_time_out(tmp_path: Path, ahead: int) -> None:
    """Its own log says that it had enqueued one collective less."""
    verdict = ranks(tmp_path, 41, ahead)

    assert verdict.code == "C2"
    assert [place.rank for place in verdict.culprits] == [3]
    assert any("enqueued fewer" in one.text for one in verdict.shows + verdict.implies)


def test_one_that_was_in_it_as_well_is_not_named(tmp_path: Path) -> None:
    """It had enqueued that very collective, and fewer ahead of it."""
    verdict = ranks(tmp_path, 42, 45)

    assert (verdict.code, verdict.culprits) == ("C2", ())


@pytest.mark.parametrize("word", ["last", "Last"])
@pytest.mark.parametrize(("late", "told"), [(41, [3]), (42, [])], ids=["one less", "as many"])
def test_how_far_the_rank_had_come_on_a_line_of_its_own(
    tmp_path: Path, word: str, late: int, told: list[int]
) -> None:
    """Behind the one by which it learns of the time-out."""
    ranks(tmp_path, 0)
    log = tmp_path / "rank3.log"
    tag = (
        "[rank3]:[E714 04:11:52.4 ProcessGroupNCCL.cpp:17] [PG ID 0 PG GUID 0(default_pg) Rank 3]"
    )
    log.write_text(
        log.read_text().partition("[rank3]")[0]
        + f"{tag} Observed flight recorder dump signal from another rank via TCPStore.\n"
        + f"{tag} {word} enqueued work: {late}, last completed work: 41\n"
    )
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code, [place.rank for place in verdict.culprits]) == ("C2", told)
