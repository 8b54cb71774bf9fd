"""Exceptions out of the call in which ranks meet: the connection failed, not the program."""

from __future__ import annotations

import re

from flatline.model import Crash

_AT_THE_DOOR = (
    "init_process_group", "_store_based_barrier", "_create_c10d_store",
    "_dist_broadcast_coalesced", "_sync_module_states", "_verify_param_shape_across_processes",
)  # fmt: skip
"""And the first of all collectives, in which a model is wrapped."""
_OF_JAX = "jax/_src/distributed.py"
_JAX = "initialize", _OF_JAX
_BY_ITS_WORDS = re.compile(r"retrieving ncclUniqueId from \[\d{1,6}\] via c10d key-value store")
_CONNECTION = re.compile(
    r"\bConnection (?:reset by peer|refused|closed|timed out|was likely closed)|\bBroken pipe\b"
    r"|\bfailed to recv\b|\brecvValue failed\b|\bconnect\(\) timed out"
)
_OF_NCCL = re.compile(
    r"(?s)\bNCCL error\b.*(?:closed by remote peer|Connection reset by peer|Broken pipe)"
)
"""Whoever closed such a connection had met the others at the store, and gone since."""
_UNREACHED = re.compile(
    r"\bConnection (?:timed out|refused)|\bconnect\(\) timed out|\bNo route to host\b"
    r"|\b[Nn]etwork is unreachable\b|\bName or service not known\b"
    r"|\bfailure in name resolution\b"
)
"""What a peer that came and went does not give (errno(3), getaddrinfo(3))."""


def at_the_door(crash: Crash) -> bool:
    """Whether it was raised while the process group was made."""
    return any(
        frame.function in _AT_THE_DOOR or (frame.function, frame.file[-len(_OF_JAX) :]) == _JAX
        for frame in crash.frames
    )


def turned_away(crash: Crash) -> bool:
    """Whether a connection broke, or never came about, while the process group was made."""
    if _BY_ITS_WORDS.search(crash.message):
        return bool(_CONNECTION.search(crash.message))
    broke = _CONNECTION.search(crash.message) and not _OF_NCCL.search(crash.message)
    return bool(broke) and at_the_door(crash)


def unreached(crash: Crash) -> bool:
    """Whether the place to meet at could not be reached at all."""
    return bool(_UNREACHED.search(crash.message)) and at_the_door(crash)
