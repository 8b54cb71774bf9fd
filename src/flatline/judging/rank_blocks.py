"""
Host and card of a rank by the block that it is in: a list of the first rank of each host, or of
the ranks of each, or logs of one host each, in which as many ranks speak.

The card is that of the rank's number on its host, where there are as many cards as ranks and what
starts the ranks, or the program, gives them out so: torchrun's users and Megatron-LM take
`LOCAL_RANK` for the device (megatron/training/initialize.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from flatline.facts import LOG, Facts
from flatline.judging.addresses import cards_read
from flatline.judging.claims import claim
from flatline.judging.named_logs import host_of_log
from flatline.judging.own_work import speaker
from flatline.model import Finding, LogCite, Place
from flatline.rank_hosts import TORCHRUN

MOST_HOSTS, LISTED, HEAD, LAST = 64, 4_000, 40, 400
"""Logs, lines of a list, first lines that a launcher prints, and last ones in which all ranks of a
host speak."""
_HEADER = re.compile(
    r"(?i)\W{0,4}(?:(?:first|start|base)[ _-]?)?rank[\s,|:]+(?:host|node)(?:name)?\s*$"
)
_ROW = re.compile(r"\s*(\d{1,6})[\s,|:]+([A-Za-z][\w.-]{0,252})\s*$")
_RANGE = re.compile(
    r"(?i)\s*(?P<host>[a-z][\w.-]{0,252})[\s,|:=]{1,8}ranks?[\s:=]{1,4}(?P<first>\d{1,6})"
    r"(?: ?(?:-|\.\.\.?|to) ?)(?P<last>\d{1,6})\s*$"
    r"|\s*ranks?[\s:=]{1,4}(?P<from>\d{1,6})(?: ?(?:-|\.\.\.?|to) ?)(?P<to>\d{1,6})"
    r"[\s,|:=]{1,8}(?:(?:on|host|node)[\s:=]{1,4})?(?P<on>[a-z][\w.-]{0,252})\s*$"
)
"""`node7 ranks 0-7` and `ranks 0-7: node7`."""
_BY_NUMBER = re.compile(r"\btorchrun\b|torch[./]distributed[./](?:run|launch)\b")
MEGATRON = "megatron-"


@dataclass(frozen=True, slots=True)
class Block:
    """The ranks of one host, from the first on, and a line that tells it."""

    host: str
    first: int
    size: int
    cite: LogCite


def in_its_block(facts: Facts, found: Finding | None) -> Finding | None:
    """A finding whose one culprit is a rank on no known host, with the host of its block and,
    where the rank's number there counts to it, the card."""
    place = found.culprits[0] if found is not None and len(found.culprits) == 1 else Place()
    if found is None or place.rank is None or place.gpu is not None or place.device is not None:
        return found
    rank, blocks = place.rank, facts.memo("rank_blocks", _blocks)
    own = next((one for one in blocks if 0 <= rank - one.first < one.size), None)
    if own is None or facts.on_host(place).host not in (None, own.host):
        return found
    last = own.first + own.size - 1
    text = f"Ranks {own.first}-{last} are on {own.host}"
    card = None
    if cards_read(facts, own.host) == {*map(str, range(own.size))} and _by_number(facts):
        card = str(rank - own.first)
        text += f", as many as its cards: rank {rank} has card {card} by its number"
    culprit = replace(place, host=own.host, gpu=card)
    return replace(found, culprits=(culprit,), shows=(*found.shows, claim(text, own.cite)))


def _blocks(facts: Facts) -> tuple[Block, ...]:
    """One for each host of the run, all of one size and together all ranks from nought; none where
    that is not so."""
    if ranges := _ranged(facts):
        return ranges
    if not 1 < len(facts.hosts) <= MOST_HOSTS:
        return ()
    for told in (_listed(facts), _spoken(facts)):
        blocks = sorted(told, key=lambda one: one.first)
        size = blocks[0].size if blocks else 0
        alike = [(one.first, one.size) for one in blocks] == [
            (n * size, size) for n in range(len(facts.hosts))
        ]
        held = {one.host for one in blocks} == {*facts.hosts}
        beyond = max((*facts.ranks, (facts.world_size or 0) - 1), default=0)
        if size > 1 and alike and held and beyond < size * len(blocks):
            return tuple(blocks)
    return ()


def _ranged(facts: Facts) -> tuple[Block, ...]:
    """By a list of the ranks of each host that is a file of its own and tells of the whole run: of
    as many ranks as that has, or where that is not known of just its hosts.  None where two such
    lists differ."""
    told: dict[tuple[tuple[str, int, int], ...], list[Block]] = {}
    for read in facts.log_files(LOG):
        if not 1 < read.lines <= LISTED:
            continue
        rows = [
            (LogCite(read.source, line, text), _RANGE.match(text))
            for line, text in enumerate(facts.lines(read.source, 1, read.lines), 1)
            if text.strip() and not text.lstrip().startswith("#")
        ]
        found = [_range(facts, cite, row) for cite, row in rows if row is not None]
        if found and len(found) == len(rows):
            told[tuple((one.host, one.first, one.size) for one in found)] = found
    blocks = sorted(*told.values(), key=lambda one: one.first) if len(told) == 1 else []
    return tuple(blocks) if _whole(facts, blocks) else ()


def _range(facts: Facts, cite: LogCite, row: re.Match[str]) -> Block:
    host, first, last = (row[a] or row[b] for a, b in (("host", "on"), ("first", "from"),
                                                       ("last", "to")))  # fmt: skip
    return Block(facts.node_of(host), int(first), int(last) - int(first) + 1, cite)


def _whole(facts: Facts, blocks: list[Block]) -> bool:
    """Whether these are alike, from nought on, and all of the run."""
    size, hosts = (blocks[0].size if blocks else 0), {one.host for one in blocks}
    alike = [(one.first, one.size) for one in blocks] == [
        (n * size, size) for n in range(len(blocks))
    ]
    ranks = size * len(blocks)
    known = ranks == facts.world_size if facts.world_size else hosts == {*facts.hosts}
    heard = max(facts.ranks, default=0) < ranks and hosts >= {*facts.hosts}
    return size > 1 and alike and known and heard and 1 < len(hosts) == len(blocks) <= MOST_HOSTS


def _listed(facts: Facts) -> Iterator[Block]:
    """By a list of ranks and hosts that is a file of its own: of the first ones of all hosts, as
    far apart as the first two, or of every rank."""
    for read in facts.log_files(LOG):
        if not 1 < read.lines <= LISTED:
            continue
        header, *rows = facts.lines(read.source, 1, read.lines)
        told = [_ROW.match(row) for row in rows if row.strip()]
        if _HEADER.match(header) is None or not told or not all(told):
            continue
        firsts: dict[str, tuple[int, int]] = {}
        for line, row in enumerate(told, 2):
            if row is not None:
                host, rank = facts.node_of(row[2]), int(row[1])
                firsts[host] = min(firsts.get(host, (rank, line)), (rank, line))
        order = sorted(first for first, _ in firsts.values())
        size = order[1] - order[0] if len(order) > 1 else 0
        whole = len(told) in (len(firsts), size * len(firsts))
        for host, (first, line) in firsts.items() if whole else ():
            yield Block(host, first, size, LogCite(read.source, line,
                                                   facts.text(read.source, line)))  # fmt: skip
        return


def _spoken(facts: Facts) -> Iterator[Block]:
    """By logs that are each of one host, where the ranks that speak in one are a row."""
    for read in facts.log_files(LOG)[:MOST_HOSTS]:
        first = max(1, read.lines + 1 - LAST)
        said = [
            (told.rank, line)
            for line, text in enumerate(facts.lines(read.source, first, LAST), first)
            if (told := speaker(text)).rank is not None
        ]
        ranks = {rank for rank, _ in said if rank is not None}
        host = host_of_log(facts, read.source) if ranks else None
        if host is None:
            continue
        lowest = min(ranks)
        line = next(line for rank, line in said if rank == lowest)
        size = len(ranks) if max(ranks) - lowest == len(ranks) - 1 else 0
        yield Block(host, lowest, size, LogCite(read.source, line, facts.text(read.source, line)))


def _by_number(facts: Facts) -> bool:
    """Whether ranks take the card of their number on the host."""
    if any(match.signature.id.startswith(MEGATRON) for match in facts.matches):
        return True
    if any(event.reporter == TORCHRUN for event in facts.exits):
        return True
    heads = (facts.lines(read.source, 1, HEAD) for read in facts.log_files(LOG)[:MOST_HOSTS])
    return any(_BY_NUMBER.search(line) for head in heads for line in head)
