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

from flatline.judging.recorder_views import (
    Group,
    View,
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
    `complete` holds where every rank of the world left a dump that could be read; the others are
    `missing_ranks`.  `since` is when the oldest operation still pending was enqueued, by the
    clock of the host that did.
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
    missing = _missing(by_rank, groups, world_size)
    found = _answer(by_rank, groups, bool(missing))
    waiting = tuple(
        rank for rank, dump in by_rank.items() if not idle(dump) and rank not in found.ranks
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
        complete=not missing,
        missing_ranks=missing,
        since=_since(by_rank[rank] for rank in waiting),
    )


def _missing(
    by_rank: Mapping[int, Dump], groups: Iterable[Group], world_size: int | None
) -> tuple[int, ...]:
    named = {rank for group in groups for rank in group.members}
    world = named | set(range(max(by_rank) + 1)) | set(range(world_size or 0))
    return tuple(sorted(world - by_rank.keys()))


def _since(dumps: Iterable[Dump]) -> datetime | None:
    times = [e.at for dump in dumps for e in dump.entries if e.pending and e.at is not None]
    return min(times, default=None)


def _answer(by_rank: Mapping[int, Dump], groups: Sequence[Group], partial: bool) -> _Found:
    if all(idle(dump) for dump in by_rank.values()):
        return _Found((), None, (), "no rank has a collective pending")
    apart = _apart(groups)
    if apart is not None:
        return apart
    mismatches = [found for group in groups if (found := _mismatch(group))]
    if mismatches:
        return min(mismatches, key=lambda found: not found.ranks)
    waits = _waits(groups)
    stopped = _stopped(by_rank, groups, waits, partial)
    behind = _behind(by_rank, groups)
    if stopped or behind:
        return _named(by_rank, groups, waits, stopped, behind)
    return _unnamed(by_rank, groups, waits)


# --- dumps that do not fit together ---


def _apart(groups: Iterable[Group]) -> _Found | None:
    """
    A rank left a collective that another has not entered: the two dumps are of different times.

    That is impossible at one instant but for operations that one rank may leave early.
    """
    for group in groups:
        views = [v for v in group.views.values() if v.enqueued is not None and v.countable]
        for ahead in views:
            for late in views:
                if ahead.done is None or late.enqueued is None or ahead.done <= late.enqueued:
                    continue
                between = [e for e in ahead.collectives if late.enqueued < e.seq <= ahead.done]
                if len(between) < ahead.done - late.enqueued or any(
                    entry.op not in _ONE_SIDED for entry in between
                ):
                    text = (
                        f"rank {ahead.rank} completed collective {ahead.done} of group {group}, "
                        f"which rank {late.rank} had not entered when it wrote its dump: the "
                        "dumps are of different moments and cannot be compared"
                    )
                    cites = (_counter(ahead, "last_completed"), _counter(late, "last_enqueued"))
                    return _Found((), None, cites, text, group)
    return None


# --- out of step ---


def _mismatch(group: Group) -> _Found | None:
    """The first collective somebody waits in that ranks entered as different operations."""
    for seq in sorted({v.pending for v in group.views.values() if v.pending is not None}):
        entered = {rank: v.at(seq) for rank, v in group.views.items()}
        if any(len(held) > 1 for held in entered.values()):
            continue  # coalesced: which of them meets which is not recorded
        entries = {rank: held[0] for rank, held in entered.items() if held}
        sides = _sides(entries)
        if len(sides) > 1:
            return _out_of_step(group, seq, sides, entries)
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
    group: Group, seq: int, sides: list[list[int]], entries: Mapping[int, Entry]
) -> _Found:
    odd = sorted(rank for side in sides[1:] for rank in side)
    unknown = group.unseen + sum(
        1
        for rank, view in group.views.items()
        if rank not in entries and (view.enqueued or -1) >= seq
    )
    clear = len(odd) + unknown < len(sides[0])
    same_op = len({entry.op for entry in entries.values()}) == 1
    told = [f"{_ranks(side)} entered {_shape(entries[side[0]], same_op)}" for side in sides]
    text = f"as collective {seq} of group {group} " + ", ".join(told)
    if not clear:
        text += "; neither side is a clear minority"
    shown = (*(odd if clear else ())[:NAMED], *(side[0] for side in sides))
    key = "input_sizes" if same_op else "profiling_name"
    cites = tuple(_entered(group.views[rank], entries[rank], key) for rank in dict.fromkeys(shown))
    return _Found(tuple(odd) if clear else (), "mismatch", cites, text, group)


def _shape(entry: Entry, same_op: bool) -> str:
    if not same_op:
        return entry.op
    return f"{entry.op} of {_json(entry.sizes)} {' '.join(sorted(set(entry.dtypes)))}".rstrip()


# --- who waits for whom ---


def _waits(groups: Iterable[Group]) -> list[_Wait]:
    found = []
    for group in groups:
        for rank, view in group.views.items():
            if view.pending is None:
                continue
            for other, there in group.views.items():
                unknown = there.enqueued is None and idle(there.dump)
                if unknown or (there.enqueued is not None and there.enqueued < view.pending):
                    found.append(_Wait(rank, other, group))
    return found


def _stopped(
    by_rank: Mapping[int, Dump], groups: Iterable[Group], waits: Iterable[_Wait], partial: bool
) -> tuple[int, ...]:
    """Ranks that are waited for with nothing in their queue, where those that wait are as many."""
    busy = [rank for rank, dump in by_rank.items() if not idle(dump)]
    found = {wait.on for wait in waits if idle(by_rank[wait.on])}
    resting = by_rank.keys() - set(busy)
    if not partial and len(resting) < len(busy):
        # What a send waits for is not counted the same on both sides, so that it names a rank
        # only where all others are seen to wait.
        found |= _awaited_by_p2p(groups) & resting
    return tuple(sorted(found)) if len(found) <= len(busy) else ()


def _awaited_by_p2p(groups: Iterable[Group]) -> set[int]:
    return {
        peer
        for group in groups
        for rank, view in group.views.items()
        for entry in view.entries
        if entry.is_p2p and entry.pending and (peer := partner(group, rank, entry)) is not None
    }


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
    views = group.views
    if rank not in views or len(views) < 2 or not any(v.pending for v in views.values()):
        return None
    own = views[rank]
    if own.pending is None:
        return False
    if own.waits_in is not None and own.waits_in.op in _ONE_SIDED:
        return None
    return any(v.done is not None and v.done >= own.pending for v in views.values())


# --- the answer in words ---


def _named(
    by_rank: Mapping[int, Dump],
    groups: Sequence[Group],
    waits: Sequence[_Wait],
    stopped: tuple[int, ...],
    behind: tuple[int, ...],
) -> _Found:
    kind: Kind = "missing" if stopped and behind else "host" if stopped else "device"
    cites: list[DumpCite] = []
    told: list[str] = []
    first: Group | None = None
    for rank in stopped[:NAMED]:
        wait = next((wait for wait in waits if wait.on == rank), None)
        cites.append(_nothing_pending(rank, by_rank[rank]))
        if wait is None:
            continue
        first = first or wait.group
        cites += [_counter(wait.group.views[rank], "last_enqueued"), _waiter(wait)]
    if stopped:
        where = f" what the others wait in in group {first}" if first else " what is waited for"
        told.append(f"{_ranks(stopped)} never entered{where} and had nothing pending")
    for rank in behind[:NAMED]:
        group = next(group for group in groups if _lags(group, rank))
        first = first or group
        ahead = max(group.views.values(), key=lambda view: (view.done or -1, -view.rank))
        cites += [_left(group.views[rank]), _left(ahead)]
    if behind:
        told.append(f"{_ranks(behind)} entered collectives that peers completed and did not")
    ranks = tuple(sorted({*stopped, *behind}))
    return _Found(ranks, kind, tuple(dict.fromkeys(cites)), "; ".join(told), first)


def _unnamed(
    by_rank: Mapping[int, Dump], groups: Sequence[Group], waits: Sequence[_Wait]
) -> _Found:
    busy = [rank for rank, dump in by_rank.items() if not idle(dump)]
    pairs = {(wait.rank, wait.on): wait for wait in waits}
    for (rank, on), wait in pairs.items():
        back = pairs.get((on, rank))
        if back is not None and back.group != wait.group:
            text = (
                f"rank {rank} waits for rank {on} in group {wait.group}, and rank {on} for rank "
                f"{rank} in group {back.group}: they entered the two in different order"
            )
            return _Found((), "mismatch", (_waiter(wait), _waiter(back)), text, wait.group)
    if waits:
        wait = waits[0]
        awaited = sorted({each.on for each in waits})
        text = f"{_ranks(busy)} have collectives pending that {_ranks(awaited)} did not enter"
        cites = (_waiter(wait), _counter(wait.group.views[wait.on], "last_enqueued"))
        return _Found((), "missing", cites, text, wait.group)
    text = f"{_ranks(busy)} entered the same collectives, and none of them completes"
    for group in groups:
        for view in group.views.values():
            if view.waits_in is not None:
                cite = _entered(view, view.waits_in, "profiling_name")
                return _Found((), None, (cite,), text, group)
    return _Found((), None, (), f"{_ranks(busy)} have operations pending")


# --- citations ---


def _counter(view: View, field: Literal["last_enqueued", "last_completed"]) -> DumpCite:
    """A counter of the group, or where the dump has none the entry it would come from."""
    status = view.status
    value = status.last_enqueued if field == "last_enqueued" else status.last_completed
    if value is None and view.collectives:
        left = [e for e in view.collectives if field == "last_enqueued" or not e.pending]
        return _entered(view, (left or view.collectives)[-1], "collective_seq_id")
    verb = "entered" if field == "last_enqueued" else "completed"
    return DumpCite(
        source=view.dump.source,
        pointer=f"group {status}, {field}",
        value=value,
        text=f"rank {view.rank} {verb} collective {value} of group {status} last",
        place=Place(rank=view.rank),
    )


def _left(view: View) -> DumpCite:
    return _counter(view, "last_completed")


def _nothing_pending(rank: int, dump: Dump) -> DumpCite:
    return DumpCite(
        source=dump.source,
        pointer="entries, pending",
        value=dump.pending,
        text=f"rank {rank} has no operation pending",
        place=Place(rank=rank),
    )


def _waiter(wait: _Wait) -> DumpCite:
    view = wait.group.views[wait.rank]
    if view.waits_in is None:
        return _left(view)
    return _entered(view, view.waits_in, "profiling_name")


def _entered(
    view: View,
    entry: Entry,
    key: Literal["profiling_name", "input_sizes", "collective_seq_id"],
) -> DumpCite:
    values = {
        "profiling_name": entry.profiling_name,
        "input_sizes": _json(entry.sizes),
        "collective_seq_id": entry.seq,
    }
    verb = "waits in" if entry.pending else "completed"
    return DumpCite(
        source=view.dump.source,
        pointer=f"entry {entry.record_id}, {key}",
        value=values[key],
        text=f"rank {view.rank} {verb} {entry.op}, collective {entry.seq} of group {view.status}",
        place=Place(rank=view.rank),
        at=entry.at,
    )


def _json(sizes: tuple[tuple[int, ...], ...]) -> str:
    return "[" + ", ".join(f"[{', '.join(map(str, shape))}]" for shape in sizes) + "]"


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
