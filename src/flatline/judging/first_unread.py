"""Logs of later nodes alone: rank 0, which prints the steps in most programs, is on the first."""

from __future__ import annotations

import re

from flatline.facts import LOG, Facts
from flatline.model import Crash

ASKED = (
    "Whether a training step was made before: the log of the first node, whose rank 0 prints them"
    " in most programs, was not read."
)
MOST_FILES, TAIL_LINES, HEAD_LINES = 64, 120, 40
_AT_START = ("ImportError", "ModuleNotFoundError", "SyntaxError", "IndentationError")
_AGENT = re.compile(r"^\W*[WEI]\d{4} [\d:.]{8,16} +(\d{1,9}) +torch/distributed/(?:elastic|run)")
_LOCAL = re.compile(r"\brank {1,10}: (\d{1,6}) \(local_rank: (\d{1,3})\)")


def first_unread(facts: Facts, crash: Crash | None) -> bool:
    """Whether each log is one torchrun agent's, of a node that is not the first, and an exception
    may have come after steps: what an import raises did not."""
    reads = facts.log_files(LOG)
    if facts.has_progress or 0 in facts.ranks or not 0 < len(reads) <= MOST_FILES:
        return False
    if crash is not None and crash.exception.rpartition(".")[2] in _AT_START:
        return False
    return all(_later(facts, read.source, read.lines) for read in reads)


def _later(facts: Facts, source: str, lines: int) -> bool:
    """Whether one agent printed into a log, and the ranks it started do not begin with 0."""
    tail = max(1, lines - TAIL_LINES)
    text = [*facts.lines(source, 1, HEAD_LINES), *facts.lines(source, tail, TAIL_LINES + 1)]
    agents = {found[1] for line in text if (found := _AGENT.match(line))}
    starts = {int(rank) - int(local) for line in text for rank, local in _LOCAL.findall(line)}
    return len(agents) == 1 and bool(starts) and min(starts) > 0
