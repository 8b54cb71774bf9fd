"""
The stacks of a run's processes, as `py-spy dump` and Python's faulthandler print them: each in a
file of its own, or one below the other in a log.

Of a process only the main thread is read, which makes the steps; of several dumps of one process
the last.  Lines of other ranks between those of a stack are told by the label before them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from flatline.facts import Facts
from flatline.judging.claims import number
from flatline.logs.places import OWNER
from flatline.model import LogCite, Match, Place
from flatline.rank_hosts import communicating, process_of

MOST_LINES, MOST_FRAMES, HEAD_LINES = 400, 100, 8
"""Of a stack between those of other ranks; faulthandler itself stops at 100 frames."""
CRASH_LINES = 2000
"""Stacks of all threads behind the word that the process crashed, the main one's last."""
PY_SPY = "stacks-py-spy-main"
_HEAD = re.compile(r'(?:Current t|T)hread (?:0x)?[0-9A-Fa-f]+ .*(?:"MainThread"|call first\):)')
_PROCESS = re.compile(r"Process (\d{1,9}): (.*)")
_FRAMES = (
    re.compile(r" {4}(?P<function>\S.{0,200}?) \((?P<file>[^()]{1,400}):(?P<line>\d{1,7})\)$"),
    re.compile(r'  File "(?P<file>.{1,400}?)", line (?P<line>\d{1,7}) in (?P<function>.{1,200})$'),
)
_NATIVE = re.compile(r" {4}\S")
_LOCAL_RANK = re.compile(r"--local[-_]rank[= ](\d{1,4})\b")
_NOTED = re.compile(r"[(\[# ](?:global[ _])?rank[ =:#]{0,2}(\d{1,6})\b[)\]]?\s*$", re.IGNORECASE)
"""What whoever dumped a process writes behind its command."""
_BOOTSTRAP = re.compile(r"(?:Thread\.)?_bootstrap$")
_FATAL = "Fatal Python error"
_ASKED, ASKED_LINES = "py-spy dump", 2
"""The command that dumped a process, and how near above it stands."""
_NO_RANK = re.compile(
    r"(?:^|/)(?:torch/distributed/(?:elastic/|run\.py|launch)|torch/utils/data/_utils/worker\.py"
    r"|accelerate/commands/|deepspeed/launcher/|multiprocessing/resource_tracker\.py)"
)
"""Launchers and the workers of a data loader."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A call, of which `file` is as much of its path as the dump shows."""

    function: str
    file: str
    line: int
    cite: LogCite

    def __str__(self) -> str:
        return f"{self.function} ({'/'.join(self.file.split('/')[-2:])}:{self.line})"


@dataclass(frozen=True, slots=True)
class Stack:
    """The main thread of one process, the innermost call first; `command` is "" where the dump
    does not show it."""

    place: Place
    command: str
    frames: tuple[Frame, ...]


def stacks(facts: Facts) -> tuple[Stack, ...]:
    """The last of each process in the last attempt, in the order of their places."""
    return facts.memo("stacks of processes", _stacks)


def _stacks(facts: Facts) -> tuple[Stack, ...]:
    last: dict[object, Stack] = {}
    for n, match in enumerate(facts.tagged("stack")):
        if match.attempt != facts.last.n or facts.went_on(match.cite, match.attempt):
            continue
        process = _process(facts, match)
        if process is None:
            continue
        pid, command, asked = process
        frames = tuple(_frames(facts, match))
        place = _place(facts, match, command)
        if number(place) is None and pid:
            place = _by_its_process(facts, pid, asked) or place
        known = number(place)
        key: object = known if known is not None else (match.cite.source, pid or n)
        if frames and not _BOOTSTRAP.search(frames[-1].function) and _is_rank(frames):
            last[key] = Stack(place, command, frames)
    return tuple(
        sorted(last.values(), key=lambda one: (str(one.place.host), number(one.place) or 0))
    )


def _is_rank(frames: tuple[Frame, ...]) -> bool:
    return not any(_NO_RANK.search(frame.file) for frame in frames)


def _process(facts: Facts, match: Match) -> tuple[str, str, str] | None:
    """Number and command of a stack's process and the line that asked for it, each "" where it is
    not shown; None where it crashed."""
    source, line = match.cite.source, match.cite.line
    near = facts.at_line(source, line - CRASH_LINES, line)
    if any(_FATAL in one.cite.text for one in near if one.cite.place == match.cite.place):
        return None
    if match.signature.id == PY_SPY:
        first = max(1, line - HEAD_LINES)
        near_by = facts.lines(source, first, line - first, 400)
        for n in range(len(near_by) - 1, -1, -1):
            if found := _PROCESS.search(near_by[n]):
                above = near_by[max(0, n - ASKED_LINES) : n]
                return found[1], found[2], next((t for t in above if _ASKED in t), "")
    return "", "", ""


def _frames(facts: Facts, match: Match) -> Iterator[Frame]:
    """Up to the first line that is no call, of those that bear the head's label."""
    head = _HEAD.search(match.cite.text)
    if head is None:
        return
    label, found = match.cite.text[: head.start()], 0
    lines = facts.lines(match.cite.source, match.cite.line + 1, MOST_LINES, 800)
    for n, text in enumerate(lines, match.cite.line + 1):
        if not text.startswith(label):
            continue
        call = next(filter(None, (one.match(text, len(label)) for one in _FRAMES)), None)
        if call is None and not _NATIVE.match(text, len(label)):
            return
        if call is not None:
            cite = LogCite(
                match.cite.source, n, facts.text(match.cite.source, n), match.cite.place
            )
            yield Frame(call["function"], call["file"], int(call["line"]), cite)
            found += 1
        if found == MOST_FRAMES:
            return


def _place(facts: Facts, match: Match, command: str) -> Place:
    """Whose stack it is: by the label of its lines or file, or on one host by the local rank that
    its launcher gave it."""
    place = match.cite.place
    local = _LOCAL_RANK.search(command)
    if number(place) is None and (noted := _NOTED.search(command)):
        return Place(host=place.host, rank=int(noted[1]))
    if number(place) is None and local and len(facts.hosts) <= 1:
        return Place(host=place.host, rank=int(local[1]))
    return place


def _by_its_process(facts: Facts, pid: str, asked: str) -> Place | None:
    """The rank that NCCL printed under a process's number, on the host or in the pod whose stack
    was asked for; where none is named, the one rank of that number."""
    words = [word.removeprefix("pod/") for word in asked.split()]
    named = (facts.node_of(name) for word in words for name in (word, OWNER.sub("", word)))
    host = next((name for name in named if name in facts.hosts), None)
    known = communicating(facts.matches, facts.hosts, facts.ranks, facts.world_size)
    found = {
        Place(host=facts.node_of(place.host or ""), rank=place.rank)
        for place, _, cite in known
        if process_of(cite) == pid
    }
    here = [place for place in found if host in (None, place.host)]
    return here[0] if len(here) == 1 else Place(host=host) if host else None
