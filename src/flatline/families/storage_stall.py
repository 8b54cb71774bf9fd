"""
Storage stopped serving the run.

Symptom:
    The file server does not respond, handles go stale, the disk or the quota is full, processes
    stand in uninterruptible sleep.

Mechanism:
    Reads of data or writes of checkpoints block or fail.  One rank that blocks in a checkpoint
    holds all others in the next collective.

Told apart from:
    A3 runtime-crash (io): one file was missing or unreadable, the file system itself served.
    D2 throughput-bound (checkpoint-storm): slow because too much is written, not because
    storage fails.

Do:
    Free space or raise the quota; have the server and the mount checked; resubmit when it serves.

References:
    errno 28 (ENOSPC), 122 (EDQUOT), 116 (ESTALE), 5 (EIO); Linux NFS client and hung-task
    messages; Lustre operations manual.
"""

from __future__ import annotations

import os.path
import re
from dataclasses import replace

from flatline.facts import Facts
from flatline.judging.crashes import Failure
from flatline.judging.leads import Lead, lead
from flatline.judging.signed import signed
from flatline.model import Judgement, Place

CODE = "C6"
NAME = "storage-stall"
NEEDS = ("kernel log", "file-system and pressure metrics")
DECIDED_BY = (
    "processes in state D and what they wait in, or the kernel's words on the mount (ps -eo "
    "stat,wchan, dmesg)"
)
EXPLAINS = {
    "A3/io": "the failed read or write surfaces as an exception in the program",
    "A3/data": "what was not read whole surfaces as bad data in the program",
    "A1": "the failed read or write at start-up surfaces as an exception in the program",
    "C2": "a rank that blocks on storage does not enter the collective its peers wait in",
    "E2": "a checkpoint that could not be written whole cannot be loaded",
    "A2": "the program aborts when its files cannot be written",
    "C4": "a process that blocks on storage does not send its heartbeats",
    "F3": "ranks blocked on storage hold the allocation to the wall",
}


_SERVER = (
    "Have the server and this host's mount and link to it checked; see whether other clients of"
    " it were hit, and resume once it serves."
)
_ADVICE = {
    r"quota|full|space|less room|fewer bytes": "Free space or raise the quota, then resume.",
    r"block-device|local disk": "Have the disk of that host replaced or checked; keep data and"
    " checkpoints elsewhere until then.",
    r"object store": "See whether the store was throttled or down, lower the number of requests at"
    " a time, and let the client try longer.",
    r"barrier": "See which process was slow to write, and why; give the save more time.",
}
"""By words of the signature's id and meaning."""
_PATH = re.compile(r"['\"\s:=](/[\w.+-]+(?:/[\w.+@=-]+)*)")
_OF_THE_HOST = re.compile(
    r"^/(?:tmp|var|dev|run|proc|sys|scratch/local|local|mnt/(?:nvme|ssd))(?:/|$)"
)
"""Paths that are each host's own by convention: nothing that places share."""


def judge(facts: Facts) -> Judgement:
    """Blame the first line by which the file system itself says that it does not serve."""
    first = lead(facts, CODE)
    found = signed(
        facts,
        CODE,
        implies="The storage under the run failed it; the model code did not cause it.",
        cannot_decide=(
            "Whether other jobs on the same file system were hit: the server's log would tell.",
        ),
        advice=_advice(first.first) if first is not None else "",
        resubmit="fix_first",
    )
    told = first
    places = {_where(f.place) for f in told.group} if told is not None else set()
    if found is None or told is None or len(places) < 2:
        return found
    shared = _shared(told)
    if (shared is not None and _OF_THE_HOST.match(shared)) or (
        shared is None and not found.culprits
    ):
        return found
    unknown = () if shared else ("What the places that failed share: no line names it.",)
    where = f"{len(places)} places" + (f", all under {shared}" if shared else "")
    return replace(
        found,
        summary=f"{told.first.what.rstrip('.')} ({where})",
        culprits=(),
        scope="shared",
        domain=shared,
        cannot_decide=(*found.cannot_decide, *unknown),
    )


def _advice(first: Failure) -> str:
    """What to do about this kind of fault, where its signature has no advice of its own."""
    said = first.signature
    about = f"{said.id} {said.meaning}".lower() if said is not None else ""
    return next((advice for words, advice in _ADVICE.items() if re.search(words, about)), _SERVER)


def _where(place: Place) -> tuple[object, ...]:
    return place.host, place.rank, place.task


def _shared(told: Lead) -> str | None:
    """The server or the folder that every line names; None where they name none in common."""
    servers = {f.match.groups["peer"] for f in told.group if f.match and "peer" in f.match.groups}
    if len(servers) == 1:
        return servers.pop()
    paths = [found[1] for f in told.group if (found := _PATH.search(f.cite.text))]
    if len(paths) < len(told.group):
        return None
    common = os.path.commonpath(paths)
    return common if common.count("/") and common != "/" else None
