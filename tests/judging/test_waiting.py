"""Whom the victims of a stalled collective waited for, by who says nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from flatline.facts import LOG, Facts, FileRead
from flatline.judging.waiting import accused, lagging, silent, waiting
from flatline.model import Job, LogCite, Match, Place, RecordCite, Signature

TIMEOUT = Signature("x.timeout", "x", "root", "", "", "", ("x",), family="C2", tags=("timeout",))


def victim(rank: int | None, line: int = 1, attempt: int = 0, **groups: str) -> Match:
    cite = LogCite(f"rank{rank}.log", line, "timed out", Place(rank=rank))
    return Match(TIMEOUT, cite, groups, attempt=attempt)


def facts(matches: Iterable[Match], heard: Iterable[int] = (), text: str = "") -> Facts:
    files = [FileRead(f"rank{n}.log", LOG, 10, 100, Place(rank=n)) for n in heard]
    lines = text.split("\n")
    return Facts(
        targets=("run",),
        matches=tuple(matches),
        files=files,
        read_line=lambda source, line: lines[line - 1] if 0 < line <= len(lines) else "",
    )


def pointed(victims: Iterable[int], heard: Iterable[int]) -> tuple[int | None, ...]:
    known = facts([victim(rank) for rank in victims], heard)
    found = waiting(known, "timeout")
    assert found is not None
    places, cite = silent(known, found)
    assert (cite is None) == (not places)
    return tuple(place.rank for place in places)


def test_the_one_that_says_nothing_is_waited_for() -> None:
    """Seven of eight report the wait."""
    assert pointed([0, 1, 2, 3, 4, 6, 7], range(8)) == (5,)


def test_the_derivation_says_how_it_was_found() -> None:
    """`verify` computes the same ranks from the same lines."""
    known = facts([victim(0), victim(1), victim(3)], range(4))
    found = waiting(known, "timeout")
    assert found is not None
    _, cite = silent(known, found)

    assert cite is not None
    assert (cite.method, cite.value, cite.params) == (
        "ranks-not-among@1", "2", (("world_size", 4),)
    )  # fmt: skip
    assert len(cite.inputs) == 3


@pytest.mark.parametrize(
    ("victims", "heard", "why"),
    [
        (range(4), range(8), "half are silent: the launcher may have ended them"),
        (range(5), range(8), "three of eight are too many"),
        ([0], range(2), "one alone may be wrong itself"),
        (range(8), range(8), "nobody is silent"),
    ],
)
def test_silence_is_refused(victims: Iterable[int], heard: Iterable[int], why: str) -> None:
    """Where it proves nothing."""
    assert pointed(victims, heard) == (), why


def test_a_rank_never_heard_of_is_not_blamed() -> None:
    """Its log may not have been kept: the ranks heard of have a hole."""
    assert pointed([0, 1, 2], [0, 1, 2, 4]) == ()


def by_host(ranks: Mapping[str, Iterable[int]], world: int | None = None) -> tuple[Place, ...]:
    """Whom the others waited for where each log tells of these ranks."""
    told = [
        Match(TIMEOUT, LogCite(log, rank + 1, "timed out", Place(rank=rank)), {})
        for log, some in ranks.items()
        for rank in some
    ]
    if world is not None:
        begun = Signature("x.world", "x", "marker", "", "", "", ("x",))
        told.append(Match(begun, LogCite("n1.log", 9, ""), {"world_size": str(world)}))
    row = RecordCite("sacct.txt", "row 1", "FAILED", "JobID=1")
    job = Job("1", "train", "failed", "FAILED", row, nodes=("n1", "n2", "n3"))
    known = Facts(targets=("run",), matches=told, jobs=[job])
    found = waiting(known, "timeout")
    assert found is not None
    return silent(known, found)[0]


N1, N2 = range(6), range(6, 12)


def test_a_rank_between_two_of_one_hosts_log_is_of_that_host() -> None:
    """It printed nothing with its number, into a log that was kept."""
    waited_for = (Place("n2", rank=9),)

    assert by_host({"n1.log": N1, "n2.log": {*N2} - {9}}, 12) == waited_for
    assert by_host({"out/n1.log": N1, "out/a.n2.log": {*N2} - {9}}, 12) == waited_for


def test_a_block_of_as_many_ranks_as_every_other_log_has() -> None:
    """The last of its host; without a size of the world nobody has heard of it."""
    logs = {"n1.log": [*N1][:5], "n2.log": N2}

    assert by_host(logs, 12) == (Place("n1", rank=5),)
    assert by_host({"n1.log": N1, "n2.log": [*N2][:5]}, 12) == (Place("n2", rank=11),)
    assert by_host({"n1.log": N1, "n2.log": [*N2][:5]}) == ()


@pytest.mark.parametrize(
    ("logs", "world"),
    [
        ({"n1.log": N1, "n2.log": range(6, 11)}, 18),
        ({"n1.log": N1, "n2.log": range(6, 11)}, 13),
        ({f"rank{rank}.log": [rank] for rank in range(11)}, 12),
        ({f"local{n}.log": {n, 4 + n, 8 + n} - {9} for n in range(4)}, 13),
    ],
    ids=["a host's log was not kept", "odd", "a log a rank", "a log a local rank"],
)
def test_ranks_whose_log_may_not_have_been_kept(
    logs: Mapping[str, Iterable[int]], world: int
) -> None:
    assert by_host(logs, world) == ()


def test_lines_without_a_rank_point_at_nobody() -> None:
    """Victims that cannot be counted leave no remainder."""
    known = facts([victim(None, 1), victim(None, 2)], range(4))
    found = waiting(known, "timeout")
    assert found is not None

    assert silent(known, found) == ((), None)


def test_only_the_last_attempt_with_victims_counts() -> None:
    """One line a rank, the first it printed."""
    matches = [victim(0, 1), victim(1, 1), victim(2, 5, attempt=1), victim(2, 9, attempt=1)]
    found = waiting(facts(matches), "timeout")

    assert found is not None
    assert [(m.cite.place.rank, m.cite.line) for m in found.matches] == [(2, 5)]


def test_no_victims_no_wait() -> None:
    """Nor by another tag."""
    assert waiting(facts([]), "timeout") is None
    assert waiting(facts([victim(0)]), "lost-peer") is None


def lag(*enqueued: str) -> list[int | None]:
    matches = [victim(rank, last_enqueued=n) for rank, n in enumerate(enqueued)]
    known = facts(matches)
    found = waiting(known, "timeout")
    assert found is not None
    return [match.cite.place.rank for match in lagging(known, found)]


@pytest.mark.parametrize(
    ("enqueued", "behind"),
    [
        (("52", "52", "51", "52"), [2]),
        (("52", "52", "52"), []),
        (("52", "51", "51", "51"), []),
        (("52",), []),
        (("52", "x"), []),
        (("52", "-1"), []),
    ],
)
def test_those_behind_in_number_never_entered(
    enqueued: tuple[str, ...], behind: list[int]
) -> None:
    """A minority of those that say their number; a majority behind is one that ran ahead."""
    assert lag(*enqueued) == behind


def test_a_heartbeat_names_its_accused_on_the_line_or_below() -> None:
    """Until a line that is none of its list."""
    text = "tasks are dead:\n3\n/job:worker/task:5\nand so on\n9"
    listed = victim(0, 1)
    named = victim(0, 1, task="7")

    assert accused(facts([], text=text), listed) == (3, 5)
    assert accused(facts([], text=text), named) == (7,)


@pytest.mark.parametrize(
    "before",
    [
        "2026-09-10T21:57:27Z ",
        "2026-09-10T21:57:27.865175+02:00 stderr F ",
        "[pod/train-0/main] ",
        "5: ",
        "2026-09-10T21:57:27Z 5: ",
    ],
)
def test_the_accused_behind_what_each_line_begins_with(before: str) -> None:
    """A collector dates, and a launcher labels, every line of a message; a message that ends with
    a task names nobody."""
    listed = facts([], text=f"dead:\n{before}/job:jax_worker/replica:0/task:5\n{before}Lost\n")
    told = facts([], text=f"dead:\n{before}reported by /job:jax_worker/replica:0/task:5\n")

    assert accused(listed, victim(0, 1)) == (5,)
    assert accused(told, victim(0, 1)) == ()
