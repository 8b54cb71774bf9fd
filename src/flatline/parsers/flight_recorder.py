"""
Flight-recorder dumps of PyTorch's process groups, as pickle or JSON.

Every process keeps the last collectives it entered (2 000 by default) and writes them when its
watchdog gives up, one file a rank.  Read are versions 2.x; keys this reader does not know are
passed over, since a minor version only adds some.

What a reader trips over: `pg_status` is keyed by numbers that each process gives its groups for
itself; `ranks` is a list written as a string; JSON spells counters as strings; `nccl_version`
became `comm_lib_version`; Gloo leaves every state at "scheduled" and shows completion by
`retired` alone, and its `pg_config` names no group.

Source: torch/csrc/distributed/c10d/FlightRecorder.hpp and FlightRecorderDetail.hpp.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import orjson

from flatline.errors import FormatError
from flatline.judging.recorder_cites import values
from flatline.model.dumps import Dump, Entry, GroupStatus
from flatline.model.evidence import Scalar
from flatline.parsers._pickle import MAX_BYTES, read_pickle
from flatline.redact import mask

FORMAT = "flight-recorder"
KEPT_PER_GROUP = 64
"""Entries of a group kept beside those pending: ranks that wait for each other are rarely further
apart than the operations a program enqueues ahead."""
KEPT_PENDING = 4096
MAX_DIMENSIONS = 64
"""Of one tensor: PyTorch's own operators take no more (aten/src/ATen/TensorIterator.h)."""
_HEAD_BYTES = 16_384
_MARKS = re.compile(
    rb"pg_config|pg_status|collective_seq_id|comm_lib_version|p2p_seq_id|nccl_comm_state"
)
_SUFFIX = re.compile(r"\.(?:pkl|pickle|json|dump|trace|bin|txt)$", re.IGNORECASE)
_RANK = re.compile(r"(?:^|[^a-z])rank[_.\-]?(\d{1,6})(?!\d)", re.IGNORECASE)
_TRAILING = re.compile(r"(?:^|[_.\-])(\d{1,6})$")
_P2P = re.compile(r"(?:send|recv)\b")


def recognise_dump(name: str, head: bytes) -> bool:
    """Whether a file that begins so is a dump, whatever its name: there is no agreed one."""
    start = head[:_HEAD_BYTES]
    looks = start[:1] == b"\x80" or start.lstrip()[:1] == b"{" or start[:3] in (b"(dp", b"}q\x00")
    return looks and _MARKS.search(start) is not None


def rank_of_name(name: str) -> int | None:
    """
    The rank a file's name ends with (`nccl_trace_rank_3`, `_dump_12`, `fr_rank2.pkl`), or None.

    A number that is part of a word (`node7`) or of more than six digits (a date) is no rank.
    """
    stem = _SUFFIX.sub("", name.replace("\\", "/").rpartition("/")[2])
    found = _RANK.search(stem) or _TRAILING.search(stem)
    return int(found[1]) if found else None


def parse_dump(data: bytes, source: str) -> Dump:
    """
    The dump in a file. Raises `FormatError` where it is cut off, hostile or something else.

    Entries that are not understood (no operation, no sequence number) are left out.
    """
    raw = _load(data)
    rank = rank_of_name(source)
    records = [each for each in _items(raw.get("entries")) if isinstance(each, Mapping)]
    groups = _groups(raw, records, rank)
    by_id = {group.pg_id: group for group in groups}
    entries = _told_apart(
        entry for each in records if (entry := _entry(each, by_id.get(_int(each.get("pg_id")))))
    )
    return Dump(
        source=source,
        rank=rank,
        version=mask(str(raw.get("version", ""))),
        groups=groups,
        entries=_kept(entries),
        recorded=len(records),
        pending=sum(entry.pending for entry in entries),
    )


def masked_dump(data: bytes, source: str, masked: Callable[[Any], Any]) -> bytes:
    """
    The dump as JSON, `masked` applied to all it holds, which reads as the same dump.

    Raises `FormatError` where it is none, or where JSON cannot say what it says.
    """
    try:
        shown = orjson.dumps(masked(_load(data)), option=orjson.OPT_NON_STR_KEYS)
    except (TypeError, ValueError, RecursionError) as fault:
        raise FormatError("the dump holds what cannot be written as JSON") from fault
    if parse_dump(shown, source) != parse_dump(data, source):
        raise FormatError("the dump cannot be written as JSON without changing what it says")
    return shown


def resolve_dump(data: bytes, pointer: str) -> Scalar:
    """
    The value a citation points at.

    `group NAME(DESC), last_enqueued` (or `last_started`, `last_completed`); `entry RECORD_ID,
    KEY`, lists as JSON; `entries, recorded` and `entries, pending` count.  Raises `FormatError`
    where there is no such thing.
    """
    what, _, key = pointer.rpartition(", ")
    if what.startswith("entry "):
        return _field(_load(data), what[6:], key)
    dump = parse_dump(data, "")
    if what == "entries" and key in ("recorded", "pending"):
        return dump.recorded if key == "recorded" else dump.pending
    if what.startswith("group ") and key in ("last_enqueued", "last_started", "last_completed"):
        for group in dump.groups:
            if str(group) == what[6:]:
                return {
                    "last_enqueued": group.last_enqueued,
                    "last_started": group.last_started,
                    "last_completed": group.last_completed,
                }[key]
    raise FormatError(f"the dump has no {pointer!r}")


def _field(raw: Mapping[str, Any], record_id: str, key: str) -> Scalar:
    """A field of an entry, as the entry holds it where it is one that is cited: a dump may spell
    a number as a string."""
    records = [each for each in _items(raw.get("entries")) if isinstance(each, Mapping)]
    named = [each for each in records if str(_int(each.get("record_id"))) == record_id]
    groups = {group.pg_id: group for group in _groups(raw, records, None)} if named else {}
    for each in named:
        entry = _entry(each, groups.get(_int(each.get("pg_id"))))
        if entry is not None and key in (read := dict(values(entry))):
            return read[key]
    if named and key in named[0]:
        return _scalar(named[0][key])
    raise FormatError(f"the dump has no entry {record_id} with {key!r}")


def _scalar(value: object) -> Scalar:
    if isinstance(value, str):
        return mask(value)
    if value is None or isinstance(value, int | float):
        return value
    try:
        return mask(json.dumps(value))
    except (TypeError, ValueError, RecursionError):
        raise FormatError("the entry holds what cannot be written as JSON") from None


def _load(data: bytes) -> Mapping[str, Any]:
    if len(data) > MAX_BYTES:
        raise FormatError(f"a dump of {len(data)} bytes; at most {MAX_BYTES} are read")
    if data.lstrip()[:1] == b"{":
        try:
            value = orjson.loads(data)
        except orjson.JSONDecodeError as fault:
            raise FormatError(f"a flight-recorder dump that is no whole JSON: {fault}") from None
    else:
        value = read_pickle(data)
    if not isinstance(value, Mapping) or not {"entries", "pg_status"} & value.keys():
        raise FormatError("no flight-recorder dump: it has neither entries nor pg_status")
    if "version" not in value and "pg_status" not in value and not _is_entries(value["entries"]):
        raise FormatError("no flight-recorder dump: its entries are not those of a recorder")
    return value


def _is_entries(value: object) -> bool:
    first = next(iter(_items(value)), None)
    return isinstance(first, Mapping) and "record_id" in first


# --- groups ---


def _groups(
    raw: Mapping[str, Any], records: list[Mapping[str, Any]], rank: int | None
) -> tuple[GroupStatus, ...]:
    """Every group with counters or entries, by the number this process gave it."""
    config = _mapping(raw.get("pg_config"))
    status = {
        pg_id: _mapping(value)
        for key, value in _mapping(raw.get("pg_status")).items()
        if (pg_id := _int(key)) is not None
    }
    names = _named(records)
    _pair_in_order(names, status, config, rank)
    found = []
    for pg_id in sorted(status.keys() | names.keys()):
        name, desc = names.get(pg_id, ("", ""))
        listed = _mapping(config.get(name))
        if not listed and len(config) == 1 == len(status.keys() | names.keys()):
            listed = _mapping(next(iter(config.values())))  # Gloo: one group, under no name
        counters = status.get(pg_id, {})
        found.append(
            GroupStatus(
                name=mask(name),
                desc=mask(desc or str(listed.get("desc") or "")),
                ranks=_ranks(listed.get("ranks")),
                pg_id=pg_id,
                last_enqueued=_int(counters.get("last_enqueued_collective")),
                last_started=_int(counters.get("last_started_collective")),
                last_completed=_int(counters.get("last_completed_collective")),
            )
        )
    return tuple(found)


def _named(records: Iterable[Mapping[str, Any]]) -> dict[int, tuple[str, str]]:
    names: dict[int, tuple[str, str]] = {}
    for each in records:
        pg_id, said = _int(each.get("pg_id")), each.get("process_group")
        if pg_id is None or pg_id in names:
            continue
        if isinstance(said, list | tuple) and len(said) == 2:
            names[pg_id] = (str(said[0]), str(said[1]))
    return names


def _pair_in_order(
    names: dict[int, tuple[str, str]],
    status: Mapping[int, object],
    config: Mapping[str, Any],
    rank: int | None,
) -> None:
    """
    Names the groups that no entry names, where that cannot go wrong.

    Both the numbers of a process and the names of its groups count upwards in the order the
    groups were made.  They are paired only where there are as many of one as of the other, all
    names are numbers, and no entry contradicts the pairing.
    """
    own = [
        name
        for name, value in config.items()
        if not (ranks := _ranks(_mapping(value).get("ranks"))) or rank is None or rank in ranks
    ]
    if len(own) != len(status) or not all(name.isdecimal() for name in own):
        return
    pairs = dict(zip(sorted(status), sorted(own, key=int), strict=True))
    if any(pg_id in pairs and pairs[pg_id] != name for pg_id, (name, _) in names.items()):
        return
    for pg_id, name in pairs.items():
        names.setdefault(pg_id, (name, str(_mapping(config[name]).get("desc") or "")))


def _ranks(value: object) -> tuple[int, ...]:
    """`[0, 1]`, whether a list or one written as a string."""
    if isinstance(value, str):
        return tuple(int(number) for number in re.findall(r"\d{1,7}", value))
    return tuple(n for each in _items(value) if (n := _int(each)) is not None)


# --- entries ---


def _entry(raw: Mapping[str, Any], group: GroupStatus | None) -> Entry | None:
    name = raw.get("profiling_name")
    if not isinstance(name, str) or group is None:
        return None
    backend, colon, op = name.partition(":")
    if not colon:
        backend, op = "", name
    is_p2p = raw["is_p2p"] is True if "is_p2p" in raw else _P2P.match(op) is not None
    seq = _int(
        raw.get("p2p_seq_id") if is_p2p else raw.get("collective_seq_id", raw.get("seq_id"))
    )
    record_id = _int(raw.get("record_id"))
    if seq is None or record_id is None:
        return None
    state, retired = str(raw.get("state", "")), raw.get("retired") is True
    return Entry(
        group=group.name,
        seq=seq,
        op=mask(op),
        sizes=_sizes(raw.get("input_sizes")),
        dtypes=tuple(mask(str(each)) for each in _items(raw.get("input_dtypes"))),
        state=mask(state),
        retired=retired,
        is_p2p=is_p2p,
        record_id=record_id,
        at=_instant(raw.get("time_created_ns")),
        pending=state != "completed"
        and (not retired or _timed_out(backend, is_p2p, seq, group.last_completed)),
        backend=mask(backend),
    )


def _told_apart(entries: Iterable[Entry]) -> list[Entry]:
    """The first of each record id: a recorder gives every entry its own, and citations use it."""
    kept: dict[int, Entry] = {}
    for entry in entries:
        kept.setdefault(entry.record_id, entry)
    return list(kept.values())


def _timed_out(backend: str, is_p2p: bool, seq: int, last_completed: int | None) -> bool:
    """
    Whether a retired operation that is not completed is one the watchdog gave up.

    Only NCCL marks completion in the state as well; Gloo retires what completed and says no more.
    """
    if backend != "nccl" or is_p2p:
        return False
    return last_completed is not None and seq > last_completed


def _kept(entries: list[Entry]) -> tuple[Entry, ...]:
    kept, of_group = [], dict[str, int]()
    for entry in reversed(entries):
        of_group[entry.group] = of_group.get(entry.group, 0) + 1
        if entry.pending or of_group[entry.group] <= KEPT_PER_GROUP:
            kept.append(entry)
    kept.reverse()
    pending = [entry for entry in kept if entry.pending]
    if len(pending) > KEPT_PENDING:
        cut = pending[KEPT_PENDING].record_id
        kept = [entry for entry in kept if not entry.pending or entry.record_id < cut]
    return tuple(kept)


def _sizes(value: object) -> tuple[tuple[int, ...], ...]:
    return tuple(
        tuple(n for each in islice(_items(shape), MAX_DIMENSIONS) if (n := _int(each)) is not None)
        for shape in _items(value)
    )


def _instant(value: object) -> datetime | None:
    nanoseconds = _int(value)
    if nanoseconds is None or nanoseconds <= 0:
        return None
    try:
        return datetime.fromtimestamp(nanoseconds / 1e9, UTC)
    except (OverflowError, OSError, ValueError):
        return None


# --- values as the formats spell them ---


def _int(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,19}", value):
        return int(value)
    return None


def _items(value: object) -> Iterable[Any]:
    return value if isinstance(value, list | tuple) else ()


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
