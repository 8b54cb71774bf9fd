"""
The index of a GPU that a kernel names by its PCI address, or a program by its rank.

An address is no index, and nothing is counted out.  Whatever else was read of the same GPU may
say both: an exporter's labels (`pci_bus_id` of dcgm-exporter, `pcie_bus_id` of AMD's), NCCL's line
on a communicator (`nvmlDev 6 busId bd000`); or the driver's own line gives the UUID behind an
address, and an exporter's label the index behind a UUID.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from flatline.facts import Facts
from flatline.judging.claims import claim
from flatline.judging.timeline import instant
from flatline.model import Cite, Claim, Finding, Match, Place
from flatline.printed_ranks import OF_A_LINE, RANKS, card_by_spans
from flatline.rank_hosts import COMMUNICATOR, TORCHRUN, communicating, named_after

if TYPE_CHECKING:
    from flatline.series.answer import Answer

SIGNALS = ("gpu_power_watts", "gpu_temperature_celsius", "gpu_memory_used_bytes")
"""Of every exporter of GPUs one of these."""
NAMED, LISTED = (
    "nvidia-gpu-address",
    (
        "nvidia-gpu-list",
        "nvidia-gpu-table",
        "amdgpu-list",
        "amdgpu-listed-address",
    ),
)
_OF_LIST = re.compile(r"\s{0,4}GPU: (\d{1,3})\s*$")
"""The line of amd-smi's list before that of the address."""
_OF_ROW = re.compile(
    r"(?:^|[\]>\"\t,|:] {0,2})(?:\| {1,5})?(\d{1,3})"
    r"(?:, (?:GPU-[0-9a-f-]{36}, )?| {2,3}\S[^|]{2,60}\| {0,3})"
    r"0000000[0-9a-fA-F]:"
)
"""A row of nvidia-smi's table or of its CSV."""
_PCI = re.compile(
    r"(?:PCI:)?(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([0-9a-f]{2})(?:\.[0-7])?:?", re.IGNORECASE
)
_UUID = re.compile(r"(?:GPU-)?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})", re.IGNORECASE)
"""Exporters cut the beginning off that the driver prints."""
_CARD = re.compile(
    r"(?i)(?:\bcuda:|\b(?:gpu|device)(?: ?[=:#] ?| )|\blocal[ _-]?rank(?:\"?: ?| ?[=:] ?| ))"
    r"(\d{1,2})\b"
)
_LOCAL = re.compile(r"\brank {1,10}: (?P<rank>\d{1,6}) \(local_rank: (?P<local>\d{1,3})\)")
BESIDE = 6
"""Lines of torchrun's summary that tell of one process."""
Address = tuple[int, int, int]
SAME = timedelta(minutes=1)
"""What the runtime and the kernel of one host say of one error lies within seconds."""


def address(text: str) -> Address | None:
    """Domain, bus and device, however they are spelled: `PCI:0000:bd:00`, `00000000:BD:00.0`."""
    found = _PCI.fullmatch(text)
    return found and (int(found[1] or "0", 16), int(found[2], 16), int(found[3], 16))


def bus_id(digits: str) -> Address:
    """NCCL's: the same digits without what stands between them, and the function behind."""
    number = int(digits, 16) >> 4
    return number >> 16, number >> 8 & 0xFF, number & 0xFF


def _uuid(text: str) -> str | None:
    found = _UUID.fullmatch(text)
    return found and found[1].lower()


def numbered(facts: Facts, found: Finding) -> Finding:
    """A finding with the index of each GPU that it names by its address alone, where told."""
    culprits, shows = [], list(found.shows)
    for place in found.culprits:
        by_uuid = place.gpu is not None and _uuid(place.gpu) is not None
        told = _told(facts, place) if place.gpu is None or by_uuid else None
        if told is not None:
            index, why = told
            place = replace(place, gpu=index)
            shows.append(why)
        culprits.append(place)
    return replace(found, culprits=tuple(culprits), shows=tuple(shows))


def carded(facts: Facts, found: Finding) -> Finding:
    """A finding whose one culprit is a rank, with that rank's card where NCCL or the ranks
    themselves said which one it has, or its index where an exporter gives but the UUID; as it is
    where that is not known."""
    place = found.culprits[0] if len(found.culprits) == 1 else Place()
    named = place.device is not None if place.gpu is None else _uuid(place.gpu) is None
    if place.rank is None or named:
        return found
    said = _of_a_rank(facts, place) or _as_it_says(facts, place) or _as_started(facts, place)
    said = said or _as_shared_out(facts, place)
    if said is None:
        return found
    host, card, why = said
    culprit = replace(place, host=host, gpu=card, device=place.device or place.gpu)
    return replace(found, culprits=(culprit,), shows=(*found.shows, why))


def _of_a_rank(facts: Facts, place: Place) -> tuple[str, str, Claim] | None:
    """Host and card of a rank, as NCCL counts them."""
    told = communicating(facts.matches, facts.hosts, facts.ranks, facts.world_size)
    said = {(facts.node_of(at.host), at.gpu, bus): cite for at, bus, cite in told
            if at.rank == place.rank and at.host}  # fmt: skip
    ((host, card, bus), cite) = next(iter(said.items()), ((None, None, ""), None))
    if cite is None or host is None or len(said) > 1 or card is None:
        return None
    labelled = {index for index, _ in _by_labels(facts, host, bus_id(bus))}
    sound = labelled == {card} if labelled else _counts_alike(facts, host, card)
    if not sound or place.host not in (None, host):
        return None
    return host, card, claim(f"NCCL counts card {card} of {host} as rank {place.rank}", cite)


def _as_it_says(facts: Facts, place: Place) -> tuple[str, str, Claim] | None:
    """The same by the line in which it names its host, where every rank of that host names a card
    in its own, and together they are all that were read of it: none is numbered anew."""
    host = facts.on_host(place).host
    cards: dict[int, tuple[str, Cite]] = {}
    for match in facts.matches:
        said = _CARD.search(match.cite.text) if match.signature.id in OF_A_LINE else None
        if said is None:
            continue
        rank = int(match.groups["has_rank"])
        if facts.on_host(Place(rank=rank)).host == host:
            cards[rank] = said[1], match.cite
    told = sorted(card for card, _ in cards.values())
    if host is None or place.rank not in cards or told != sorted(cards_read(facts, host)):
        return None
    card, cite = cards[place.rank]
    return host, card, claim(f"Rank {place.rank} says that it has card {card} of {host}", cite)


def _as_shared_out(facts: Facts, place: Place) -> tuple[str, str, Claim] | None:
    """The same by a line that shares all ranks out, with as many cards of each host: one that was
    read of it, where any was."""
    host = facts.on_host(place).host
    for match in facts.matches:
        if match.signature.id != RANKS or match.attempt != facts.last.n or place.rank is None:
            continue
        said = card_by_spans(match.cite.text, place.rank)
        if host is None or said is None or facts.node_of(said[0]) != facts.node_of(host):
            continue
        read = cards_read(facts, host)
        if not read or said[1] in read:
            text = f"Rank {place.rank} has card {said[1]} of {host} by what was printed of all"
            return host, said[1], claim(text, match.cite)
    return None


def _as_started(facts: Facts, place: Place) -> tuple[str, str, Claim] | None:
    """The same by its number, where torchrun started as many ranks on each host as cards were read
    of it: each takes that of its number there."""
    host, answer = facts.on_host(place).host, read_last(facts)
    told = [one for one in facts.exits if one.reporter == TORCHRUN]
    own_first = sorted(told, key=lambda one: one.place.rank != place.rank)
    agent = next(iter(own_first), None)
    if host is None or agent is None or answer is None or place.rank is None:
        return None
    cards = [row for row in answer.rows if row.place.gpu
             and facts.node_of(row.place.host or "") == facts.node_of(host)]  # fmt: skip
    by_uuid = all(_uuid(row.place.gpu or "") for row in cards)
    if not by_uuid and cards_read(facts, host) != {str(n) for n in range(len(cards))}:
        return None
    local = local_rank(facts, place.rank, len(cards))
    if local is None:
        return None
    own = [row for row in cards if row.place.gpu in (str(local), place.gpu)]
    read = [answer.cite(row, "that card was read") for row in own[:1]]
    text = (
        f"Rank {place.rank} is number {local} of torchrun's on {host}, of {len(cards)} cards read"
    )
    return host, str(local), claim(text, agent.cite, *read)


def local_rank(facts: Facts, rank: int, cards: int) -> int | None:
    """The number of a rank on its host, where there are as many ranks as cards there: by the
    world, or by torchrun's word on it, of a host of which more than half of the cards are used:
    those of the ranks up to it, or of as many on each node before it."""
    said = set()
    for one in facts.exits:
        if one.reporter == TORCHRUN and one.place.rank == rank:
            near = facts.lines(one.cite.source, max(1, one.cite.line - BESIDE), 2 * BESIDE)
            said |= {int(found["local"]) for text in near
                     if (found := _LOCAL.search(text)) and int(found["rank"]) == rank}  # fmt: skip
    each, rest = divmod(facts.world_size or 0, len(facts.hosts) or 1)
    if each > 1 and not rest:
        return rank % each if each == cards and said <= {rank % each} else None
    local = said.pop() if len(said) == 1 else -1
    nodes = () if facts.job is None else facts.job.nodes
    before = (rank - local) / (len(nodes) - 1) if len(nodes) > 1 else 0
    used = max(local, before - 1)
    return local if 0 <= local < cards and cards / 2 <= used < cards else None


def by_kernel(facts: Facts, found: Finding) -> Finding:
    """A finding whose one culprit is a rank that names no card, with the one of its host that the
    kernel tells of in the same minute."""
    place = found.culprits[0] if len(found.culprits) == 1 else Place()
    at, host = found.onset, facts.on_host(place).host
    if place.rank is None or place.gpu is not None or place.device is not None:
        return found
    if at is None or host is None:
        return found
    said = {
        match.cite.place.device: match.cite
        for match in reversed(facts.matches)
        if match.signature.family == found.code
        and match.signature.role == "root"
        and match.cite.place.device is not None
        and facts.node_of(match.cite.place.host or "") == facts.node_of(host)
        and match.cite.at is not None
        and abs(match.cite.at - at) <= SAME
    }
    if len(said) != 1:
        return found
    ((device, cite),) = said.items()
    shows = claim(f"The kernel of {host} tells of {device} then", cite)
    named = replace(place, host=host, device=device)
    return numbered(facts, replace(found, culprits=(named,), shows=(*found.shows, shows)))


def _told(facts: Facts, place: Place) -> tuple[str, Claim] | None:
    wanted = None if place.device is None else address(place.device)
    if wanted is None or place.host is None:
        return None
    labelled = dict(_by_labels(facts, place.host, wanted))
    indexed = {index: cite for index, cite in labelled.items() if _uuid(index) is None}
    said = dict(_by_nccl(facts, place.host, wanted)) | indexed
    said = said or dict(_by_lists(facts, place.host, wanted)) or labelled
    if len(said) != 1:
        return None
    ((index, cite),) = said.items()
    if not labelled and not _counts_alike(facts, place.host, index):
        return None
    return index, claim(f"{place.device} of {place.host} is its GPU {index}", cite)


def _by_nccl(facts: Facts, host: str, wanted: Address) -> Iterator[tuple[str, Cite]]:
    for match in facts.matches:
        index = match.groups.get("nvml")
        if match.signature.id != COMMUNICATOR or index is None or match.cite.place.host is None:
            continue
        same = bus_id(match.groups.get("bus", "0")) == wanted
        if same and facts.node_of(match.cite.place.host) == facts.node_of(host):
            yield index, match.cite


def _by_lists(facts: Facts, host: str, wanted: Address) -> Iterator[tuple[str, Cite]]:
    """What a tool's list says of that host, which counts all GPUs that were read of it: a job
    that was given some of them sees those alone."""
    uuids = _uuids(facts, host, wanted)
    indexes: set[str] = set()
    found: dict[str, Cite] = {}
    for match in facts.matches:
        if match.signature.id not in LISTED or facts.node_of(_printed_on(facts, match)) != (
            facts.node_of(host)
        ):
            continue
        said, index = match.groups, match.groups.get("gpu")
        if index is None and (row := _OF_ROW.search(match.cite.text)):
            index = row[1]
        if index is None and (
            above := _OF_LIST.match(facts.text(match.cite.source, match.cite.line - 1))
        ):
            index = above[1]
        if index is None:
            continue
        indexes.add(index)
        if (
            address(said.get("device", "")) == wanted
            or (_uuid(said.get("uuid", "")) or "") in uuids
        ):
            found[index] = match.cite
    read, by_uuid = cards_read(facts, host), _uuids_read(facts, host)
    counted = set(map(str, range(len(by_uuid or indexes))))
    if indexes == (read or counted):
        yield from found.items()


def _printed_on(facts: Facts, match: Match) -> str:
    """The host that a line was printed on or its file is named after; one alone has no other."""
    alone = facts.hosts[0] if len(facts.hosts) == 1 else ""
    return match.cite.place.host or named_after(match.cite.source, facts.hosts) or alone


def _counts_alike(facts: Facts, host: str, index: str) -> bool:
    """Whether nothing speaks against an index of NVML's: the GPUs that were read of the host are
    not known by index, or are counted from 0 and have it."""
    read = cards_read(facts, host)
    return not read or (index in read and read == set(map(str, range(len(read)))))


def cards_read(facts: Facts, host: str) -> set[str]:
    """The indexes of the GPUs that were read of a host."""
    answer = read_last(facts)
    return {
        row.place.gpu
        for row in (() if answer is None else answer.rows)
        if row.place.gpu is not None
        and row.place.gpu.isdecimal()
        and facts.node_of(row.place.host or "") == facts.node_of(host)
    }


def _uuids_read(facts: Facts, host: str) -> set[str]:
    """The cards of a host that an exporter gives by their UUIDs alone."""
    answer = read_last(facts)
    return {
        row.place.gpu
        for row in (() if answer is None else answer.rows)
        if row.place.gpu is not None
        and _uuid(row.place.gpu) is not None
        and facts.node_of(row.place.host or "") == facts.node_of(host)
    }


def read_last(facts: Facts) -> Answer | None:
    """A signal of every GPU, as it was read last."""
    signal = next(filter(facts.measured, SIGNALS), None)
    if signal is None or facts.window is None:
        return None
    span_s = max(1, int((facts.window[1] - facts.window[0]).total_seconds()))
    return instant(facts, f"last_over_time({signal}[{span_s}s])", facts.window[1].timestamp())


def _by_labels(facts: Facts, host: str, wanted: Address) -> Iterator[tuple[str, Cite]]:
    """What the labels of a series say, by the address or by the UUID that the kernel gave it."""
    uuids, answer = _uuids(facts, host, wanted), read_last(facts)
    if answer is None:
        return
    for row in answer.rows:
        at = row.place
        if at.gpu is None or facts.node_of(at.host or "") != facts.node_of(host):
            continue
        for label in row.native.values():
            if address(label) == wanted or (_uuid(label) or "") in uuids:
                yield at.gpu, answer.cite(row, f"its labels say {label}")


def _uuids(facts: Facts, host: str, wanted: Address) -> set[str | None]:
    """That of the GPU at an address, as the kernel gave it."""
    return {_uuid(m.groups["uuid"]) for m in facts.matches
            if m.signature.id == NAMED and address(m.groups.get("device", "")) == wanted
            and facts.node_of(m.cite.place.host or "") == facts.node_of(host)}  # fmt: skip
