"""Which host has which ranks, by what launchers and programs print."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pytest

from flatline.collect.catalogue import confirming
from flatline.model import LogCite, Match
from flatline.printed_ranks import as_printed, card_by_spans, completed
from flatline.signatures import load

HOSTS = ("n1", "n2")


def told(
    lines: Iterable[str],
    world: int | None = 8,
    hosts: Sequence[str] = HOSTS,
    sources: Sequence[str] = (),
) -> dict[int | None, str | None]:
    """The host of every rank (or task) by lines of a log, or each of one of its own."""
    matches = []
    for number, line in enumerate(lines):
        source = sources[number] if sources else "job.out"
        for signature in load():
            found = None
            if signature.origin == "placement":
                found = confirming(signature.pattern).search(line)
            if found is not None:
                groups = {key: said for key, said in found.groupdict().items() if said is not None}
                matches.append(Match(signature, LogCite(source, number + 1, line), groups))
    named = {f"{host}.log": host for host in hosts}
    places = as_printed(matches, hosts, world, lambda match: named.get(match.cite.source))
    return {p.task if p.rank is None else p.rank: p.host for p in places}


MAPPING = {"n1": [0, 1, 2, 3], "n2": [4, 5, 6, 7]}
WHOLE = dict.fromkeys(range(4), "n1") | dict.fromkeys(range(4, 8), "n2")
EACH = [(rank, "n1" if rank < 4 else "n2") for rank in range(8)]


@pytest.mark.parametrize(
    "lines",
    [
        ["n1: launching node_rank 0 ranks 0-3", "n2: launching node_rank 1 ranks 4-7"],
        ["INFO node 0 host=n1.site.org ranks=[0, 1, 2, 3]", "INFO node 1 host=n2 ranks=[4,5,6,7]"],
        ["layout: ranks 0-3 on n1 (gpu 0-3), ranks 4-7 on n2 (gpu 0-3)"],
        ["INFO ranks 0..3 @ n1, ranks 4..7 @ n2"],
        ["hosts: n1=ranks 0-3 n2=ranks 4-7; LM 650M"],
        [f"global_rank_mapping=defaultdict({list}, {MAPPING})"],
        [f"[rank {rank}] hostname: {host}, MASTER_ADDR: n1" for rank, host in EACH],
        [f"Hello from rank {rank}/8 on {host} (local rank {rank % 4})" for rank, host in EACH],
        [f"SLURM_PROCID={n} SLURM_LOCALID={n % 4} SLURMD_NODENAME={host}" for n, host in EACH],
        ["+ srun -n 8 --ntasks-per-node=4 --distribution=block python train.py"],
        [f"[rank {rank}] {host} jax 0.5, 4 devices" for rank, host in EACH],
        [f"[rank {rank}]: {host}.site.org is up" for rank, host in EACH],
    ],
    ids=["ranges", "lists", "in one line", "without cards", "behind hosts", "DeepSpeed", "each",
         "said aloud", "Slurm's numbers", "blocks", "behind a label", "with its domain"],
)  # fmt: skip
def test_lines_that_share_the_ranks_out(lines: Sequence[str]) -> None:
    """As many to each host, and no rank twice."""
    assert told(lines) == WHOLE


@pytest.mark.parametrize(
    ("line", "known"),
    [("[rank {}] host={} local_rank=0 device=cuda:0", True),
     ("[rank {}] hostname: {}", True),
     ("Hello from rank {}/8 on {}", False)],
)  # fmt: skip
def test_without_a_record_a_line_must_say_that_it_names_a_host(line: str, known: bool) -> None:
    """`on something` may be anything then."""
    lines = [line.format(rank, host) for rank, host in EACH]
    assert told(lines, hosts=()) == (WHOLE if known else {})


@pytest.mark.parametrize(
    ("line", "known"),
    [("10:00:03 engine INFO host {} ranks {} of 8, day_0", True),
     ("hostname={}, ranks=[{}]", True),
     ("shard {} ranks {} of 8", False),
     ("host {}: waiting for ranks {}", False)],
)  # fmt: skip
def test_of_ranks_shared_out_as_well(line: str, known: bool) -> None:
    lines = [line.format(host, ranks) for host, ranks in (("n1", "0-3"), ("n2", "4-7"))]
    assert told(lines, hosts=()) == (WHOLE if known else {})


def test_an_agents_ranks_are_of_the_host_its_log_is_named_after() -> None:
    """torchrun's agent says which it has, not where."""
    lines = ["  global_ranks=[4, 5, 6, 7]", "  global_ranks=[0, 1, 2, 3]"]

    assert told(lines, sources=["n1.log", "n2.log"])[5] == "n1"
    assert told(lines) == {}


def test_processes_are_tasks_and_ranks_where_there_is_no_other_number() -> None:
    """Of JAX; a launcher's process may start many ranks."""
    lines = [f"jax process_index={n} process_count=2 host={host}" for n, host in enumerate(HOSTS)]

    assert told(lines, world=2) == {0: "n1", 1: "n2"}
    assert told(lines, world=8) == {0: "n1", 1: "n2"}


@pytest.mark.parametrize(
    "lines",
    [
        ["n1: ranks 0-3 ready", "n1: ranks 4-7 ready"],
        ["n1: ranks 0-3 ready", "n2: ranks 2-5 ready"],
        ["n1: ranks 0-3 ready", "n2: ranks 4-5 ready"],
        ["n1: data-parallel ranks [0, 4]", "n2: data-parallel ranks [2, 6]"],
        ["n1: waiting for ranks 4-7", "n2: waiting for ranks 0-3"],
        ["n1: ranks 0-3 ready", "n2: ranks 4-7 ready", "n2: ranks 0-3 ready"],
        [f"[rank {rank}] connecting to host n1" for rank in range(8)],
        [f"[rank {rank}] master is on n1" for rank in range(8)],
        [f"[rank {rank}] hostname: n1" for rank in (1, 2)],
        [f"Hello from rank {rank} on {host}" for rank, host in (*EACH, (7, "n1"))],
        ["+ srun -n 2 --ntasks-per-node=1 --distribution=block torchrun --nproc_per_node=4 t.py"],
        ["+ srun --ntasks-per-node=4 --distribution=cyclic python train.py"],
    ],
    ids=["two on one host", "shared", "fewer", "groups", "of another", "another order", "connects",
         "master", "few", "moved", "launchers", "in turns"],
)  # fmt: skip
def test_lines_that_lay_no_rank_on_a_host(lines: Sequence[str]) -> None:
    """Process groups, whom a rank connects to, and what contradicts itself."""
    assert told(lines) == {}


def test_half_of_the_hosts_by_whole_blocks() -> None:
    """The log of the other was not kept; of a world that is known."""
    lines = ["n1: ranks 0-3 ready", "n2: ranks 4-7 ready"]
    hosts = ("n1", "n2", "n3", "n4")

    assert told(lines, 16, hosts) == WHOLE
    assert told(lines, None, hosts) == {}


BLOCK = {rank: {"n1" if rank < 4 else "n2"} for rank in (0, 1, 3, 4, 5, 6)}
TURNS = {rank: {HOSTS[rank % 2]} for rank in (0, 1, 2, 3, 4, 6, 7)}


@pytest.mark.parametrize(
    ("of", "found"),
    [
        (BLOCK, {2: "n1", 7: "n2"}),
        ({rank: {"n1" if rank > 3 else "n2"} for rank in (0, 1, 3, 4, 5, 6)}, {2: "n2", 7: "n1"}),
        (TURNS, {5: "n2"}),
        (BLOCK | {3: {"n2"}}, {}),
        (BLOCK | {3: {"n1", "n2"}}, {}),
        ({0: {"n1"}, 4: {"n2"}}, {1: "n1", 2: "n1", 3: "n1", 5: "n2", 6: "n2", 7: "n2"}),
        ({0: {"n2"}, 4: {"n1"}}, {1: "n2", 2: "n2", 3: "n2", 5: "n1", 6: "n1", 7: "n1"}),
        ({4: {"n2"}}, {5: "n2", 6: "n2", 7: "n2"}),
        ({4: {"n1"}}, {}),
        ({1: {"n2"}}, {}),
        ({0: {"n1"}}, {}),
        ({0: {"n1"}, 1: {"n1"}, 4: {"n1"}}, {}),
        ({rank: {"n1"} for rank in range(6)}, {}),
        ({rank: {"n1"} for rank in range(4)}, dict.fromkeys(range(4, 8), "n2")),
        ({rank: {"n2"} for rank in range(4)}, dict.fromkeys(range(4, 8), "n1")),
        ({rank: {"n1"} for rank in (1, 3, 5)}, {7: "n1"} | dict.fromkeys((0, 2, 4, 6), "n2")),
        ({0: {"n1"}, 1: {"n1"}}, {2: "n1", 3: "n1"}),
        ({rank: {"n3"} for rank in range(4)}, {}),
    ],
    ids=[
        "blocks",
        "hosts in any order",
        "in turns",
        "neither",
        "two hosts",
        "one of each",
        "one of each, in any order",
        "one beyond the first block",
        "blocks in another order, or turns",
        "turns, or blocks in another order",
        "the first",
        "one host of both",
        "one host",
        "all of one host",
        "all of the second",
        "most of one, in turns",
        "half of one",
        "one that is none of both",
    ],
)
def test_who_said_nothing_is_where_its_neighbours_are(
    of: Mapping[int, set[str]], found: Mapping[int, str]
) -> None:
    """Where all that is known lies in blocks, or in turns, and half of a host's is."""
    assert completed(of, HOSTS, 8) == found


@pytest.mark.parametrize(
    ("names", "hosts", "host"),
    [("n1 n2 n3 n4", 4, "n2"), ("n1 n2 n3 n3", 4, None), ("n1 n2 n3", 4, "n2"),
     ("n2 n1 n3", 4, None), ("n1 n2 n3", 3, None)],
    ids=["one each", "two of one", "a host is missing", "one is, and in another order",
         "as well in turns"],
)  # fmt: skip
def test_one_rank_of_each_host(names: str, hosts: int, host: str | None) -> None:
    """Of four on each: the sixth is in the second block, unless they may be in turns."""
    of = {4 * n: {name} for n, name in enumerate(names.split())}

    all_hosts = tuple(f"n{n + 1}" for n in range(hosts))
    assert completed(of, all_hosts, 4 * hosts).get(5) == host


@pytest.mark.parametrize(
    ("of", "found"),
    [
        ({0: "n1"}, dict.fromkeys((1, 2, 3), "n1") | dict.fromkeys(range(4, 8), "n2")),
        ({5: "n1"}, dict.fromkeys((4, 6, 7), "n1") | dict.fromkeys(range(4), "n2")),
        ({0: "n1", 1: "n2"}, {}),
        ({0: "n3"}, {}),
    ],
    ids=["the first", "of the second block", "no blocks", "neither"],
)
def test_one_rank_where_they_are_blocks(of: Mapping[int, str], found: Mapping[int, str]) -> None:
    """As torchrun numbers them: of two hosts the other has the rest."""
    told = {rank: {host} for rank, host in of.items()}
    assert completed(told, HOSTS, 8, blocks=True) == found


def test_no_neighbours_without_a_world() -> None:
    """How many a host has is not known then."""
    assert completed(BLOCK, HOSTS, None) == {}
    assert completed(BLOCK, (*HOSTS, "n3"), 8) == {}


def test_any_word_may_stand_behind_a_label() -> None:
    """Only a host of the record is one, and not one that stands further on."""
    assert told([f"[rank {rank}] step{rank} of n1" for rank, _ in EACH]) == {}
    assert told([f"[rank {rank}] k{host} ready" for rank, host in EACH]) == {}


FIRSTS = ["[rank 0] host n1 device 0..3", "[rank 4] host n2 device 0..3"]


def test_the_first_rank_of_each_host_tells_for_all() -> None:
    """Blocks of as many ranks as a host has, on the nodes in their order."""
    assert told(FIRSTS) == WHOLE


@pytest.mark.parametrize(
    ("lines", "world"),
    [
        (FIRSTS[:1], 8),
        (FIRSTS, 16),
        (FIRSTS, None),
        ([FIRSTS[0].replace("n1", "n2"), FIRSTS[1].replace("n2", "n1")], 8),
        ([*FIRSTS, "[rank 6] host n1 device 2"], 8),
        ([FIRSTS[0], "[rank 4] connects to host n2"], 8),
        (["[rank 0] host n1 device 0", "[rank 1] host n2 device 0"], 8),
    ],
    ids=["one host", "more ranks", "no world", "another order", "another rank", "connects",
         "in turns"],
)  # fmt: skip
def test_ranks_of_hosts_that_lay_no_block(lines: Sequence[str], world: int | None) -> None:
    assert told(lines, world) == {}


@pytest.mark.parametrize(
    ("sizes", "known"),
    [((8, 8), WHOLE), ((16, 16), {}), ((8, 16), {}), ((2, 2), {})],
    ids=["of all", "of more hosts", "at odds", "of a group"],
)
def test_the_first_ranks_lines_may_say_how_many_there_are(
    sizes: tuple[int, int], known: Mapping[int, str]
) -> None:
    """All of them say the same, and it fills the hosts."""
    lines = [f"{line}, world_size={size}" for line, size in zip(FIRSTS, sizes, strict=True)]

    assert told(lines, None) == known


@pytest.mark.parametrize(
    "line",
    [
        "waiting for ranks 0-3 on n1, ranks 4-7 on n2",
        "ranks 0-3 on n1, ranks 0-3 on n2",
        "pp ranks 0-3 on n1, pp ranks 4-7 on n2",
        "ranks 0-3 on n1, ranks 4-5 on n2",
        "ranks 0-3 on disk1, ranks 4-7 on disk2",
        "tp: ranks 0-3 dp: ranks 4-7",
        "sending to n1=ranks 0-3 n2=ranks 4-7",
    ],
    ids=["waited for", "twice", "of a group", "not all", "no hosts", "groups", "sent to"],
)
def test_spans_in_one_line_that_share_nothing_out(line: str) -> None:
    assert not told([line])


def test_the_card_of_a_span() -> None:
    """By its place in the span, where it has as many cards as ranks."""
    assert card_by_spans("ranks 0-3 on n1 (gpu 4-7), ranks 4-7 on n2 (gpu 4-7)", 6) == ("n2", "6")
    assert card_by_spans("ranks 0-3 on n1 (gpu 0-1), ranks 4-7 on n2 (gpu 0-1)", 6) is None
    assert card_by_spans("ranks 0-3 on n1, ranks 4-7 on n2", 6) is None
