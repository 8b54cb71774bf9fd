"""
What all of Slurm's records share: states, exit codes, times, durations, resources.

Facts from Slurm's own sources (slurm_protocol_defs.c, sacct/print.c, data_parser) and sacct(1):

- "OUT_OF_MEMORY 0:125": 125 is Slurm's mark for an OOM kill, no signal (Linux has none of that
  number).  It is left out of a job's or step's `signal`; a `derived_signal` of 125 is kept,
  because without the steps it is all that says a step ran out of memory.
- sacct takes 128 off exit codes of 128 and more, so its `15:0` is exit code 143 or 15 and its
  `9:0` is 137 or 9.  The code is given as printed, without a signal; scontrol, squeue and JSON
  from Slurm 23.11 on give the true number.
- "0:53" is Slurm's word for an output file that could not be opened, printed as a signal.
- Times are printed in the local zone of whoever ran the command, without naming it.  They are
  read as UTC (`read_time`), and the modules that do so say `ZONE_ASSUMED = True`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from flatline.errors import FormatError
from flatline.logs.hostlists import expand
from flatline.model import Disposition, Job
from flatline.parsers._exits import ended

OOM_MARK = 125
LAST_SIGNAL = 64  # SIGRTMAX of Linux
_INDEXES = re.compile(r"\bgpu(?::[\w.-]{1,60}){0,2}\(IDX:(\d{1,4}(?:[-,]\d{1,4}){0,64})\)")
_PART = re.compile(r"\d{1,2}g\.\d{1,4}gb", re.IGNORECASE)
"""A profile of MIG: the indexes count parts of GPUs, and metrics count GPUs."""
MOST_GPUS = 64
"""Of a node."""
UNSET = {"", "(null)", "none", "n/a", "unknown", "unlimited", "partition_limit", "invalid"}
NO_VALUE = 0xFFFF_FFFD  # NO_VAL is ...FE, INFINITE ...FF: from here on a number is none

BASES: dict[str, Disposition] = {
    "BOOT_FAIL": "boot_fail",
    "CANCELLED": "cancelled",
    "COMPLETED": "completed",
    "DEADLINE": "deadline",
    "FAILED": "failed",
    "NODE_FAIL": "node_fail",
    "OUT_OF_MEMORY": "out_of_memory",
    "PENDING": "pending",
    "PREEMPTED": "preempted",
    "RUNNING": "running",
    "SUSPENDED": "suspended",
    "TIMEOUT": "timeout",
}
FLAGS: dict[str, Disposition] = {
    "COMPLETING": "unknown",  # it ended; how is not said until its epilogue has
    "CONFIGURING": "pending",  # nodes are being made ready, nothing of it runs
    "EXPEDITING": "pending",
    "LAUNCH_FAILED": "failed",
    "POWER_UP_NODE": "pending",
    "RECONFIG_FAIL": "failed",
    "REQUEUED": "requeued",
    "REQUEUE_FED": "requeued",
    "REQUEUE_HOLD": "requeued",
    "RESIZING": "running",
    "RESV_DEL_HOLD": "pending",
    "REVOKED": "cancelled",  # a sibling cluster of the federation took it
    "SIGNALING": "running",
    "SPECIAL_EXIT": "requeued",
    "STAGE_OUT": "unknown",
    "STOPPED": "suspended",
    "UPDATE_DB": "unknown",
}
ENDED: frozenset[Disposition] = frozenset(
    {
        "completed", "failed", "cancelled", "timeout", "node_fail", "boot_fail", "deadline",
        "preempted", "requeued", "out_of_memory",
    }
)  # fmt: skip
COMPACT = {
    "BF": "BOOT_FAIL", "CA": "CANCELLED", "CD": "COMPLETED", "CF": "CONFIGURING",
    "CG": "COMPLETING", "DL": "DEADLINE", "F": "FAILED", "NF": "NODE_FAIL",
    "OOM": "OUT_OF_MEMORY", "PD": "PENDING", "PR": "PREEMPTED", "R": "RUNNING",
    "RQ": "REQUEUED", "RH": "REQUEUE_HOLD", "RS": "RESIZING", "RV": "REVOKED",
    "S": "SUSPENDED", "SE": "SPECIAL_EXIT", "SI": "SIGNALING", "SO": "STAGE_OUT",
    "ST": "STOPPED", "TO": "TIMEOUT",
}  # fmt: skip

NODE_MARKS = {
    "*": "NOT_RESPONDING",
    "~": "POWERED_DOWN",
    "#": "POWERING_UP",
    "!": "POWER_DOWN",
    "%": "POWERING_DOWN",
    "$": "MAINTENANCE",
    "@": "REBOOT_REQUESTED",
    "^": "REBOOT_ISSUED",
    "-": "PLANNED",
}
NODE_WORDS = {
    "ALLOC": ("ALLOCATED",),
    "COMP": ("ALLOCATED", "COMPLETING"),
    "DRAINED": ("IDLE", "DRAIN"),
    "DRAINING": ("ALLOCATED", "DRAIN"),
    "DRNG": ("ALLOCATED", "DRAIN"),
    "FAILG": ("ALLOCATED", "FAIL"),
    "FAILING": ("ALLOCATED", "FAIL"),
    "FUTR": ("FUTURE",),
    "INVAL": ("INVALID_REG",),
    "MAINT": ("MAINTENANCE",),
    "MIX": ("MIXED",),
    "NO_RESPOND": ("NOT_RESPONDING",),
    "PLND": ("PLANNED",),
    "POW_DN": ("POWERED_DOWN",),
    "POW_UP": ("POWERING_UP",),
    "REBOOT": ("REBOOT_ISSUED",),
    "RESV": ("RESERVED",),
    "UNK": ("UNKNOWN",),
}
"""Words of sinfo that stand for a base state and flags of `scontrol show node`."""

BOOTED = "BOOTED"
"""The state of a `NodeEvent` that is no state of Slurm's: the node's operating system came up."""

_BY = re.compile(r"\bby\s+(\S+)\s*$")
_CODES = re.compile(r"\s*(\d{1,10}):(\d{1,10})\s*")
_DURATION = re.compile(r"(?:(\d{1,6})-)?(?:(\d{1,4}):)?(\d{1,4}):(\d{1,2})(\.\d{1,6})?")
_EPOCH = re.compile(r"\d{9,11}")
_GPUS = re.compile(r"gres/gpu(:[^=,]+)?=(\d{1,9})(?![\d.]*[KMGT])")


def disposition(words: Iterable[str]) -> Disposition:
    """
    What a state and its flags come to.  A base state wins over flags, so FAILED+COMPLETING is
    failed and PENDING+REQUEUED is pending; "unknown" where nothing is recognised.
    """
    seen = [COMPACT.get(word, word) for word in (w.strip().upper() for w in words)]
    for table in (BASES, FLAGS):
        for word in seen:
            if word in table:
                return table[word]
    return "unknown"


def state_words(text: str) -> list[str]:
    """The words of a state as text: "CANCELLED by 1000", "PENDING,REQUEUED", "FAILED+"."""
    head = text.strip().split(" ")[0]
    return [word for word in re.split(r"[,+]", head) if word]


def cancelled_by(state: str) -> str | None:
    """Who cancelled, as "CANCELLED by 1000" spells it."""
    found = _BY.search(state)
    return found[1] if found and state.upper().startswith("CANCELLED") else None


def exit_pair(text: str, state: Disposition = "unknown") -> tuple[int | None, int | None]:
    """
    (exit code, signal) of `code:signal`; (None, None) where it is none.

    A signal leaves no exit code.  The OOM mark is no signal.  143:0 gives both: see `ended`.
    """
    found = _CODES.fullmatch(text or "")
    if found is None:
        return None, None
    return settled(int(found[1]), int(found[2]), state)


def settled(
    code: int | None, sign: int | None, state: Disposition
) -> tuple[int | None, int | None]:
    """`code` and `sign` of a finished job or step, by the rules of `exit_pair`."""
    if sign == OOM_MARK and state in ("out_of_memory", "unknown"):
        return None, None
    if sign and sign > LAST_SIGNAL and sign != OOM_MARK:
        return None, None  # NO_VAL and INFINITE taken for a status: 0:126, 0:127
    if sign:
        return None, sign
    return (None, None) if code is None else ended(code)


def read_time(text: str) -> datetime | None:
    """
    An instant; None for Unknown, None, N/A, or what is no time.

    Without a zone it is taken for UTC.  SLURM_TIME_FORMAT may have added an offset, or made it
    seconds since the epoch: both are read as they are.
    """
    word = text.strip()
    if _EPOCH.fullmatch(word):
        return from_epoch(int(word))
    if len(word) < 16 or not word[:4].isdecimal():
        return None
    try:
        moment = datetime.fromisoformat(word)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def from_epoch(seconds: float | None) -> datetime | None:
    """The instant, or None for 0, Slurm's NO_VAL and INFINITE, and what no calendar holds."""
    if seconds is None or not 0 < seconds < NO_VALUE:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return None


def duration_s(text: str) -> float | None:
    """Seconds of `[days-[hours:]]minutes:seconds[.fraction]`; None for UNLIMITED and the like."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        return None
    days, hours, minutes, seconds, fraction = found.groups()
    whole = ((int(days or 0) * 24 + int(hours or 0)) * 60 + int(minutes)) * 60 + int(seconds)
    return whole + float(fraction or 0)


def gpus(tres: str) -> int | None:
    """GPUs of a TRES string; typed counts (`gres/gpu:a100=8`) only where no plain one stands."""
    plain: int | None = None
    typed = 0
    for kind, count in _GPUS.findall(tres):
        if kind:
            typed += int(count)
        else:
            plain = int(count)
    return plain if plain is not None else (typed or None)


def node_states(text: str) -> tuple[str, ...]:
    """`DOWN*+DRAIN` as ("DOWN", "NOT_RESPONDING", "DRAIN"), in their order, marks spelled out."""
    states: dict[str, None] = {}
    for word in re.split(r"[+,]", text.strip().upper()):
        bare = word.rstrip("".join(NODE_MARKS))
        for name in NODE_WORDS.get(bare, (bare,)):
            if name:
                states.setdefault(name)
        for mark in word[len(bare) :]:
            states.setdefault(NODE_MARKS[mark])
    return tuple(states)


def hosts(text: str) -> tuple[str, ...]:
    """
    The hosts of a record's node list, none where it cannot be read.

    A list cut by a column width or broken by hand must not cost the record that holds it.
    """
    try:
        return expand(text)
    except FormatError:
        return ()


def devices(held: Iterable[tuple[str, str]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """
    Per host the indexes of the GPUs, of node lists with what they gave of their GRES:
    `gpu:h100:4(IDX:0-2,5)`.

    None at all where one of them does not tell its indexes, or those of parts of GPUs.
    """
    found: dict[str, tuple[str, ...]] = {}
    for nodes, gres in held:
        told = _INDEXES.findall(gres)
        indexes = {n for text in told for n in _range(text)}
        if not indexes or _PART.search(gres):
            return ()
        found |= dict.fromkeys(hosts(nodes), tuple(map(str, sorted(indexes))))
    return tuple(found.items())


def _range(text: str) -> Iterator[int]:
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), min(int(last or first), int(first) + MOST_GPUS) + 1)


def given(text: str | None) -> str | None:
    """The text, or None for Slurm's ways of saying nothing."""
    if text is None:
        return None
    word = text.strip()
    return None if word.lower() in UNSET else word


def count(text: str | None) -> int | None:
    """A plain whole number, else None (`1K` of a units option, `2-4` of a request)."""
    word = (text or "").strip()
    return int(word) if word.isdecimal() and len(word) < 10 else None


def latest(moments: Iterable[datetime | None]) -> datetime | None:
    """The latest instant there is."""
    return max((moment for moment in moments if moment is not None), default=None)


def oldest_first(jobs: Sequence[Job]) -> tuple[Job, ...]:
    """
    Rows of one job together, at the place of its first, ordered by their start (or end, or
    submission); as they stood where one has no time at all.
    """
    rows: dict[str, list[Job]] = {}
    for job in jobs:
        rows.setdefault(job.id, []).append(job)
    ordered: list[Job] = []
    for same in rows.values():
        times = [job.started_at or job.ended_at or job.submitted_at for job in same]
        if len(same) > 1 and None not in times:
            same.sort(key=lambda job: str(job.started_at or job.ended_at or job.submitted_at))
        ordered.extend(same)
    return tuple(ordered)


def named_once(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The pairs as a table, without the keys that stand for two different values."""
    table: dict[str, str] = {}
    unsure: set[str] = set()
    for key, value in pairs:
        if table.setdefault(key, value) != value:
            unsure.add(key)
    return {key: value for key, value in table.items() if key not in unsure}
