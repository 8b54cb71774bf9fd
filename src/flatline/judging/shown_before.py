"""
What a person's shell shows below a run that began anew: checkpoints in the folder in which it
looked for one, or the log of an earlier run that had come much farther.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite

from flatline.facts import Facts, Marker, Point
from flatline.judging.fresh_start import sought_in
from flatline.model import LogCite

BELOW = 40
"""Lines behind the last step of the run in which a shell is looked for."""
LISTED = 12
"""Lines that a command prints of which it is told what it shows."""
FARTHER = 2.0
"""Times as far as this run came.  A judgement: a sound one goes on where the other saved."""
_SHELL = re.compile(
    r"(?:\([\w.-]{1,40}\) ?)?(?:[\w.-]{1,60}@[\w.-]{1,80}[:\s][\w.~/-]{0,200} ?\]?)?[$#%>] +"
    r"(?:sudo +)?(?:(ls|ll|tree|du|find)|(tail|grep|egrep|zgrep|head|less|cat|awk|sed|rg))\b(.*)$"
)
_NUMBERED = re.compile(
    r"(?<![a-z])(?:iter|(?:global_?)?step|checkpoint|ckpt|model)[-_=]?0{0,12}([1-9]\d{0,11})(?![\w])"
)
_OF_STEPS = re.compile(r"\d ?/ {0,8}(\d{1,12})(?!\d)")
"""How many steps there are to be, as a line of progress tells it."""
_NAMES_IT = "/latest"
"""The file in which DeepSpeed keeps the name of the checkpoint beside it."""
_RESTARTED = re.compile(r"RESTART_COUNT[=: ]+[1-9]")


@dataclass(frozen=True, slots=True)
class Shown:
    """The step that an earlier run had come to, as `cites` show, and whether these are `listed`
    checkpoints of the very folder."""

    step: int
    cites: tuple[LogCite, ...]
    listed: bool


def shown_before(facts: Facts, first: Point, fresh: Sequence[Marker]) -> Shown | None:
    """The checkpoints that are listed, else the log, where this run is no more than begun."""
    looked = [m for m in fresh if m.progress.step is None and m.cite.source == first.cite.source]
    if not looked or first.step is None:
        return None
    span = first.track.of_attempt(facts.last.n)
    sought = {folder.rstrip("/") for folder in sought_in(facts, looked)}
    folders = sought | {folder.removesuffix(_NAMES_IT) for folder in sought}
    for listing, command, line in _commands(facts, first):
        above = [first.track.steps[i] for i in span if first.track.lines[i] < line]
        most = FARTHER * max(above, default=first.step)
        cite = LogCite(first.cite.source, line, facts.text(first.cite.source, line))
        if listing and any(re.search(rf"(?<=\s){re.escape(f)}(?=/?(?:\s|$))", command)
                           for f in folders):  # fmt: skip
            found = _listed(facts, cite)
            if found is not None and found[0] > most:
                return Shown(found[0], (cite, found[1]), True)
        own = first.cite.source.rpartition("/")[2] in command
        shown = None if listing or own else _logged(facts, first, line, most)
        if shown is not None:
            return Shown(shown.step or 0, (cite, shown.cite), False)
    return None


def _commands(facts: Facts, first: Point) -> Iterator[tuple[bool, str, int]]:
    """Whether one lists files, what it is given, and its line."""
    begins = first.cite.line
    last = max(first.track.lines[i] for i in first.track.of_attempt(facts.last.n))
    start = max(begins, last - BELOW)
    lines = facts.lines(first.cite.source, start, last - start + BELOW)
    told = [(n, found) for n, text in enumerate(lines, start) if (found := _SHELL.match(text))]
    for n, found in sorted(told, key=lambda one: not one[1][1]):
        yield bool(found[1]), found[3], n


def _listed(facts: Facts, command: LogCite) -> tuple[int, LogCite] | None:
    """The highest step of the names below it."""
    best = None
    lines = facts.lines(command.source, command.line + 1, LISTED)
    for n, text in enumerate(lines, command.line + 1):
        if _SHELL.match(text):
            break
        for step in map(int, _NUMBERED.findall(text)):
            if best is None or step > best[0]:
                best = step, LogCite(command.source, n, text)
    return best


def _logged(facts: Facts, first: Point, line: int, most: float) -> Point | None:
    """A step right below it, of a run of as many, that was made before this one began: by its
    date, or where neither bears one and the scheduler had started this job again."""
    track, n = first.track, facts.last.n
    at = next((i for i in track.of_attempt(n) if track.lines[i] == line + 1), None)
    if at is None or track.steps[at] <= most:
        return None
    shown = facts.point(track, at)
    plans = {found[1] for p in (first, shown) if (found := _OF_STEPS.search(p.cite.text))}
    if len(plans) != 1:
        return None
    own = track.at[first.index]
    if not track.assumed and isfinite(own) and isfinite(track.at[at]):
        return shown if track.at[at] < own else None
    head = facts.lines(first.cite.source, 1, first.cite.line)
    again = bool(facts.job and facts.job.restarts) or any(map(_RESTARTED.search, head))
    return shown if again else None
