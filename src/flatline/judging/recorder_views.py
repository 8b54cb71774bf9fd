"""
Flight-recorder dumps laid side by side: one group, seen from every rank that left a dump.

Sequence numbers of a group mean the same on all of its ranks; everything else is put into these
terms here: how far a rank came, what it waits in, and whom it waits for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from flatline.model.dumps import Dump, Entry, GroupStatus

_PEERS = re.compile(r"(?:send|recv) *(\d{1,7}) *(?:->|<-) *(\d{1,7})")


@dataclass(frozen=True)
class View:
    """
    One rank in one group. `enqueued` is the last collective it entered, `pending` the first it
    did not leave, `done` the last one it left; None is "not said".
    """

    rank: int
    dump: Dump
    status: GroupStatus
    entries: tuple[Entry, ...]
    countable: bool

    @cached_property
    def collectives(self) -> tuple[Entry, ...]:
        return tuple(entry for entry in self.entries if not entry.is_p2p)

    @cached_property
    def enqueued(self) -> int | None:
        said = [entry.seq for entry in self.collectives]
        if self.countable and self.status.last_enqueued is not None:
            said.append(self.status.last_enqueued)
        return max((seq for seq in said if seq >= 0), default=None)

    @cached_property
    def waits_in(self) -> Entry | None:
        """The oldest collective that is pending, where the dump has its entry."""
        pending = [entry for entry in self.collectives if entry.pending]
        return min(pending, key=lambda entry: (entry.seq, entry.record_id), default=None)

    @cached_property
    def pending(self) -> int | None:
        if self.waits_in is not None:
            return self.waits_in.seq
        status = self.status
        if self.dump.recorded or not self.countable:
            return None  # entries are there and say more: Gloo's counters trail behind them
        if status.last_enqueued is None or status.last_completed is None:
            return None
        behind = status.last_enqueued > status.last_completed
        return status.last_completed + 1 if behind else None

    @cached_property
    def done(self) -> int | None:
        return self.enqueued if self.pending is None else self.pending - 1

    def at(self, seq: int) -> tuple[Entry, ...]:
        return tuple(entry for entry in self.collectives if entry.seq == seq)


@dataclass(frozen=True)
class Group:
    """A process group of several ranks. `members` is empty where no dump names them."""

    name: str
    desc: str
    members: tuple[int, ...]
    views: Mapping[int, View]

    def __str__(self) -> str:
        return f"{self.name} ({self.desc})" if self.desc else self.name

    @cached_property
    def furthest(self) -> View | None:
        """The view that left the latest collective."""
        left = [view for view in self.views.values() if view.done is not None]
        return max(left, key=lambda view: (view.done or 0, -view.rank), default=None)

    @cached_property
    def active(self) -> bool:
        """Whether anybody waits in a collective of it."""
        return any(view.pending is not None for view in self.views.values())

    @property
    def unseen(self) -> int:
        """How many of its members left no dump."""
        return len(set(self.members) - self.views.keys())


def one_per_rank(dumps: Iterable[Dump]) -> dict[int, Dump]:
    """The latest dump of every rank: the same one may lie there as pickle and as JSON."""
    best: dict[int, tuple[tuple[int, int], str, Dump]] = {}
    for dump in sorted(dumps, key=lambda dump: dump.source):
        if dump.rank is None:
            continue
        latest = max((entry.record_id for entry in dump.entries), default=-1)
        counted = sum(group.last_enqueued or 0 for group in dump.groups)
        known = best.get(dump.rank)
        if known is None or (latest, counted) > known[0]:
            best[dump.rank] = ((latest, counted), dump.source, dump)
    return {rank: best[rank][2] for rank in sorted(best)}


def groups_of(dumps: Mapping[int, Dump]) -> tuple[Group, ...]:
    """
    The groups of more than one rank, by name and members.

    A group whose members one dump does not name is taken for the one of that name which holds
    its rank; one that no dump names is left out, as its numbers mean nothing on another rank.
    """
    named: dict[str, list[tuple[int, GroupStatus]]] = {}
    for rank, dump in dumps.items():
        for status in dump.groups:
            if status.name:
                named.setdefault(status.name, []).append((rank, status))
    found = []
    for name in sorted(named, key=lambda name: (len(name), name)):
        seen = named[name]
        for members in sorted({status.ranks for _, status in seen}):
            own = [
                (rank, status)
                for rank, status in seen
                if status.ranks == members or (not status.ranks and rank in members)
            ]
            if not members:
                listed = {r for _, status in seen for r in status.ranks}
                own = [(rank, status) for rank, status in own if rank not in listed]
            if max(len(own), len(members)) > 1 and own:
                found.append(_group(name, members, own, dumps))
    return tuple(found)


def _group(
    name: str,
    members: tuple[int, ...],
    own: Sequence[tuple[int, GroupStatus]],
    dumps: Mapping[int, Dump],
) -> Group:
    entries = {rank: tuple(e for e in dumps[rank].entries if e.group == name) for rank, _ in own}
    desc = next((status.desc for _, status in own if status.desc), "")
    # A pipeline's counters count what it sends, and its stages send different amounts.
    countable = "PIPELINE" not in desc.upper() and not any(
        entry.is_p2p for held in entries.values() for entry in held
    )
    views = {rank: View(rank, dumps[rank], s, entries[rank], countable) for rank, s in own}
    return Group(name, desc, members, views)


def idle(dump: Dump) -> bool:
    """Whether nothing this process enqueued, in any group, is still to complete."""
    if dump.recorded:
        return dump.pending == 0
    return all(
        status.last_enqueued is not None
        and status.last_completed is not None
        and status.last_enqueued <= status.last_completed
        for status in dump.groups
    ) and bool(dump.groups)


def busy(dump: Dump) -> bool:
    """Whether something this process enqueued is still to complete; neither may be known."""
    return dump.pending > 0 or (
        not dump.recorded
        and any(
            status.last_enqueued is not None
            and status.last_completed is not None
            and status.last_enqueued > status.last_completed
            for status in dump.groups
        )
    )


def partner(group: Group, rank: int, entry: Entry) -> int | None:
    """The global rank a send or receive is with; its name counts within the group."""
    found = _PEERS.match(entry.op)
    if found is None:
        return None
    own, peer = int(found[1]), int(found[2])
    if group.members:
        if own < len(group.members) > peer and group.members[own] == rank:
            return group.members[peer]
        return None
    return peer if own == rank and group.desc == "default_pg" else None
