"""An exception that nothing caught, in words, what it is of, and whether of shared memory."""

from __future__ import annotations

import re

from flatline.model import Crash

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
