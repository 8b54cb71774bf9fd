"""
Whom the others wait for, by the flight recorders of all ranks.

A collective ends only once every rank of its group has entered it.  So a rank that is waited for
and has nothing left in its own queue was stopped in its program ("host"); a rank that entered
what its peers entered, and completes less of it, was stopped on its device ("device"); a rank
that entered something else under the same number is out of step ("mismatch").  A rank that is
waited for and itself waits is a victim, and no rank is named for having left no dump.

What dumps cannot say is whether the run had stopped when they were written: a dump asked of a run
that moves looks the same.  The caller needs other evidence of a standstill.

Measured: names exactly the two ranks injected in each of the four cases of 16 ranks that NVIDIA
publishes with nvidia-resiliency-ext (tests/attribution/unit/fr_traces), and the rank in two hangs
of four Gloo ranks.  The rules were chosen after looking at these, so that is no estimate of how
often they are right.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from flatline.judging.recorder_cites import Key, counter, entered, nothing_pending, values
from flatline.judging.recorder_views import (
    Group,
    View,
    busy,
    groups_of,
    idle,
    one_per_rank,
    partner,
)
from flatline.model.dumps import Dump, Entry
from flatline.model.evidence import DumpCite, Place

Kind = Literal["mismatch", "missing", "device", "host"]

BEHIND_RATIO = 0.5
"""Of its groups with anything pending, those in which a rank completed less than a peer: a device
that stands still is behind in all, a late watchdog in one (in-sample, see above)."""
NAMED = 8
_ONE_SIDED = frozenset(
    {"broadcast", "_broadcast_oop", "reduce", "_reduce_oop", "gather", "scatter", "send", "recv"}
)
"""Operations that one rank may leave before the others enter."""
_SAME_COUNT = frozenset(
    {"all_reduce", "allreduce_coalesced", "broadcast", "_all_gather_base", "_reduce_scatter_base"}
)
"""Operations whose inputs must hold as many elements, of the same type, on every rank (NCCL user
guide, "Collective Operations"; the list variants may differ and are not compared)."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """
    What the dumps of a run say together.

    `culprits` is empty where nothing points at few enough ranks; `kind` is then what was seen,
    and None where all ranks agree.  "missing" is a rank that is waited for, with program and
    device both possible.  `waiting` are the ranks with something pending that are not culprits.
    `complete` holds where the size of the world is known and every rank of it left a dump that
    could be read; those known to be absent are `missing_ranks`.  `since` is when the oldest
    operation still pending was enqueued, by the clock of the host that did.
    """

    culprits: tuple[Place, ...]
    kind: Kind | None
    cites: tuple[DumpCite, ...]
    text: str
    group: str
    waiting: tuple[int, ...]
    complete: bool
    missing_ranks: tuple[int, ...]
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class _Found:
    """An answer before it is told which ranks are missing."""

    ranks: tuple[int, ...]
    kind: Kind | None
    cites: tuple[DumpCite, ...]
    text: str
    group: Group | None = None


@dataclass(frozen=True, slots=True)
class _Wait:
    """`rank` waits in a collective of `group` that `on` has not entered."""

    rank: int
    on: int
    group: Group


def analyse(dumps: Sequence[Dump], world_size: int | None = None) -> Recorded | None:
    """
    Compares the dumps of all ranks; None where no dump is of a known rank.

    `world_size` may be said where the dumps do not: Gloo's name no members.
    """
    by_rank = one_per_rank(dumps)
    if not by_rank:
        return None
    groups = groups_of(by_rank)
    missing, complete = _missing(by_rank, groups, world_size)
    found = _answer(by_rank, groups, missing, complete)
    waiting = tuple(
        rank for rank, dump in by_rank.items() if busy(dump) and rank not in found.ranks
    )
    text = found.text
    if missing:
        text += f"; {_ranks(missing)} left no dump, which says nothing of them"
    return Recorded(
        culprits=tuple(Place(rank=rank) for rank in found.ranks),
        kind=found.kind,
        cites=found.cites,
        text=text,
        group=str(found.group) if found.group else "",
        waiting=waiting,
        complete=complete,
        missing_ranks=missing,
        since=_since(by_rank[rank] for rank in waiting),
    )


def _missing(
    by_rank: Mapping[int, Dump], groups: Iterable[Group], world_size: int | None
) -> tuple[tuple[int, ...], bool]:
    """The ranks known to have left no dump, and whether that is known to be all."""
    named = {rank for group in groups for rank in group.members}
    # A number in a file's name may be no rank: more than the dumps there are is not believed.
    highest = max(by_rank) + 1 if max(by_rank) < 2 * len(by_rank) + 8 else 0
    world = named | set(range(highest)) | set(range(world_size or 0))
    missing = tuple(sorted(world - by_rank.keys()))
    known = world_size is not None or named >= by_rank.keys()
    return missing, known and not missing


def _since(dumps: Iterable[Dump]) -> datetime | None:
    times = [e.at for dump in dumps for e in dump.entries if e.pending and e.at is not None]
    return min(times, default=None)


def _answer(
    by_rank: Mapping[int, Dump], groups: Sequence[Group], missing: tuple[int, ...], complete: bool
) -> _Found:
    if not any(busy(dump) for dump in by_rank.values()):
        return _Found((), None, (), "no rank has a collective pending")
    if len(by_rank) == 1:
        return _Found((), None, (), f"only {_ranks(list(by_rank))} left a dump")
    apart = _apart(groups)
    if apart is not None:
        return apart
    mismatches = [found for group in groups if (found := _mismatch(group, missing))]
    if mismatches:
        return min(mismatches, key=lambda found: not found.ranks)
    waits = _waits(by_rank, groups)
    stopped = _stopped(by_rank, waits, _awaited_by_p2p(groups) if complete else {})
    behind = _behind(by_rank, groups)
    if stopped or behind:
        return _named(by_rank, groups, stopped, behind)
    return _unnamed(by_rank, groups, waits)


# --- dumps that do not fit together ---


def _apart(groups: Iterable[Group]) -> _Found | None:
    """
    A rank left a collective that another has not entered: the two dumps are of different times.

    That is impossible at one instant but for operations that one rank may leave early.
    """
    for group in (group for group in groups if group.active):
        views = [v for v in group.views.values() if v.enqueued is not None and v.countable]
        late = min(views, key=lambda view: (view.enqueued or 0, view.rank), default=None)
        for ahead in views:
            if late is None or not _left_alone(ahead, late):
                continue
            text = (
                f"rank {ahead.rank} completed collective {ahead.done} of group {group}, which "
                f"rank {late.rank} had not entered when it wrote its dump: the dumps are of "
                "different moments and cannot be compared"
            )
            cites = (counter(ahead, "last_completed"), counter(late, "last_enqueued"))
            return _Found((), None, cites, text, group)
    return None


def _left_alone(ahead: View, late: View) -> bool:
    """Whether one rank left what nobody can leave before the other has entered it."""
    if ahead.done is None or late.enqueued is None or ahead.done <= late.enqueued:
        return False
    between = [e for e in ahead.collectives if late.enqueued < e.seq <= ahead.done]
    return len(between) < ahead.done - late.enqueued or any(
        entry.op not in _ONE_SIDED for entry in between
    )


# --- out of step ---


def _mismatch(group: Group, missing: tuple[int, ...]) -> _Found | None:
    """The first collective somebody waits in that ranks entered as different operations."""
    for seq in sorted({v.pending for v in group.views.values() if v.pending is not None}):
        seen = {rank: v.at(seq) for rank, v in group.views.items()}
        if any(len(held) > 1 for held in seen.values()):
            continue  # coalesced: which of them meets which is not recorded
        entries = {rank: held[0] for rank, held in seen.items() if held}
        sides = _sides(entries)
        if len(sides) > 1:
            unseen = group.unseen if group.members else len(missing)
            return _out_of_step(group, seq, sides, entries, unseen)
    return None


def _sides(entries: Mapping[int, Entry]) -> list[list[int]]:
    """Ranks by what they entered, the largest side first."""
    same_op = len({entry.op for entry in entries.values()}) == 1
    sides: dict[tuple[object, ...], list[int]] = {}
    for rank, entry in entries.items():
        key: tuple[object, ...] = (entry.op,)
        if same_op and entry.op in _SAME_COUNT:
            key = (entry.op, sum(map(math.prod, entry.sizes)), entry.dtypes)
        sides.setdefault(key, []).append(rank)
    return sorted(sides.values(), key=lambda side: (-len(side), side))


def _out_of_step(
    group: Group, seq: int, sides: list[list[int]], entries: Mapping[int, Entry], unseen: int
) -> _Found:
    odd = sorted(rank for side in sides[1:] for rank in side)
    unknown = unseen + sum(
        1
        for rank, view in group.views.items()
        if rank not in entries and (view.enqueued or -1) >= seq
    )
    clear = len(odd) + unknown < len(sides[0])
    key = _difference(entries.values())
    told = [f"{_ranks(side)} entered {_shape(entries[side[0]], key)}" for side in sides]
    text = f"as collective {seq} of group {group} " + ", ".join(told)
    if not clear:
        text += "; neither side is a clear minority"
    shown = (*(odd if clear else ())[:NAMED], *(side[0] for side in sides[:NAMED]))
    cites = tuple(entered(group.views[rank], entries[rank], key) for rank in dict.fromkeys(shown))
    return _Found(tuple(odd) if clear else (), "mismatch", cites, text, group)


def _difference(entries: Iterable[Entry]) -> Key:
    ops, sizes = set(), set()
    for entry in entries:
        ops.add(entry.op)
        sizes.add(sum(map(math.prod, entry.sizes)))
    return (
        "profiling_name" if len(ops) > 1 else "input_sizes" if len(sizes) > 1 else "input_dtypes"
    )


def _shape(entry: Entry, key: Key) -> str:
    if key == "profiling_name":
        return entry.op
    return f"{entry.op} of {values(entry)[key]}"


# --- who waits for whom ---


def _waits(by_rank: Mapping[int, Dump], groups: Iterable[Group]) -> list[_Wait]:
    """
    Every wait for a rank that has not entered what is waited in, by the ranks that wait.

    A rank of which it is not known how far it came is waited for where it has nothing pending
    and all others of the group have.
    """
    found = []
    for group in groups:
        waiting = [view for view in group.views.values() if view.pending is not None]
        reach = max((view.pending or 0 for view in waiting), default=0)
        known = [view for view in group.views.values() if view.enqueued is not None]
        late = [view for view in known if (view.enqueued or 0) < reach]
        found += [
            _Wait(view.rank, there.rank, group)
            for view in waiting
            for there in late
            if (there.enqueued or 0) < (view.pending or 0)
        ]
        unsaid = {*group.members, *group.views} - {view.rank for view in known}
        resting = [rank for rank in sorted(unsaid) if rank in by_rank and idle(by_rank[rank])]
        if waiting and len(waiting) == len(known):
            found += [_Wait(view.rank, rank, group) for view in waiting for rank in resting]
    return found


def _stopped(
    by_rank: Mapping[int, Dump],
    waits: Iterable[_Wait],
    by_p2p: Mapping[int, DumpCite],
) -> dict[int, tuple[DumpCite, ...]]:
    """
    Ranks that are waited for with nothing in their queue, with who waits for them in what.

    None where they are more than those that wait: then the few may be out of step.
    """
    working = [rank for rank, dump in by_rank.items() if busy(dump)]
    found: dict[int, tuple[DumpCite, ...]] = {}
    for wait in waits:
        if wait.on in found or not idle(by_rank[wait.on]):
            continue
        there = wait.group.views.get(wait.on)
        came = there is not None and there.enqueued is not None
        own = (counter(there, "last_enqueued"),) if there is not None and came else ()
        found[wait.on] = (*own, _waiter(wait))
    resting = by_rank.keys() - set(working)
    if len(resting) < len(working):
        # What a send waits for is not counted the same on both sides, so that it names a rank
        # only where all others are seen to wait.
        for rank in sorted(by_p2p.keys() & resting - found.keys()):
            if idle(by_rank[rank]):
                found[rank] = (by_p2p[rank],)
    return dict(sorted(found.items())) if len(found) <= len(working) else {}


def _awaited_by_p2p(groups: Iterable[Group]) -> dict[int, DumpCite]:
    """Ranks with which a send or receive is pending, each with one that is."""
    found: dict[int, DumpCite] = {}
    for group in groups:
        for rank, view in group.views.items():
            for entry in view.entries:
                if not (entry.is_p2p and entry.pending):
                    continue
                peer = partner(group, rank, entry)
                if peer is not None and peer not in found:
                    found[peer] = entered(view, entry, "profiling_name")
    return found


def _behind(by_rank: Mapping[int, Dump], groups: Sequence[Group]) -> tuple[int, ...]:
    """Ranks that did not complete what a peer did, in at least half of their active groups."""
    found = []
    for rank in by_rank:
        verdicts = [said for group in groups if (said := _lags(group, rank)) is not None]
        if any(verdicts) and sum(verdicts) >= BEHIND_RATIO * len(verdicts):
            found.append(rank)
    return tuple(found) if 2 * len(found) <= len(by_rank) else ()


def _lags(group: Group, rank: int) -> bool | None:
    """Whether a rank waits in what a peer completed; None where nobody waits in this group."""
    own, furthest = group.views.get(rank), group.furthest
    if own is None or not group.active or len(group.views) < 2:
        return None
    if own.pending is None or furthest is None:
        return False
    if own.waits_in is not None and own.waits_in.op in _ONE_SIDED:
        return None
    return (furthest.done or 0) >= own.pending


# --- the answer in words ---


def _named(
    by_rank: Mapping[int, Dump],
    groups: Sequence[Group],
    stopped: Mapping[int, tuple[DumpCite, ...]],
    behind: tuple[int, ...],
) -> _Found:
    kind: Kind = "missing" if stopped and behind else "host" if stopped else "device"
    cites: list[DumpCite] = []
    told: list[str] = []
    for rank in list(stopped)[:NAMED]:
        cites += [nothing_pending(rank, by_rank[rank]), *stopped[rank]]
    if stopped:
        last = next(iter(stopped.values()))[-1]
        told.append(f"{_ranks(tuple(stopped))} had nothing pending and did not enter what others "
                    f"wait in: {last.text}")  # fmt: skip
    for rank in behind[:NAMED]:
        group = next(group for group in groups if _lags(group, rank))
        ahead = group.furthest or group.views[rank]
        cites += [counter(view, "last_completed") for view in (group.views[rank], ahead)]
    if behind:
        told.append(f"{_ranks(behind)} did not complete collectives that they had entered and "
                    "their peers completed")  # fmt: skip
    ranks = tuple(sorted({*stopped, *behind}))
    where = next((g for g in groups if g.active and ranks[0] in {*g.views, *g.members}), None)
    return _Found(ranks, kind, tuple(dict.fromkeys(cites)), "; ".join(told), where)


def _unnamed(
    by_rank: Mapping[int, Dump], groups: Sequence[Group], waits: Sequence[_Wait]
) -> _Found:
    working = _ranks([rank for rank, dump in by_rank.items() if busy(dump)])
    pairs = {(wait.rank, wait.on): wait for wait in waits}
    for (rank, on), wait in pairs.items():
        back = pairs.get((on, rank))
        if back is not None and back.group is not wait.group:
            text = (
                f"rank {rank} waits for rank {on} in group {wait.group}, and rank {on} for rank "
                f"{rank} in group {back.group}: they entered the two in different order"
            )
            return _Found((), "mismatch", (_waiter(wait), _waiter(back)), text, wait.group)
    if waits:
        wait = waits[0]
        awaited = _ranks(sorted({each.on for each in waits}))
        text = f"collectives are pending on {working} that {awaited} did not enter"
        return _Found((), "missing", (_waiter(wait),), text, wait.group)
    for group in groups:
        for view in group.views.values():
            if view.waits_in is not None:
                text = f"what is pending on {working} was entered by all others that left a dump"
                cite = entered(view, view.waits_in, "profiling_name")
                return _Found((), None, (cite,), text, group)
    return _Found((), None, (), f"operations are pending on {working}")


def _waiter(wait: _Wait) -> DumpCite:
    view = wait.group.views[wait.rank]
    if view.waits_in is None:
        return counter(view, "last_completed")
    return entered(view, view.waits_in, "profiling_name")


def _ranks(ranks: Sequence[int]) -> str:
    """`rank 3`, `ranks 0-2 and 5`."""
    runs: list[list[int]] = []
    for rank in sorted(ranks):
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    told: list[str] = []
    for run in runs:
        told += [f"{run[0]}-{run[-1]}"] if len(run) > 2 else map(str, run)
    if len(told) > 2 * NAMED:
        told = [*told[: 2 * NAMED], f"others ({len(ranks)} in all)"]
    listed = " and ".join([*([", ".join(told[:-1])] if told[1:] else []), told[-1]])
    return f"rank {listed}" if len(ranks) == 1 else f"ranks {listed}"
