"""
Which host a rank runs on, by what is no label of its lines.

A log may be named after its host, NCCL says where each rank of the communicator of all ranks is,
srun says where a task ended, and launchers and programs print who has which ranks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from flatline.laid_ranks import laid
from flatline.model import Job, LogCite, Match, Place, ProcessExit
from flatline.printed_ranks import as_printed, completed
from flatline.tracks import Track

COMMUNICATOR = "nccl-communicator"
TORCHRUN = "torchelastic"
"""Its agents number their ranks on, each as many as it starts (torch/distributed/elastic)."""
MOST_WORDS = 12
"""Of a file's name are looked at."""


def named_after(source: str, hosts: Sequence[str]) -> str | None:
    """The one of the run's hosts that a log is named after, or a folder that it is in."""
    folder, _, name = source.rpartition("/")
    edges = [(m.start(), m.end()) for m in re.finditer(r"[A-Za-z0-9]+", name)][:MOST_WORDS]
    parts = (name[a:b] for n, (a, _) in enumerate(edges) for _, b in edges[n:])
    short = {_first_label(host) for host in hosts}
    told = short.intersection(parts) or short.intersection(folder.split("/"))
    return told.pop() if len(told) == 1 else None


def _first_label(host: str) -> str:
    """Of a name; an address has none: its first number may be that of a rank."""
    first = host.partition(".")[0]
    return host if first.isdecimal() else first


def _named_after(tracks: Iterable[Track], hosts: Sequence[str]) -> Iterable[Place]:
    """Places of the processes whose log is named after one of the run's hosts, with that host."""
    for track in tracks:
        host = named_after(track.source, hosts) if track.place.host is None else None
        if host is not None:
            yield replace(track.place, host=host)


_PROCESS = re.compile(r":(\d{1,9}):\d{1,9} \[\d{1,3}\] NCCL INFO ")


def process_of(cite: LogCite) -> str | None:
    """The number of the process that NCCL says a line of `communicating` is of."""
    told = _PROCESS.search(cite.text)
    return told[1] if told else None


def communicating(
    matches: Iterable[Match], hosts: Sequence[str], heard: Iterable[int], world: int | None
) -> Iterable[tuple[Place, str, LogCite]]:
    """
    Where NCCL put each rank of the communicator of all ranks, with its card where it names it as
    the driver does, and that card's bus id.

    The largest communicator is that of all unless the world is larger, a rank beyond it was heard
    of, a line's own label says another rank, or all of its ranks are known and leave hosts of the
    run without any: groups of a part of the ranks count them anew, and may be all that a program
    makes.
    """
    told = [m for m in matches if m.signature.id == COMMUNICATOR and m.cite.place.host]
    size = max((int(m.groups["comm_size"]) for m in told), default=0)
    places = [
        (Place(host=match.cite.place.host, gpu=match.groups.get("nvml"),
               rank=int(match.groups["comm_rank"])), match.groups.get("bus", "0"), match.cite)
        for match in told if int(match.groups["comm_size"]) == size
    ]  # fmt: skip
    labelled = any(cite.place.rank not in (None, place.rank) for place, _, cite in places)
    whole = {place.rank for place, *_ in places} >= set(range(size))
    held = {place.host for place, *_ in places}
    fewer = len(held) < len({host.partition(".")[0].lower() for host in hosts})
    if labelled or max(*heard, (world or 0) - 1, 0) >= size or (whole and fewer):
        return ()
    return places


def _by_tasks(
    exits: Iterable[ProcessExit], hosts: Sequence[str], heard: set[int], world: int | None
) -> Iterable[Place]:
    """
    The hosts of ranks by what srun said of its tasks, where these are the ranks: as many tasks on
    every host, two or more, and as many in all as there are ranks.

    Of one host fewer than half may be missing: those it did not speak of.
    """
    of_host: dict[str, set[int]] = {host: set() for host in hosts}
    short = {host.partition(".")[0].lower(): host for host in hosts}
    for event in exits:
        host = short.get((event.place.host or "").partition(".")[0].lower())
        if event.reporter == "srun" and host is not None and event.place.task is not None:
            of_host[host].add(event.place.task)
    each = max(map(len, of_host.values()), default=0)
    count = each * len(of_host)
    told = {task for tasks in of_host.values() for task in tasks}
    missing = set(range(count)) - told
    fewer = [host for host, tasks in of_host.items() if len(tasks) < each]
    once = sum(map(len, of_host.values())) == len(told) == count - len(missing)
    ranks = world == count if world else len(heard) >= count - len(missing)
    many = each > 1 and len(fewer) <= 1 and 2 * len(missing) < each
    if not many or not once or not ranks or max(heard, default=0) >= count:
        return
    for host in fewer:
        of_host[host] |= missing
    for host, tasks in of_host.items():
        yield from (Place(host=host, rank=task) for task in sorted(tasks))


def _in_blocks(
    exits: Iterable[ProcessExit], hosts: Sequence[str], heard: set[int], world: int | None
) -> Iterable[Place]:
    """
    The hosts of the few tasks that srun spoke of, where these are ranks in blocks of one size.

    Each stands on the host whose block it is in by its number.  One beyond the first block shows
    that no launcher started several ranks: so many tasks would then be on fewer hosts.
    """
    each, rest = divmod(world or 0, len(hosts) or 1)
    if each < 2 or rest or max(heard, default=0) >= (world or 0):
        return
    at = {host.partition(".")[0].lower(): n for n, host in enumerate(hosts)}
    told = {(e.place.task, at.get((e.place.host or "").partition(".")[0].lower()))
            for e in exits if e.reporter == "srun" and e.place.task is not None}  # fmt: skip
    if any(task // each != n for task, n in told) or not any(n for _, n in told):
        return
    yield from (Place(host=hosts[n], rank=task) for task, n in told if n is not None)


def _as_tasks(
    exits: Iterable[ProcessExit], heard: set[int], world: int | None, gpus: int | None
) -> Iterable[Place]:
    """
    The hosts of the tasks that srun spoke of, where so many tasks can only be the ranks.

    Each task starts as many ranks: one whose number is half of the world's or more is one of as
    many tasks as there are ranks.
    """
    told = {e.place.task: e.place.host for e in exits
            if e.reporter == "srun" and e.place.task is not None}  # fmt: skip
    most = max(told, default=0)
    if world is None or not world / 2 <= most < world or max(heard, default=0) >= world:
        return
    if gpus not in (None, world):  # what was stated may be the size of a part
        return
    yield from (Place(host=host, rank=task) for task, host in told.items())


def _on_the_only(
    jobs: Sequence[Job],
    hosts: Sequence[str],
    sizes: tuple[int | None, int | None],
    heard: set[int],
) -> Iterable[Place]:
    """The ranks, and the tasks, of a job that held one node each time, and has no more of them
    than that has GPUs: a run of several jobs is larger than the record of one."""
    world, gpus = sizes
    count = max(world or 0, *(rank + 1 for rank in heard), 0)
    held = {node for job in jobs for node in job.nodes}
    if len(hosts) != 1 or held != {*hosts} or (gpus and count > gpus):
        return
    for n in range(gpus or count):
        yield Place(host=hosts[0], rank=n, task=n)


def node_named(host: str, nodes: Mapping[str, str]) -> str:
    """The node behind an address, or a pod's name or domain; the host itself where none is."""
    return nodes.get(host) or nodes.get(host.partition(".")[0], host)


def told_of_hosts(
    tracks: Sequence[Track],
    hosts: Sequence[str],
    matches: Sequence[Match],
    sizes: tuple[int | None, int | None],
    exits: Iterable[ProcessExit],
    jobs: Sequence[Job],
) -> Iterable[Place]:
    """Which host a rank has, by what is no label of a line: the log's name, NCCL, srun, what was
    printed, how launchers lay ranks, and the record of a job of one node; of a world of a size,
    and of so many GPUs."""
    world, gpus = sizes
    spoke = [m.cite.place for m in matches] + [track.place for track in tracks]
    heard = {place.rank for place in spoke if place.rank is not None}
    said = (place for place, *_ in communicating(matches, hosts, heard, world))
    exits = tuple(exits)
    by_tasks = _by_tasks(exits, hosts, heard, world)
    in_blocks = _in_blocks(exits, hosts, heard, world or gpus)
    printed = as_printed(
        matches, hosts, world, lambda match: named_after(match.cite.source, hosts), gpus
    )
    stated = stated_world(matches)
    as_tasks = _as_tasks(exits, heard, stated, gpus)
    places = [*spoke, *(event.place for event in exits)]
    in_order = laid(places, hosts, matches, jobs, stated)
    alone, named = _on_the_only(jobs, hosts, sizes, heard), _named_after(tracks, hosts)
    return (*named, *said, *by_tasks, *in_blocks, *printed, *as_tasks, *in_order, *alone)


Key = tuple[str, int | None]


def hosts_of(
    places: Iterable[Place],
    hosts: Sequence[str],
    sizes: tuple[int | None, int | None],
    node_of: Callable[[str], str],
    exits: Iterable[ProcessExit] = (),
) -> dict[Key, set[str]]:
    """The hosts that each rank, and each task, was heard of on."""
    found: dict[Key, set[str]] = {}
    nodes: dict[str, str] = {}
    for place in places:
        if place.host is None:
            continue
        node = nodes.setdefault(place.host, "") or node_of(place.host)
        nodes[place.host] = node
        for key in (("rank", place.rank), ("task", place.task)):
            if key[1] is not None:
                found.setdefault(key, set()).add(node)
    ranks = {n: on for (kind, n), on in found.items() if kind == "rank" and n is not None}
    world, gpus = sizes
    if world is None and gpus and ranks and gpus > max(ranks):
        world = gpus
    blocks = any(one.reporter == TORCHRUN for one in exits)
    for rank, node in completed(ranks, hosts, world, blocks=blocks).items():
        found["rank", rank] = {node}
    return found


def stated_world(matches: Iterable[Match]) -> int | None:
    """World size as a log states it."""
    said = (match.groups.get("world_size", "") for match in matches)
    return max((int(size) for size in said if size.isdecimal() and len(size) < 9), default=None)
