"""An exception that nothing caught, in words; and whether it is one of memory that is shared."""

from __future__ import annotations

import re

from flatline.model import Crash

_SHARED = re.compile(r"/shared_memory\.py|/base/shared/|_posixshmem|\bSharedMemory\(|/dev/shm")
"""Where processes of one host share memory: multiprocessing, MosaicML streaming."""


def shares_memory(crash: Crash | None) -> bool:
    """Whether an exception came out of memory that processes of one host share."""
    return crash is not None and any(
        _SHARED.search(f"{frame.file} {frame.code or ''}") for frame in crash.frames[-6:]
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
