"""Which errors of a log its program took care of: tried again, did without, and went on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable
from dataclasses import replace

from flatline.collect.blocks import Blocks
from flatline.collect.events import LogEvents
from flatline.facts import Marker
from flatline.logs.handled import failed, gave_up, handled, says_so_itself
from flatline.model import Crash, LogCite, Match, Place
from flatline.tracks import GOES_ON_AFTER, HANDLED

Said = Callable[[int], str]
"""A line without its labels; "" where there is none."""
SAID = ("root", "cascade", "wrapper")
"""Roles of lines that tell of a failure, which a program may print without having failed."""
BELOW_LINES = 2
"""How far below a traceback its program says what it does about it."""
ON_LINES = 20
"""A program that prints so many lines below an error has gone on, and has said by then if all that
it tried was in vain."""
LAST_LINES = 2
"""An error below which no more is printed may have come back and ended its log, and so may one
that was said again."""
FAILED_LINES = 60
"""How far below an error that ended it a program may still print, before its launcher says that it
failed."""
DOUBTED = 0.6
"""What is left of the strength of an error that may have."""
LAST_WORD, GONE = "last-word", "process-gone"
"""Tags: behind the one a program does nothing more."""
_OF_PEERS = ("C1", "C2", "C5")
"""Families by which the others tell of a process that did otherwise than they."""


def without_handled(events: LogEvents, said: Said, lines: int) -> None:
    """Takes what was taken care of for no failure, in a file of so many lines; what may have come
    back is doubted alone."""
    told = [m for m in events.matches if _counts(m) and _by_its_program(m)]
    known = {m.cite.line for m in events.matches}
    lone = [c for c in events.crashes if c.head == c.cite and handled(c.cite.text)]
    caught = [c for c in events.crashes if c.complete and _beside(c, said, known)]
    cleaned = [c for c in events.crashes if _cleaning_up(c)]
    if not told and not caught and not lone and not cleaned:
        return
    on = _last_of_others(events, {id(one) for one in (*told, *caught, *lone)})
    times = Counter(m.signature.id for m in told)
    again = {m.cite.line for m in told if times[m.signature.id] > 1}

    def open_(line: int) -> bool:
        """Whether it may have come back, or ended the program after all."""
        if line < on:
            return False
        below = [said(at) for at in range(line + 1, min(lines, line + ON_LINES) + 1)]
        last = sum(bool(text.strip()) for text in below) <= LAST_LINES
        vain = (line in again and len(below) < ON_LINES) or any(map(gave_up, below))
        return last or vain or _ended(events, line)

    over = {id(c) for c in cleaned} | {id(c) for c in caught if c.end_line < on}
    over |= {id(c) for c in lone if not open_(c.cite.line)}
    inside = _blocks(c for c in caught if id(c) in over)
    doubted = _blocks(c for c in caught if id(c) not in over and c.end_line < lines - ON_LINES)
    events.crashes = [replace(c, caught=True) if id(c) in over else c for c in events.crashes]
    left = {id(m): _doubted(m) if open_(m.cite.line) else _handled(m) for m in told}
    events.matches = [
        _handled(m)
        if _counts(m) and inside.hold(_process(m.cite), m.cite.line)
        else _left(m, left, doubted)
        for m in events.matches
    ]


def without_left_behind(events: LogEvents) -> None:
    """Takes Ray's word that a worker is gone for no failure where it stands behind the last word
    of the program whose worker it was: all is saved by then, and Ray ends what is left."""
    said = (m.cite.line for m in events.matches if LAST_WORD in m.signature.tags)
    last = min(said, default=None)
    if last is None or any(t.lines[-1] > last for t in events.tracks.values() if len(t)):
        return
    events.matches = [
        _handled(m)
        if m.cite.line > last and GONE in m.signature.tags and m.signature.origin == "ray"
        else m
        for m in events.matches
    ]


def _left(match: Match, left: dict[int, Match], doubted: Blocks) -> Match:
    if id(match) in left:
        return left[id(match)]
    within = _counts(match) and doubted.hold(_process(match.cite), match.cite.line)
    return _doubted(match) if within else match


def _handled(match: Match) -> Match:
    """A line that is no failure of the run, and yet was read: nobody may call it absent."""
    known = match.signature
    families = (known.family, known.late_family) if known.role == "root" else ()
    stood = (*(f"family:{one}" for one in families if one), *(f"tag:{tag}" for tag in known.tags))
    tags = tuple(f"{HANDLED} {one}" for one in stood)
    return replace(match, signature=replace(known, role="marker", tags=tags))


def _blocks(crashes: Iterable[Crash]) -> Blocks:
    return Blocks((_process(c.cite), c.head.line, c.end_line) for c in crashes)


def _ended(events: LogEvents, line: int) -> bool:
    """Whether a program that had not gone on is known to have failed, or stopped making steps, as
    it printed a line."""
    stepped = any(track.lines[0] < line for track in events.tracks.values() if len(track))
    failed_at = (e.cite.line for e in events.exits if e.exit_code)
    return stepped or any(0 < at - line <= FAILED_LINES for at in failed_at)


def _last_of_others(events: LogEvents, ids: set[int]) -> int:
    """The last line by which the program is known to have gone on: a step, its end, or a failure
    of another kind."""
    tracks = [track for track in events.tracks.values() if len(track) > GOES_ON_AFTER]
    roots = [m for m in events.matches if m.signature.role == "root" and id(m) not in ids]
    seen = [
        *(m.cite.line for m in roots if m.signature.family not in _OF_PEERS),
        *(c.cite.line for c in events.crashes if c.complete and id(c) not in ids),
        *(e.cite.line for e in events.exits if e.signal not in (None, 15)),
        *(m.cite.line for m in events.markers if m.kind == "finished" or _measured(m)),
        *(track.lines[-1 - GOES_ON_AFTER] for track in tracks),
    ]
    return max(seen, default=0)


def _measured(marker: Marker) -> bool:
    """Whether an epoch was evaluated to its end: none is with a rank that waits in vain."""
    point = marker.progress
    return marker.kind == "eval" and point.epoch is not None and point.loss is not None


def _process(cite: LogCite) -> Place:
    return Place(rank=cite.place.rank, task=cite.place.task)


def _counts(match: Match) -> bool:
    return match.signature.role in SAID


def _by_its_program(match: Match) -> bool:
    """Whether the line itself says so, in words that are its program's own."""
    return handled(match.cite.text) and not says_so_itself(match.signature.samples)


def _beside(crash: Crash, said: Said, known: Container[int]) -> bool:
    """Whether the line above a traceback tells of a failure that it goes on after, or one just
    below, that means nothing else, says so."""
    above = said(crash.head.line - 1) if crash.head.line > 1 else ""
    if failed(above) and handled(above) and crash.head.line - 1 not in known:
        return True
    below = range(crash.end_line + 1, crash.end_line + 1 + BELOW_LINES)
    return any(line not in known and handled(said(line)) for line in below)


def _cleaning_up(crash: Crash) -> bool:
    """Whether Python printed it as it cleaned up behind a process, and went on: it does so with
    whatever a finalizer raises (`_run_finalizers` of multiprocessing/util.py)."""
    first = crash.frames[0] if crash.frames and crash.complete else None
    return (
        first is not None
        and first.function == "_run_finalizers"
        and first.file.replace("\\", "/").endswith("/multiprocessing/util.py")
    )


def _doubted(match: Match) -> Match:
    known = match.signature
    return replace(match, signature=replace(known, strength=min(known.strength, DOUBTED)))
