"""Whom the others wait for, by the dumps of all ranks."""

from __future__ import annotations

import random
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from flatline.judging.recorder import Recorded, analyse
from flatline.model import DumpCite
from flatline.model.dumps import Dump
from flatline.parsers.flight_recorder import parse_dump, recognise_dump, resolve_dump
from recorded import counters, entry, left, raw, rests, waits, written

DATA = Path(__file__).parents[3] / "shared"
INJECTED = {
    "gpu_error_1st": ((12, 14), "device"),
    "gpu_error_2nd": ((9, 14), "device"),
    "lock_gil_1st": ((9, 14), "host"),
    "lock_gil_2nd": ((10, 15), "host"),
}


def named(found: Recorded | None) -> tuple[int | None, ...]:
    assert found is not None
    return tuple(place.rank for place in found.culprits)


def grid(rank: int, **groups: tuple[tuple[int, ...], int, int]) -> Dump:
    """A rank in several groups: members, last enqueued, last completed; what is between waits."""
    config, status, entries = {}, {}, []
    for number, (name, (members, enqueued, completed)) in enumerate(sorted(groups.items())):
        config[name] = (name, members)
        status[str(number)] = counters(enqueued, completed)
        entries += [
            entry(seq, record_id=1000 * number + seq, pg_id=number, process_group=(name, name))
            for seq in range(completed + 1, enqueued + 1)
        ]
    return written(rank, raw(*entries, status=status, config=config))


def test_a_rank_that_never_entered_was_stopped_in_its_program() -> None:
    """Three wait in collective 52; the fourth left 51 and has nothing pending."""
    found = analyse([waits(0, 52), waits(1, 52), rests(2, 51), waits(3, 52)])

    assert named(found) == (2,)
    assert found is not None
    assert (found.kind, found.waiting, found.complete) == ("host", (0, 1, 3), True)
    assert found.group == "0 (default_pg)"
    assert found.since is not None


def test_the_order_of_files_changes_nothing() -> None:
    """And the rank that is named follows its number."""
    dumps = [waits(0, 52), waits(1, 52), rests(2, 51), waits(3, 52)]

    assert len({repr(analyse(list(order))) for order in permutations(dumps)}) == 1
    for stopped in range(4):
        there = [rests(r, 51) if r == stopped else waits(r, 52) for r in range(4)]
        assert named(analyse(there)) == (stopped,)


def test_one_rank_in_another_operation_is_out_of_step() -> None:
    """Rank 2 broadcasts where the others reduce, under the same number."""
    found = analyse([waits(r, 52, "nccl:broadcast" if r == 2 else "nccl:all_reduce")
                     for r in range(4)])  # fmt: skip

    assert named(found) == (2,)
    assert found is not None
    assert found.kind == "mismatch"
    assert "broadcast" in found.text
    assert {cite.value for cite in found.cites} == {"nccl:broadcast", "nccl:all_reduce"}


@pytest.mark.parametrize("said", [{"input_sizes": [[10, 99]]}, {"input_dtypes": ["Half"]}])
def test_sizes_and_types_that_cannot_agree_are_out_of_step(said: dict[str, Any]) -> None:
    """An all-reduce needs as many elements of one type everywhere; the shape does not matter."""
    same = [waits(r, 52, input_sizes=[[10, 100]]) for r in (0, 1)]
    odd = waits(3, 52, **said)

    assert named(analyse([*same, waits(2, 52), odd])) == (3,)
    assert named(analyse([*same, waits(2, 52), waits(3, 52)])) == ()


def test_lists_of_uneven_sizes_are_no_mismatch() -> None:
    """Ranks may send different amounts to all of the others."""
    dumps = [waits(r, 52, "nccl:all_to_all", input_sizes=[[r + 1]]) for r in range(4)]
    found = analyse(dumps)

    assert found is not None
    assert (found.culprits, found.kind) == ((), None)


@pytest.mark.parametrize("odd", [(2, 3), (3,)])
def test_no_side_is_blamed_without_a_clear_majority(odd: tuple[int, ...]) -> None:
    """Two against two, or two against one with one file missing: both are told, none named."""
    present = range(4) if len(odd) == 2 else (0, 1, 3)
    found = analyse([waits(r, 52, "nccl:broadcast" if r in odd else "nccl:all_reduce")
                     for r in present])  # fmt: skip

    assert named(found) == ()
    assert found is not None
    assert found.kind == "mismatch"
    assert "all_reduce" in found.text
    assert "broadcast" in found.text


def test_a_rank_without_a_file_is_not_blamed() -> None:
    """Its absence is told, and the ranks that wait alike are not set against each other."""
    found = analyse([waits(0, 52), waits(1, 52), waits(3, 52)])

    assert found is not None
    assert (found.culprits, found.missing_ranks, found.complete) == ((), (2,), False)
    assert "rank 2 left no dump" in found.text


def test_a_missing_file_hides_no_rank_that_is_waited_for() -> None:
    """Rank 3 did not enter what 0 and 1 wait in, whatever rank 2 did."""
    found = analyse([waits(0, 52), waits(1, 52), rests(3, 51)])

    assert named(found) == (3,)
    assert found is not None
    assert found.missing_ranks == (2,)


def test_ranks_with_nothing_pending_are_healthy() -> None:
    """Also where a counter of Gloo trails behind the entries."""
    trailing = raw(entry(51, "gloo:all_reduce", retired=True), status={"0": counters(51, 50)})
    found = analyse([rests(0, 51), rests(1, 51), rests(2, 51), written(3, trailing)])

    assert found is not None
    assert (found.culprits, found.kind, found.waiting) == ((), None, ())


def test_ranks_that_all_wait_alike_are_not_blamed() -> None:
    """All entered and none leaves: the dumps cannot tell the device from the network."""
    found = analyse([waits(r, 52) for r in range(4)])

    assert found is not None
    assert (found.culprits, found.kind, found.waiting) == ((), None, (0, 1, 2, 3))


def test_recorders_that_begin_at_different_entries_are_aligned_by_number() -> None:
    """Rings forget at their own pace; record ids mean nothing on another rank."""
    long = raw(*(left(seq) for seq in range(1, 52)), entry(52), status={"0": counters(52, 51)})
    short = raw(entry(52, record_id=7), status={"0": counters(52, 51)})
    dumps = [written(0, long), written(1, short), rests(2, 51), waits(3, 52)]

    assert named(analyse(dumps)) == (2,)


def test_one_that_enters_alone_does_not_accuse_the_rest() -> None:
    """Rank 0 calls a barrier the others never call: more rest than wait."""
    found = analyse([waits(0, 52), *(rests(r, 51) for r in (1, 2, 3))])

    assert found is not None
    assert (found.culprits, found.kind) == ((), "missing")


def test_a_device_that_stands_still_is_behind_in_all_its_groups() -> None:
    """Rank 3 entered what its peers entered and completed less, in both groups."""

    def of(rank: int, done: int) -> Dump:
        return grid(rank, **{"0": ((0, 1, 2, 3), 40, done), "5": ((2, 3), 9, done - 31)})

    dumps = [grid(r, **{"0": ((0, 1, 2, 3), 40, 38), "4": ((0, 1), 9, 9)}) for r in (0, 1)]
    found = analyse([*dumps, of(2, 38), of(3, 36)])

    assert named(found) == (3,)
    assert found is not None
    assert found.kind == "device"
    assert {cite.value for cite in found.cites} == {36, 38}


def test_a_rank_that_waits_elsewhere_is_a_victim() -> None:
    """Rank 1 did not enter what rank 0 waits in, since it waits for rank 3, which rests."""
    dumps = [
        grid(0, **{"4": ((0, 1), 6, 5), "6": ((0, 2), 2, 2)}),
        grid(1, **{"4": ((0, 1), 5, 5), "5": ((1, 3), 8, 7)}),
        grid(2, **{"6": ((0, 2), 3, 2)}),
        grid(3, **{"5": ((1, 3), 7, 7)}),
    ]

    assert named(analyse(dumps)) == (3,)


def test_groups_entered_in_different_order_name_nobody() -> None:
    """Each waits for the other in another group: a mismatch between two equals."""
    dumps = [
        grid(0, **{"1": ((0, 1), 6, 5), "2": ((0, 1), 4, 4)}),
        grid(1, **{"1": ((0, 1), 5, 5), "2": ((0, 1), 5, 4)}),
    ]
    found = analyse(dumps)

    assert found is not None
    assert (found.culprits, found.kind) == ((), "mismatch")
    assert "different order" in found.text


def test_dumps_of_different_moments_are_not_compared() -> None:
    """Rank 0 left collective 60, which nobody can before rank 2 has entered it."""
    found = analyse([waits(0, 61), waits(1, 61), rests(2, 51), waits(3, 61)])

    assert found is not None
    assert (found.culprits, found.kind) == ((), None)
    assert "different moments" in found.text


def test_a_broadcast_may_be_left_before_others_enter_it() -> None:
    """Its root only sends: rank 0 ran ahead of rank 3, which is still the one waited for."""
    ahead = raw(*(left(seq, "nccl:broadcast") for seq in range(45, 53)), entry(53),
                status={"0": counters(53, 52)})  # fmt: skip

    assert named(analyse([written(0, ahead), waits(1, 53), waits(2, 53), rests(3, 50)])) == ()
    follows = raw(*(left(seq, "nccl:broadcast") for seq in range(45, 53)), entry(53),
                  status={"0": counters(53, 52)})  # fmt: skip
    dumps = [written(rank, follows) for rank in (0, 1, 2)]
    assert named(analyse([*dumps, rests(3, 50)])) == (3,)


def test_counters_of_a_pipeline_are_not_compared() -> None:
    """They count what is sent, and stages send different amounts."""
    stage = {"0": ((0, 1), 3, 3)}
    dumps = [
        grid(0, **stage, **{"7": ((0, 1), 3, 3)}),
        grid(1, **stage, **{"7": ((0, 1), 3, 3)}),
    ]
    pipe = [
        written(rank, raw(
            entry(9, f"nccl:{op}", is_p2p=True, p2p_seq_id=seq, pg_id=1,
                  process_group=("43", "PIPELINE_MODEL_PARALLEL_GROUP")),
            status={"1": counters(seq, seq - 1)},
            config={"43": ("PIPELINE_MODEL_PARALLEL_GROUP", (0, 1))},
        ))
        for rank, op, seq in ((0, "send 0->1", 120), (1, "recv 1<-0", 90))
    ]  # fmt: skip

    assert named(analyse(dumps)) == ()
    assert named(analyse(pipe)) == ()


def test_the_rank_all_receives_wait_for_is_named() -> None:
    """Peers count within their group: 0 of group 43 is rank 4, the only one that rests."""
    config = {"43": ("PIPELINE", (4, 0, 1, 2, 3))}
    status = {"1": counters(5, 5)}

    def receives(rank: int, place: int) -> Dump:
        waiting = entry(9, f"nccl:recv {place}<-0", is_p2p=True, p2p_seq_id=5, pg_id=1,
                        process_group=("43", "PIPELINE"))  # fmt: skip
        return written(rank, raw(waiting, status=status, config=config))

    resting = written(4, raw(status=status, config=config))
    found = analyse([*(receives(r, r + 1) for r in range(4)), resting])

    assert named(found) == (4,)
    assert named(analyse([*(receives(r, r + 1) for r in range(3)), resting])) == ()


def test_a_dump_written_twice_counts_once() -> None:
    """The pickle and the JSON of a rank are one witness; the later state is the one kept."""
    dumps = [waits(0, 52), waits(0, 51), waits(1, 52), rests(2, 51), waits(3, 52)]

    assert analyse([*dumps, *dumps]) == analyse(dumps[:1] + dumps[2:])


def test_nothing_to_compare_names_nobody() -> None:
    """No dump, none with a rank, one alone, and groups of one rank."""
    alone = {"3": ((0,), 5, 4)}
    nameless = parse_dump(b'{"version": "2.10", "entries": [], "pg_status": {}}', "dump")
    single = analyse([waits(0, 52)])

    assert analyse([]) is None
    assert analyse([nameless]) is None
    assert named(single) == ()
    assert single is not None
    assert single.missing_ranks == (1, 2, 3)
    assert named(analyse([grid(0, **alone), grid(1, **{"0": ((0, 1), 2, 2)})])) == ()


def test_ranks_are_renamed_with_their_dumps() -> None:
    """A shuffled world of eight with two stopped ranks gives the same two, renamed."""
    order = list(range(8))
    random.Random(7).shuffle(order)
    world = {"0": ("default_pg", tuple(range(8)))}

    def at(rank: int, stopped: set[int]) -> Dump:
        pending = () if rank in stopped else (entry(9),)
        held = raw(*pending, status={"0": counters(8 + len(pending), 8)}, config=world)
        return written(rank, held)

    for stopped in ({1, 6}, {order[1], order[6]}):
        assert named(analyse([at(r, stopped) for r in order])) == tuple(sorted(stopped))


# --- dumps of real runs, where they lie beside the repository ---


def folder(path: Path) -> tuple[list[Dump], dict[str, bytes]]:
    if not path.is_dir():
        pytest.skip("the dumps are not here")
    read = {str(p): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file()}
    held = {name: data for name, data in read.items() if recognise_dump(name, data)}
    return [parse_dump(data, name) for name, data in held.items()], held


def holds(cites: tuple[DumpCite, ...], held: dict[str, bytes]) -> bool:
    return all(resolve_dump(held[cite.source], cite.pointer) == cite.value for cite in cites)


@pytest.mark.parametrize("case", INJECTED)
def test_the_injected_ranks_of_sixteen_are_named(case: str) -> None:
    """Four faults that NVIDIA injected; the rules were chosen with these at hand."""
    dumps, held = folder(DATA / "realdata/nvrx-flight-recorder/fr_traces" / case)
    found = analyse(dumps)

    assert found is not None
    assert (named(found), found.kind) == INJECTED[case]
    assert found.complete
    assert found.cites
    assert holds(found.cites, held)


@pytest.mark.parametrize(
    ("case", "ranks", "kind"),
    [("fr", (), None), ("fr_hang_sleep", (2,), "host"), ("fr_hang_mismatch", (2,), "mismatch")],
)
def test_gloo_runs_of_four_ranks(case: str, ranks: tuple[int, ...], kind: str | None) -> None:
    """A healthy run, a rank that slept, a rank that called something else."""
    dumps, held = folder(DATA / "samples/torch" / case)
    found = analyse(dumps, world_size=4)

    assert found is not None
    assert (named(found), found.kind, found.complete) == (ranks, kind, True)
    assert holds(found.cites, held)
