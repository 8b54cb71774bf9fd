"""Which rank runs on the one card that was not in the collective, by what the ranks printed."""

from __future__ import annotations

import pytest

from flatline.facts import Facts
from flatline.judging.waited_for import of_its_rank, runs_on
from flatline.model import Place, Progress
from flatline.tracks import Track

CARD = Place(host="n2", gpu="1")


def ranks(late: dict[int, int], world: int = 8, silent: tuple[int, ...] = ()) -> Facts:
    """Two hosts of four GPUs; all ranks print up to step 90 but those `late`."""
    tracks = []
    for rank in range(world):
        track = Track(f"rank{rank}.log", Place(rank=rank), None, "plain")
        for n in range(0 if rank in silent else late.get(rank, 90) // 10):
            track.add(Progress("train", step=10 * (n + 1), loss=2.0), n + 1, None, 0)
        tracks.append(track)
    facts = Facts(targets=("run",), tracks=tuple(tracks))
    facts.__dict__["hosts"] = ("n1", "n2")
    facts.__dict__["world_size"] = world
    return facts


@pytest.mark.parametrize(
    ("late", "card", "rank"),
    [
        ({5: 80}, CARD, 5),
        ({1: 80}, CARD, 1),  # the hosts may be in another order
        ({6: 80}, CARD, None),
        ({}, CARD, None),
        ({5: 80, 2: 80}, CARD, None),
        ({5: 80}, Place(host="n2"), None),
    ],
    ids=["its own", "as well", "another card's", "none", "two", "no card"],
)
def test_the_one_that_did_not_print_the_last_step(
    late: dict[int, int], card: Place, rank: int | None
) -> None:
    (place,), shows = of_its_rank(ranks(late), (card,))

    assert (place.rank, place.host, place.gpu) == (rank, card.host, card.gpu)
    assert bool(shows) == (rank is not None)


def test_where_some_ranks_print_no_step() -> None:
    """They may be late as well."""
    assert of_its_rank(ranks({5: 80}, silent=(2,)), (CARD,)) == ((CARD,), ())


@pytest.mark.parametrize(("hosts", "runs"), [(("n1", "n2"), True), (("n2",), False)])
def test_hosts_that_no_record_names(hosts: tuple[str, ...], runs: bool) -> None:
    """Of one host a rank has the GPU of its number; of several that the ranks' own places show,
    one of its host's."""
    facts = ranks({})
    for track in facts.tracks:
        rank = track.place.rank or 0
        track.place = Place(host=hosts[rank * len(hosts) // 8], rank=rank)
    facts.__dict__["hosts"] = ()

    assert runs_on(facts, Place(rank=5), CARD) is runs
    assert not runs_on(facts, Place(rank=5), Place(host="n1", gpu="1"))
