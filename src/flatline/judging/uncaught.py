"""An exception that nothing caught: in words, what it is of, whose, whether of shared memory."""

from __future__ import annotations

import re
from dataclasses import replace

from flatline.facts import Facts
from flatline.judging.by_words import by_words
from flatline.model import Crash, Place

_SHARED = re.compile(r"/shared_memory\.py|/base/shared/|_posixshmem|\bSharedMemory\(|/dev/shm")
"""Where processes of one host share memory: multiprocessing, MosaicML streaming."""

_LATE_BY_TYPE: tuple[tuple[str, str], ...] = (
    (r"(OSError|IOError|FileNotFoundError|PermissionError|ConnectionError|TimeoutError|"
     r"BlockingIOError|StaleFileHandle\w*|ClientError)$", "io"),
    (r"(JSONDecode|UnicodeDecode|Arrow\w*|CastError|Parser|UnidentifiedImage)\w*$", "data"),
)  # fmt: skip
_LATE_BY_FRAME: tuple[tuple[str, str], ...] = (
    (r"/torch/serialization\.py", "io"),
    (r"/torch/utils/data/|/datasets/|/(collate|dataset|dataloader|data_loader)\w*\.py|"
     r"/data/[^/]*\.py", "data"),
)  # fmt: skip
INNERMOST = 6
_CHILD = re.compile(r"-- Process (\d{1,5}) terminated with the following error")
"""What `torch.multiprocessing.spawn` puts above the traceback of a process that it started."""
MOST_LINES, BEHIND = 400, 60


def raised_by(facts: Facts, crash: Crash) -> Place:
    """Where it stands; of a process that was spawned with one for each GPU of the one host, whose
    number is its rank there, that, also where its parent tells the same again right below.  On
    several hosts each counts its own."""
    place, job = crash.cite.place, facts.job
    if place.rank is not None or place.task is not None or len(facts.hosts) != 1:
        return place
    length = min(crash.end_line - crash.head.line + 1, MOST_LINES)
    lines = facts.lines(crash.head.source, crash.head.line, length + BEHIND)
    behind = next((n for n in range(length, len(lines)) if _CHILD.search(lines[n])), len(lines))
    again = any(text.strip() == lines[length - 1].strip() for text in lines[behind:])
    above = facts.lines(crash.head.source, crash.head.line - 1, 1) if crash.head.line > 1 else ()
    told = {int(found[1]) for text in (*above, *(lines if again else lines[:length]))
            if (found := _CHILD.search(text))}  # fmt: skip
    ranks = facts.world_size or (job.gpus if job is not None else None) or 0
    heard = len(told) == 1 and (max(told) < ranks or told <= {*facts.ranks})
    return replace(place, rank=told.pop()) if heard else place


def shares_memory(crash: Crash | None) -> bool:
    """Whether an exception came out of memory that processes of one host share."""
    return crash is not None and any(
        _SHARED.search(f"{frame.file} {frame.code or ''}") for frame in crash.frames[-INNERMOST:]
    )


def uncaught(crash: Crash) -> str:
    """What was raised, in a sentence."""
    if shares_memory(crash):
        return (
            "It was memory that processes of one host share: too little, or left by another run."
        )
    told = by_words(crash)
    if told is not None and told.family == "C6":
        return f"{crash.exception or 'An exception'} says in its own words that storage failed it"
    if crash.exception:
        return f"{crash.exception} was raised and not caught"
    if crash.chain:
        return (
            f"An exception was raised while {crash.chain[-1][0]} was handled; its name is cut off"
        )
    return "An exception was raised and not caught; its name is cut off"


def late_class(crash: Crash) -> str:
    """code, data or io, of an exception that came after the first step."""
    for pattern, fault_class in _LATE_BY_TYPE:
        if re.search(pattern, crash.exception):
            return fault_class
    for frame in reversed(crash.frames[-INNERMOST:]):
        for pattern, fault_class in _LATE_BY_FRAME:
            if re.search(pattern, frame.file):
                return fault_class
    return "code"
