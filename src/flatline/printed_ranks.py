"""
Which host has which ranks, as a launcher or the program itself printed it.

No line is believed alone: one that names a rank and a host may tell whom the rank connects to.
Together they must share the ranks out, as many to each host and no rank twice; what a few lines
leave out is laid beside its neighbours where all that is known lies in blocks, or in turns.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import ceil

from flatline.model import Match, Place

RANKS, RANK, MAPPING, AGENT, BLOCKS = (
    f"placement-{what}" for what in ("ranks", "rank", "deepspeed", "agent", "blocks")
)
LABEL = "placement-rank-label"
OF_A_LINE = (RANK, f"{RANK}-set", f"{RANK}-json")
"""Lines that name a rank and its host as such."""
ONE_EACH = (*OF_A_LINE, LABEL, "placement-process")
MOST = 1000
"""Ranks whose lines are enough, however many there are: of one log so many of a kind are kept."""
_WORD = re.compile(r"[A-Za-z0-9][\w.-]*[A-Za-z0-9]|[A-Za-z0-9]")
_SPAN = re.compile(r"(\d{1,6}) ?(?:-|\.\.|to) ?(\d{1,6})")
_SPANS_OF = re.compile(
    r"\b[Rr]anks? ?[=:]? ?\[?(?P<first>\d{1,6}) ?(?:-|\.\.|to) ?(?P<last>\d{1,6})\]?"
    r"(?: on (?:host |node )?| ?(?:@|->|=>) ?)(?P<host>[A-Za-z][\w.-]{0,119}\w)"
    r"(?:[ ,]{0,2}[(\[]?(?i:gpus?|devices?|cuda)[ =:]{0,2}"
    r"(?P<card>\d{1,2}) ?(?:-|\.\.|to) ?(?P<upto>\d{1,2})\b)?"
)
"""A span of ranks, its host and perhaps its cards: a line may share all ranks out."""
_SPANS_BEHIND = re.compile(
    r"(?<![\w.=-])(?P<host>[A-Za-z][\w.-]{0,119}\w)(?: ?[=:] ?| \(?)[Rr]anks? ?[=:]? ?\[?"
    r"(?P<first>\d{1,6}) ?(?:-|\.\.|to) ?(?P<last>\d{1,6})(?![\w.])"
)
"""The same behind its host."""
_HOSTFILE = re.compile(r"'(?:[\w.-]{1,64}@)?([\w.-]{1,253})': \[([\d, ]+)\]")
_OF_ANOTHER = re.compile(
    r"(?i)wait|miss|lost|fail|error|time[ds]?[ -]?out|connect|peer|abort|dead|unreach|recv"
    r"|receive|send|\breads?\b|sav|keep|kept|replica|exchang|previous|plan|check|slow|behind|writ"
    r"|next|cache|weight|placed|shard|moving|\bstage|\breading|\bold\b"
)
_OF_A_GROUP = re.compile(r"(?i)\b(?:node|local|pp|tp|dp|ep|cp|group|stage)[ _-]?rank[ =:]{0,2}$")
"""Ranks that are counted within a part of the run, or of nodes."""
_SAYS_HOST = re.compile(r"(?i)(?:host|node)(?:[ _]?name)?['\"]?[ =:]{1,3}['\"]?$")
_BEFORE_RANKS = re.compile(
    r"(?i)\b(?:host|node)(?:[ _]?name)?['\"]?(?: ?[=:] ?| )['\"]?"
    r"(?=[\w.-]*\d)([a-z][\w.-]{0,252}\w)['\"]?[,:;]?"
    r" (?:(?:has|holds|runs|starts|with|local|global) )?ranks['\"]? ?[=:]? ?[\[(]?$"
)
_WORLD = re.compile(r"\bworld(?:[ _-]?size)?[=: ]{1,3}(\d{1,6})(?![\w.])")
_LAUNCHER = re.compile(r"torchrun|torch\.distributed|accelerate |deepspeed |horovodrun|mpirun")
_A_NODE = re.compile(r"--ntasks-per-node[= ](\d{1,4})\b")
Host = Callable[[Match], str | None]


def as_printed(
    matches: Sequence[Match],
    hosts: Sequence[str],
    world: int | None,
    named: Host,
    gpus: int | None = None,
) -> tuple[Place, ...]:
    """Places of ranks (of processes as tasks too) by lines that name hosts of the run; `named` is
    the host a log is named after.  A rank may be elsewhere once a run was started anew."""
    last = max((m.attempt for m in matches), default=0)
    told = [m for m in matches if m.attempt == last and m.signature.id.startswith("placement-")]
    if not told:
        return ()
    known = {host.partition(".")[0].lower(): host for host in hosts}
    shared = _shared(_shares(told, known, named), len(known), world)
    in_blocks = _in_order(told, hosts, world)
    firsts = _firsts(told, known, world or gpus or _world_beside(told))
    return (*shared, *_one_by_one(told, known, world), *in_blocks, *firsts)


def _world_beside(told: Iterable[Match]) -> int | None:
    """The number of ranks that all lines that place one name beside it."""
    placed = [m.cite.text for m in told if m.signature.id in ONE_EACH]
    sizes = {found and int(found[1]) for found in map(_WORLD.search, placed)}
    return sizes.pop() if len(sizes) == 1 else None


def _shares(
    told: Iterable[Match], known: Mapping[str, str], named: Host
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Hosts, each with all the ranks that a line gives it."""
    for match in told:
        if match.signature.id == MAPPING:
            for host, listed in _HOSTFILE.findall(match.groups["ranks_by_host"]):
                yield host, _numbers(listed)
        elif match.signature.id in (RANKS, AGENT):
            said = match.cite.text
            spans = [*_SPANS_OF.finditer(said)] if match.signature.id == RANKS else []
            if not spans and match.signature.id == RANKS:
                behind = _SPANS_BEHIND.finditer(said)
                spans = [one for one in behind if one["host"].partition(".")[0].lower() in known]
            if len({span["host"] for span in spans}) > 1:
                yield from _by_spans(spans, said, known)
                continue
            host = match.cite.place.host or (
                named(match)
                if match.signature.id == AGENT
                else _host_in(said, known)
                if known
                else _host_said(match)
            )
            if host is not None and not _OF_ANOTHER.search(said):
                yield host, _numbers(match.groups["has_ranks"])


def _host_said(match: Match) -> str | None:
    """The name right before the ranks, where the line itself says that it is a host's."""
    before = match.cite.text.partition(match.groups["has_ranks"])[0]
    found = _BEFORE_RANKS.search(before)
    return None if found is None else found[1]


def _by_spans(
    spans: Iterable[re.Match[str]], said: str, known: Mapping[str, str]
) -> Iterator[tuple[str, tuple[int, ...]]]:
    for span in () if _OF_ANOTHER.search(said) else spans:
        host = known.get(span["host"].partition(".")[0].lower())
        if host is not None and not _OF_A_GROUP.search(f"{said[: span.start()]}rank "):
            yield host, _numbers(f"{span['first']}-{span['last']}")


def card_by_spans(said: str, rank: int) -> tuple[str, str] | None:
    """Host and card of a rank by a line that gives each span of ranks as many cards of a host."""
    for span in _SPANS_OF.finditer(said):
        first, last, card = int(span["first"]), int(span["last"]), span["card"]
        if card and first <= rank <= last and int(span["upto"]) - int(card) == last - first:
            return span["host"], str(int(card) + rank - first)
    return None


def _numbers(listed: str) -> tuple[int, ...]:
    if span := _SPAN.match(listed):
        first, last = int(span[1]), int(span[2])
        return tuple(range(first, last + 1)) if first <= last < first + MOST else ()
    return tuple(sorted({int(one) for one in re.findall(r"\d+", listed)}))


def _host_in(text: str, known: Mapping[str, str]) -> str | None:
    """The one host of the run that a line names."""
    words = (word.partition(".")[0].lower() for word in _WORD.findall(text))
    found = {known[word] for word in words if word in known}
    return found.pop() if len(found) == 1 else None


def _shared(
    shares: Iterable[tuple[str, tuple[int, ...]]], hosts: int, world: int | None
) -> Iterator[Place]:
    """The ranks by host where they are shared out: all of each host's at once, as many on each,
    none twice, and together as many as there are."""
    of: dict[str, set[tuple[int, ...]]] = {}
    for host, ranks in shares:
        of.setdefault(host, set()).add(ranks)
    once = [ranks for sets in of.values() for ranks in sets]
    each = {len(ranks) for ranks in once}
    together = {rank for ranks in once for rank in ranks}
    if len(of) < 2 or len(once) > len(of) or len(each) != 1 or 0 in each:
        return
    size = each.pop()
    whole = len(of) >= hosts and together == set(range(size * len(of)))
    some = size * hosts == (world or 0) > max(together)
    if len(together) != size * len(of) or not (whole or some) or (world or 0) > size * hosts > 0:
        return
    for host, (ranks,) in of.items():
        yield from (Place(host=host, rank=rank) for rank in ranks)


def _one_by_one(
    told: Iterable[Match], known: Mapping[str, str], world: int | None
) -> Iterator[Place]:
    """The ranks by host where a line names one of each: of most ranks, each on one host, and no
    host with more than its share."""
    for process in (False, True):
        of: dict[int, set[str]] = {}
        for match in told:
            if match.signature.id not in ONE_EACH or ("what" in match.groups) != process:
                continue
            host = _host_beside(match, known)
            if host is not None:
                of.setdefault(int(match.groups["has_rank"]), set()).add(host)
        size = world if world and not process else max(of, default=0) + 1
        on = [host for hosts in of.values() for host in hosts]
        share = ceil(size / max(len(known), len({*on}), 1))
        if len({*on}) < 2 or len(on) > len(of) or max(of) >= size:
            continue
        if 2 * len(of) < min(size, 2 * MOST) or max(map(on.count, {*on})) > share:
            continue
        ranks = not process or size == world or (world is None and size > len(known) > 0)
        for n, (host,) in of.items():
            yield Place(host=host, rank=n if ranks else None, task=n if process else None)


def _firsts(told: Iterable[Match], known: Mapping[str, str], world: int | None) -> Iterator[Place]:
    """The ranks in blocks where one of each host tells for all, and its number is the first of its
    block: every host of the run in the order of its nodes, and no other rank."""
    each, rest = divmod(world or 0, len(known) or 1)
    of: dict[int, set[str | None]] = {}
    for match in told:
        if match.signature.id in ONE_EACH and "what" not in match.groups:
            of.setdefault(int(match.groups["has_rank"]), set()).add(_host_beside(match, known))
    firsts = {n * each: {host} for n, host in enumerate(known.values())}
    if each > 1 and not rest and len(known) > 1 and of == firsts:
        for first, (host,) in firsts.items():
            yield from (Place(host=host, rank=first + n) for n in range(each))


def _host_beside(match: Match, known: Mapping[str, str]) -> str | None:
    """The host that a line says its rank is on; None where it tells of another."""
    number, host = match.groups["has_rank"], match.groups["on_host"].rstrip(".-")
    between = match.cite.text.partition(number)[2].partition(host)[0]
    if _OF_ANOTHER.search(between):
        return None
    if _OF_A_GROUP.search(match.cite.text.partition(number)[0]):
        return None
    if match.signature.id == LABEL:  # any word may stand there
        return known.get(host.partition(".")[0].lower())
    if not known:  # without a record the line itself must say that it is a host's name
        return host if _SAYS_HOST.search(between) and re.search(r"\d", host) else None
    return known.get(host.partition(".")[0].lower()) or _host_in(match.cite.text, known)


def _in_order(told: Iterable[Match], hosts: Sequence[str], world: int | None) -> Iterator[Place]:
    """The ranks in blocks on the job's nodes, where srun was told to lay its tasks so and starts
    one for each rank: so many on a node as there are ranks for it, two or more."""
    each, rest = divmod(world or 0, len(hosts) or 1)
    said = [m.cite.text for m in told if m.signature.id == BLOCKS]
    counts = {int(n) for text in said for n in _A_NODE.findall(text)}
    if each < 2 or rest or counts != {each} or any(map(_LAUNCHER.search, said)):
        return
    yield from (Place(host=hosts[rank // each], rank=rank) for rank in range(each * len(hosts)))


def completed(
    of: Mapping[int, set[str]], hosts: Sequence[str], world: int | None, *, blocks: bool = False
) -> dict[int, str]:
    """
    The hosts of ranks of which nothing was said, beside those of their neighbours: where the ranks
    of every host are a block, or every so-manieth.

    Half of a host's ranks tell it; or one of them, where only one of the two ways fits what is
    known of every host, or blocks alone put all that is known on the hosts in their order.  One
    host of which nothing is known has what is left, where most of every other is known.  One rank
    of each suffices where they are known to be `blocks`, as torchrun numbers them.
    """
    each, rest = divmod(world or 0, len(hosts) or 1)
    known = {rank: min(names) for rank, names in of.items() if len(names) == 1}
    if each < 2 or rest or len(hosts) < 2 or len(known) < len(of):
        return {}
    count = each * len(hosts)
    ways = [[r // each for r in range(count)], [*range(len(hosts))] * each]
    laid = [_laid(known, parts) for parts in ways]
    fit = [bool(on) and len({*on.values()}) == len(on) for on in laid]
    fit[1] = fit[1] and not blocks
    ordered = [all(hosts[n] == host for n, host in on.items()) for on in laid]
    for at, (parts, on) in enumerate(zip(ways, laid, strict=True)):
        if not fit[at]:
            continue
        told = Counter(parts[rank] for rank in known)
        lone = (
            (blocks and {*on.values()} <= {*hosts})
            or (len(on) == len(hosts) and not fit[1 - at])
            or (at == 0 and ordered[0] and not (fit[1] and ordered[1]))
        )
        if not lone and len(on) < 2 and len(hosts) > 2:
            continue
        beside = {n: host for n, host in on.items() if lone or 2 * told[n] >= each}
        left = {*hosts} - {*on.values()}
        most = blocks or all(2 * told[n] > each for n in on)
        if len(left) == 1 and not fit[1 - at] and most:
            beside |= dict.fromkeys({*parts} - {*on}, left.pop())
        return {rank: beside[parts[rank]] for rank in range(count)
                if rank not in of and parts[rank] in beside}  # fmt: skip
    return {}


def _laid(known: Mapping[int, str], parts: Sequence[int]) -> dict[int, str]:
    """The one host of each part; nothing where one has several, or a rank is in none."""
    on: dict[int, str] = {}
    for rank, host in known.items():
        if rank >= len(parts) or on.setdefault(parts[rank], host) != host:
            return {}
    return on
