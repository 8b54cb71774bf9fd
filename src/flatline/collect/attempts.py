"""
Which try of the run each log belongs to.

A folder may hold several: torchelastic's attempt_N folders, the log of a parent run beside that
of the run that went on from it.  Files that report progress at the same time are one try; one
that begins after another's progress had ended is the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from flatline.facts import Marker
from flatline.model import Crash, Match, ProcessExit

if TYPE_CHECKING:
    from flatline.collect.logs import LogEvents

E = TypeVar("E", Match, Crash, ProcessExit, Marker)
Fold = dict[tuple[str, int], int]
"""(source, attempt as its folder or record names it) to the attempt it is counted as."""


def fold_attempts(logs: Sequence[tuple[Any, Any, LogEvents]], rows: int) -> Fold:
    """Attempts by name where folders or records name them, else by time."""
    numbers = sorted({setting.attempt for _, setting, _ in logs})
    if len(numbers) > 1 or rows > 1:
        return _by_name(logs, numbers, rows)
    return _by_time(logs)


def _by_name(logs: Sequence[tuple[Any, Any, LogEvents]], numbers: list[int], rows: int) -> Fold:
    """An elastic attempt in which no step was made belongs to the one it tried to go on with."""
    stepped = {
        n for _, _, events in logs for track in events.tracks.values() for n in track.attempts
    }
    fold: dict[int, int] = {}
    current = numbers[0] if numbers else 0
    for n in numbers:
        if n in stepped or n == numbers[0] or rows > 1:
            current = n
        fold[n] = current
    return {(e.source, s.attempt): fold[s.attempt] for _, s, e in logs}


def _by_time(logs: Sequence[tuple[Any, Any, LogEvents]]) -> Fold:
    spans = []
    for _, setting, events in logs:
        times = [t for track in events.tracks.values() for t in track.at if t == t]
        if times:
            spans.append((min(times), max(times), events.source))
    spans.sort()
    fold: Fold = {(e.source, s.attempt): 0 for _, s, e in logs}
    if len(spans) < 2:
        return fold
    n, end = 0, spans[0][1]
    for start, stop, source in spans:
        if start > end:
            n += 1
        end = max(end, stop)
        for key in fold:
            if key[0] == source:
                fold[key] = n
    for key in fold:  # a file without progress goes with the last try: it says how that ended
        if not any(source == key[0] for _, _, source in spans):
            fold[key] = n
    return fold


def moved(event: E, fold: Fold) -> E:
    source = event.cite.source
    n = fold.get((source, event.attempt), event.attempt)
    return event if n == event.attempt else replace(event, attempt=n)
