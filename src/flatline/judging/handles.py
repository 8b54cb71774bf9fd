"""CUDA and its libraries that do not start: why, by what stands above and whose process it was."""

from __future__ import annotations

from flatline.facts import Facts
from flatline.model import Crash, Match

HANDLE, REFUSED, INITIALIZES = "gpu-handle", "gpu-alloc-refused", "cuda-initialization"
REFUSED_LINES = 200
"""TensorFlow draws up all that its allocator holds between the two."""


def not_started(
    facts: Facts, match: Match, crash: Crash | None = None
) -> tuple[str, str | None] | None:
    """
    Family and class where more is known than the line says; None where it is not.

    A library that did not start just after memory was refused had none.  CUDA that does not start
    in a worker of a DataLoader was in use in the process which forked that.
    """
    tags, cite = match.signature.tags, match.cite
    if HANDLE in tags and any(
        m.cite.source == cite.source and 0 < cite.line - m.cite.line <= REFUSED_LINES
        for m in facts.tagged(REFUSED)
    ):
        return "B1", None
    if match.signature.id == INITIALIZES and crash is not None and _in_a_worker(crash):
        return "A1", "config"
    return None


def _in_a_worker(crash: Crash) -> bool:
    return any(frame.file.endswith("/_utils/worker.py") for frame in crash.frames)
