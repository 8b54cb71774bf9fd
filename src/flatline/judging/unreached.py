"""
The few hosts that alone never came to the rendezvous which all others came to: they say that they
could not connect, or try again to the end, the barrier names their tasks, all others reported that
it was given up, or the ranks of all others said that they went there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from flatline.errors import FormatError
from flatline.facts import LOG, Facts
from flatline.judging.by_endpoint import by_endpoint
from flatline.judging.claims import claim, distinct, name_places
from flatline.judging.named_logs import ELSEWHERE, host_of_log, hosts_with_logs, known_hosts
from flatline.judging.registration import never_came, said_to_go
from flatline.judging.still_trying import still_trying
from flatline.judging.waiting import FEW_RATIO
from flatline.logs.hostlists import expand
from flatline.model import Claim, LogCite, Match, Place, ProcessExit

FAILED = ("c10d-store-connect-timeout",)
"""What says that it gave up: one that is told of no route tries again, and may come after all."""
RETRIED, LONG = "c10d-store-retry", 0.5
"""Of the time that was waited: who alone went on so long had not come.  Shorter ones are tries of
before the store was there."""
_SECONDS = re.compile(r"Timed out after (\d{1,9}) seconds")
BARRIER, BEHIND = "jax-connect-barrier-timeout", 80
"""JAX's, and how many lines behind it the missing tasks may stand on, one each."""
_REACHED = re.compile(r"tasks that reached the barrier: (?P<came>\d{1,6})/(?P<all>\d{1,6})")
_TIMED_OUT = re.compile(
    r"(?i)timed out task names:"
    r"((?:\s{0,4}(?:\d{1,6}: ?)?/job:\w{1,40}/replica:\d{1,6}/task:\d{1,6},?\s{0,4})+)"
)
_TASK = re.compile(r"/task:(\d{1,6})")
LOST = "c10d-store-lost"
_EXITED = re.compile(r"\bsrun: error: (\S{1,4000}): tasks? ")
SIGNALLED, SHOWN, LEAST = 128, 4, 2
COUNTED, WAITED = "c10d-store-clients-missing", "torchelastic-rendezvous-timeout"
WAITS = "c10d-store-barrier-waits"
SERVER = "dgl-server-unreached"
_COUNTS = (
    re.compile(r"(?P<came>\d{1,6})/(?P<all>\d{1,6}) clients joined"),
    re.compile(
        r"world_size=(?P<all>\d{1,6}), (?:num_workers_joined|worker_count)=(?P<came>\d{1,6})"
    ),
)
"""TCPStore's and the store-based barrier's count of those that came, and of all."""
_WORD = re.compile(r"[\w-]+(?:\.[\w-]+)*")


def unreached(facts: Facts) -> tuple[tuple[Place, ...], Claim | None]:
    """Those hosts, and what shows it; nothing where none of these tells."""
    ways = (
        one(facts)
        for one in (
            _unconnected,
            _cut_off,
            _not_registered,
            _left_over,
            _still_tried,
            _to_the_end,
            _unheard,
            _served,
        )
    )
    return next((found for found in ways if found[0]), ((), None))


def _unconnected(facts: Facts) -> tuple[tuple[Place, ...], Claim | None]:
    """Those hosts, where the lines that tell of it name no other and as many are missing as run
    there, or all others are known to have waited at the rendezvous; nothing otherwise."""
    told: dict[str, LogCite] = {}
    missing = lacking(facts)
    for match in facts.matches:
        if match.signature.id in FAILED and match.attempt == facts.last.n:
            host = _host(facts, match) or _ended_next(facts, match)
            if host is None and missing is not None and match.cite.place == Place():
                continue  # of any process that writes there: the count tells how many there are
            if host is None or _came_after_all(facts, match):
                return (), None
            told.setdefault(host, match.cite)
    hosts = max(len(facts.hosts), len(hosts_with_logs(facts)))
    each = missing is not None and missing[2] - missing[1] == len(told)  # of agents, or of ranks
    hosts = max(hosts, len(told) + len(_gave_up(facts)))
    if not told or not _few(len(told), missing[2] if missing and each else hosts):
        return (), None
    places = tuple(Place(host=host) for host in sorted(told))
    alone = f"Alone {name_places(places)} could not connect to it"
    if missing is None:
        waited = _waited(facts) or _gave_up(facts)
        if not waited or set(told) & set(waited) or not _all(facts, {*told, *waited}):
            return (), None
        return places, claim(f"{alone}: the {len(waited)} others waited there until their timeout",
                             *told.values(), *waited.values())  # fmt: skip
    cite, came, world = missing
    if not each and (world - came) * hosts != len(told) * world:
        return (), None
    text = f"{alone}, and {world - came} of {world} were missing: the others came"
    return places, claim(text, *told.values(), cite)


def _cut_off(facts: Facts) -> tuple[tuple[Place, ...], Claim | None]:
    """The host of those that could not connect where nothing names it beside their lines: as many
    say so as were missing, and as many tasks ended first, on one host."""
    missing, said = lacking(facts), _failed(facts)
    if missing is None or not said:
        return (), None
    cite, came, world = missing
    first = next((e for e in _ended(facts) if isinstance(e.cite, LogCite)
                  and e.cite.source == cite.source), None)  # fmt: skip
    hosts = {facts.node_of(host) for host in _of_exit(first)} if first is not None else set()
    if first is None or len(hosts) != 1 or not _few(1, len(facts.hosts)):
        return (), None
    tasks = {e.place.task for e in _ended(facts) if isinstance(e.cite, LogCite)
             and (e.cite.source, e.cite.line) == (cite.source, first.cite.line)}  # fmt: skip
    if not len(said) == len(tasks) == world - came:
        return (), None
    places = tuple(Place(host=host) for host in hosts)
    text = f"{len(said)} tasks could not connect, as many as were missing of {world}, and those of"
    return places, claim(f"{text} {name_places(places)}, as many, ended first", cite, said[0],
                         first.cite)  # fmt: skip


def _served(facts: Facts) -> tuple[tuple[Place, ...], Claim | None]:
    """The one host whose server all that gave up name: who cannot reach several may be cut off
    itself."""
    told = [m for m in facts.matches if m.signature.id == SERVER and m.attempt == facts.last.n]
    hosts = {facts.node_of(m.groups["peer"]) for m in told}
    places = tuple(Place(host=host) for host in hosts)
    if len(places) != 1:
        return (), None
    text = f"The server that was not reached is that of {name_places(places)}, and no other"
    return places, claim(text, *(m.cite for m in told[:SHOWN]))


def _failed(facts: Facts) -> list[LogCite]:
    """The lines on it that are alike and most: each process prints several, one of a kind."""
    alike: dict[str, list[LogCite]] = {}
    for match in facts.matches:
        if match.signature.id in FAILED and match.attempt == facts.last.n:
            alike.setdefault(match.cite.text.strip(), []).append(match.cite)
    return max(alike.values(), key=len, default=[])


def _few(absent: int, hosts: int) -> bool:
    """Whether so few did not come that the place they were to come to was sound: of three hosts
    another one had reached it; of two either may be cut off."""
    return absent <= FEW_RATIO * hosts or (absent == 1 and hosts > LEAST)


def _all(facts: Facts, hosts: set[str]) -> bool:
    """Whether those are all hosts of the run or, where nothing names these, one for each log or
    for each task that srun saw end, which it counts from 0."""
    tasks = {e.place.task for e in _ended(facts) if e.place.task is not None}
    if facts.job is None and tasks == set(range(len(hosts))) and set(facts.hosts) <= hosts:
        return True
    logs = by_endpoint(facts) or facts.log_files(LOG)
    return hosts == set(facts.hosts or hosts) and len(hosts) == len(facts.hosts or logs)


def _not_registered(facts: Facts) -> tuple[tuple[Place, ...], Claim | None]:
    """The tasks that JAX's coordinator names as those it waited for, where they are few and as
    many as were missing, with their hosts."""
    told: dict[frozenset[int], LogCite] = {}
    for match in facts.matches:
        if match.signature.id == BARRIER and match.attempt == facts.last.n:
            said = "\n".join(facts.lines(match.cite.source, match.cite.line, BEHIND))
            count, named = _REACHED.search(said), _TIMED_OUT.search(said)
            if count is None or named is None:
                continue
            tasks = frozenset(int(n) for n in _TASK.findall(named[1]))
            world = int(count["all"])
            if len(tasks) != world - int(count["came"]) or not _few(len(tasks), world):
                return (), None
            told.setdefault(tasks, match.cite)
    if len(told) != 1:
        return (), None
    ((tasks, cite),) = told.items()
    nodes = facts.job.nodes if facts.job is not None and len(facts.job.nodes) == world else ()
    known = [facts.on_host(Place(task=n)).host or _by_log(facts, n) for n in range(world)]
    if any(a not in (None, b) for a, b in zip(known, nodes, strict=False)):
        nodes = ()  # their order is another
    places = [facts.on_host(Place(task=task)) for task in sorted(tasks)]
    named_on = tuple(place if place.host is not None else replace(place, host=(
        _by_log(facts, place.task) or (nodes[place.task or 0] if nodes else None)
    )) for place in places)  # fmt: skip
    text = f"Of {world} tasks alone {name_places(places)} never came to the barrier"
    return named_on, claim(text, cite)


def _by_log(facts: Facts, task: int | None) -> str | None:
    """The host that the log of a task is of."""
    logs = (read.source for read in facts.log_files(LOG) if read.place.task == task)
    return next(filter(None, (host_of_log(facts, log) for log in logs)), None)


def _left_over(facts: Facts) -> tuple[tuple[Place, ...], Claim | None]:
    """The hosts of the job on which no task gave up, where as many are missing: who came gives up
    when the rendezvous does.  Who did stands in srun's words, or in those of its labelled tasks,
    which it numbers in the order of the nodes."""
    missing, nodes = lacking(facts), facts.job.nodes if facts.job is not None else ()
    if missing is None or _failed(facts):
        return (), None  # who could not connect gives up as well
    cite, came, world = missing
    ended = [e for e in _ended(facts) if isinstance(e.cite, LogCite)
             and e.cite.source == cite.source and e.cite.line > cite.line]  # fmt: skip
    gave_up = {facts.node_of(host): e.cite for e in ended for host in _of_exit(e)}
    if not all(map(_of_exit, ended)) or len(gave_up) < LEAST:
        gave_up = _labelled(facts, missing, nodes)
    left = [node for node in nodes if node not in gave_up]
    if not gave_up or not left or (world - came) * len(nodes) != len(left) * world:
        return (), None
    if not _few(len(left), len(nodes)):
        return (), None
    places = tuple(Place(host=host) for host in left)
    text = f"On every other host a task gave up, on {name_places(places)} none did"
    return places, claim(f"{text}, and {world - came} of {world} were missing", cite,
                         *[*gave_up.values()][:SHOWN])  # fmt: skip


def _labelled(
    facts: Facts, missing: tuple[LogCite, int, int], nodes: tuple[str, ...]
) -> dict[str, LogCite]:
    """The nodes whose labelled task says that it gave up, where as many of all said so as came:
    a task of each node is the one process there, or starts as many ranks as the others."""
    _, came, world = missing
    said = [m.cite for m in facts.matches if m.signature.id in (COUNTED, LOST)]
    tasks = {c.place.task: c for c in said if c.place.task is not None}
    if not tasks or max(tasks) >= len(nodes) or len(tasks) * world != came * len(nodes):
        return {}
    each, over = divmod(world, len(nodes))
    if over or (each > 1 and any(
        c.place.rank is None or c.place.rank // each != c.place.task
        for c in said if c.place.task is not None
    )):  # fmt: skip
        return {}  # tasks that are ranks: many run on one node
    return {nodes[task]: c for task, c in tasks.items()}


def _still_tried(facts: Facts) -> tuple[tuple[Place, ...], Claim | None]:
    """The hosts that alone say for a good part of the wait that a try to connect failed, where as
    many are missing as run there, or all others gave up to wait for them."""
    missing, told = lacking(facts), dict[str, list[LogCite]]()
    for match in facts.matches:
        if match.signature.id == RETRIED and match.attempt == facts.last.n:
            labelled = facts.node_of(match.cite.text.partition(": ")[0])
            host = labelled if labelled in facts.hosts else _host(facts, match)
            if host is None:
                return (), None
            told.setdefault(host, []).append(match.cite)
    hosts = len(facts.hosts or hosts_with_logs(facts))
    if missing is None:
        return _tried_until(facts, told)
    waited = _SECONDS.search(missing[0].text)
    if waited is None or not told:
        return (), None
    if any(_lasted_s(said) < LONG * int(waited[1]) for said in told.values()):
        return (), None
    cite, came, world = missing
    if not _few(len(told), hosts) or (world - came) * hosts != len(told) * world:
        return (), None
    places = tuple(Place(host=host) for host in sorted(told))
    text = f"Alone {name_places(places)} tried again and again to connect"
    return places, claim(f"{text}, and {world - came} of {world} were missing", cite,
                         *(said[-1] for said in told.values()))  # fmt: skip


def _to_the_end(facts: Facts) -> tuple[tuple[Place, ...], Claim | None]:
    """The same of a run that was ended while it waited: those whose logs end with such tries,
    where the barrier at the store last counted as many missing as run there."""
    trying = still_trying(facts)
    counts = [(m.cite, found) for m in facts.matches
              if m.signature.id == WAITS and m.attempt == facts.last.n
              and (found := _COUNTS[1].search(m.cite.text))]  # fmt: skip
    if trying is None or not trying.places or not counts:
        return (), None
    cite, told = counts[-1]
    came, world, hosts = int(told["came"]), int(told["all"]), len(facts.hosts)
    if not _few(len(trying.places), hosts) or (world - came) * hosts != len(trying.places) * world:
        return (), None
    text = f"{trying.shows.text}, and {world - came} of {world} were missing"
    return trying.places, claim(text, cite, *trying.shows.cites)


def _unheard(facts: Facts) -> tuple[tuple[Place, ...], Claim | None]:
    """The few ranks that alone did not say that they went there, where the count of those that
    came lacks as many."""
    missing = lacking(facts)
    if missing is None:
        return (), None
    cite, came, world = missing
    ranks, said = never_came(facts)
    cites = [m.cite for m in said]
    if not ranks:
        going = said_to_go(facts, world)
        ranks, cites = tuple(set(range(world)) - going.keys()), [*going.values()]
    if world - came != len(ranks) or came != len(cites) or not _few(len(ranks), world):
        return (), None
    places = _whole_hosts(facts, sorted(ranks), world, cites)
    text = f"{came} of {world} came, and the others than {name_places(places)} said so"
    return places, claim(f"{text} of themselves", cite, *cites[:SHOWN])


def _whole_hosts(
    facts: Facts, ranks: Sequence[int], world: int, came: Sequence[LogCite]
) -> tuple[Place, ...]:
    """The hosts of these ranks where no other runs there, by what is known of the ranks or by
    whose logs tell of none that `came`; otherwise the ranks."""
    places = [facts.on_host(Place(rank=rank)) for rank in ranks]
    others = {facts.on_host(Place(rank=rank)).host for rank in set(range(world)) - {*ranks}}
    if all(place.host and place.host not in others for place in places):
        return distinct(Place(host=place.host) for place in places)
    logs = {host_of_log(facts, cite.source) for cite in came}
    left = [host for host in facts.hosts if host not in logs]
    if None not in logs and left and len(ranks) * len(facts.hosts) == len(left) * world:
        return tuple(Place(host=host) for host in left)
    return tuple(places)


def _tried_until(
    facts: Facts, told: dict[str, list[LogCite]]
) -> tuple[tuple[Place, ...], Claim | None]:
    """The same where nobody counts who came: those went on to try until all others gave up."""
    waited = _waited(facts) or _gave_up(facts)
    ends = min((cite.at for cite in waited.values() if cite.at is not None), default=None)
    begins = min((c.at for said in told.values() for c in said if c.at is not None), default=None)
    begins = facts.last.started_at or begins
    if ends is None or begins is None or set(told) & set(waited):
        return (), None
    there = {*told, *waited, *_asked(facts, told)}
    if not _all(facts, there) or not _few(len(told), len(there)):
        return (), None
    length_s = (ends - begins).total_seconds()
    if any(_lasted_s(said) < LONG * length_s for said in told.values()):
        return (), None
    places = tuple(Place(host=host) for host in sorted(told))
    text = f"Alone {name_places(places)} tried again and again to connect"
    return places, claim(f"{text}: the {len(waited)} others waited there until their timeout",
                         *(said[-1] for said in told.values()), *waited.values())  # fmt: skip


def _asked(facts: Facts, told: dict[str, list[LogCite]]) -> set[str]:
    """The host of the store, which they name: others came to it, whatever its own log tells."""
    words = (word for said in told.values() for word in _WORD.findall(said[-1].text))
    named = {facts.node_of(word) for word in words} & set(facts.hosts) - set(told)
    return named if len(named) == 1 else set()


def _lasted_s(said: list[LogCite]) -> float:
    """From the first to the last of them that is dated."""
    times = [cite.at for cite in said if cite.at is not None]
    return (max(times) - min(times)).total_seconds() if times else 0.0


def _waited(facts: Facts) -> dict[str, LogCite]:
    """The hosts on which a launcher gave up to wait at the rendezvous; nothing where one of these
    lines names none."""
    hosts: dict[str, LogCite] = {}
    for match in facts.matches:
        if match.signature.id == WAITED and match.attempt == facts.last.n:
            host = _host(facts, match)
            if host is None:
                return {}
            hosts.setdefault(host, match.cite)
    return hosts


def _gave_up(facts: Facts) -> dict[str, LogCite]:
    """The hosts of which srun says, behind a launcher's word that it gave up to wait, that a task
    ended by itself."""
    said = [m.cite for m in facts.matches if m.signature.id == WAITED]
    ended = (e for e in _ended(facts) if any(
        e.cite.source == cite.source and e.cite.line > cite.line for cite in said))  # fmt: skip
    return {facts.node_of(host): e.cite for e in ended for host in _of_exit(e)}


def _of_exit(event: ProcessExit) -> tuple[str, ...]:
    """The hosts that srun's line on an exit names."""
    listed = _EXITED.search(event.cite.text) if isinstance(event.cite, LogCite) else None
    try:
        return expand(listed[1]) if listed is not None else ()
    except FormatError:
        return ()


def _ended_next(facts: Facts, match: Match) -> str | None:
    """The one host whose task srun says has ended next behind a line of a log that many write,
    before anybody gave up to wait."""
    source, line = match.cite.source, match.cite.line
    waits = min((m.cite.line for m in facts.matches if m.signature.id == WAITED
                 and m.cite.source == source and m.cite.line > line), default=None)  # fmt: skip
    behind = [e for e in _ended(facts) if isinstance(e.cite, LogCite) and e.cite.source == source
              and line < e.cite.line and (waits is not None and e.cite.line < waits)]  # fmt: skip
    hosts = {facts.node_of(host) for e in behind for host in _of_exit(e)}
    return hosts.pop() if len(hosts) == 1 else None


def _ended(facts: Facts) -> list[ProcessExit]:
    """Processes that ended by themselves, with an error."""
    return [e for e in facts.exits
            if e.exit_code and not e.signal and e.exit_code < SIGNALLED]  # fmt: skip


def _came_after_all(facts: Facts, match: Match) -> bool:
    """Whether the same log goes on to lose a connection that it then had."""
    return any(
        one.cite.source == match.cite.source
        and one.cite.line > match.cite.line
        and "lost-peer" in one.signature.tags
        for one in facts.matches
    )


def _host(facts: Facts, match: Match) -> str | None:
    """The host on which it was printed."""
    told = facts.on_host(match.cite.place).host
    if told is not None:
        return told
    nodes, task = facts.job.nodes if facts.job is not None else (), match.cite.place.task
    if task is not None and task < len(nodes) == _agents(facts):
        return nodes[task]  # one agent a node: Slurm numbers them in the order of its nodes
    peer = {facts.node_of(word) for word in _WORD.findall(match.groups.get("peer", ""))}
    own_words = _WORD.findall(ELSEWHERE.sub(" ", match.cite.text))
    named = {facts.node_of(word) for word in own_words} - peer
    own = named.intersection(known_hosts(facts))
    if own:
        return own.pop() if len(own) == 1 else None
    return host_of_log(facts, match.cite.source)


def _agents(facts: Facts) -> int | None:
    """How many agents a launch has: as many as it counts, or as srun's labels number from 0."""
    if (missing := lacking(facts)) is not None:
        return missing[2]
    said = {m.cite.place.task for m in facts.matches
            if m.signature.id in (*FAILED, WAITED) and m.attempt == facts.last.n}  # fmt: skip
    return len(said) if said == set(range(len(said))) else None


def lacking(facts: Facts) -> tuple[LogCite, int, int] | None:
    """How many had come of how many, as the last line of it says."""
    counts = [*_counted(facts)]
    return counts[-1] if counts else None


def _counted(facts: Facts) -> Iterator[tuple[LogCite, int, int]]:
    for match in facts.matches:
        if match.signature.id == COUNTED and match.attempt == facts.last.n:
            found = next(filter(None, (one.search(match.cite.text) for one in _COUNTS)), None)
            if found is not None and int(found["came"]) < int(found["all"]):
                yield match.cite, int(found["came"]), int(found["all"])
