"""
Which try of the run each log belongs to.

A folder may hold several: torchelastic's attempt_N folders, the log of a parent run beside that
of the run that went on from it.  Files that report progress at the same time are one try; one
that begins after another's progress had ended is the next.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from math import isfinite
from typing import Any, TypeVar

from flatline.collect.events import LogEvents
from flatline.collect.stamped_names import failed_starts
from flatline.collect.unnamed import telling
from flatline.facts import Marker
from flatline.logs.places import PREVIOUS
from flatline.model import Crash, Gap, Job, Match, ProcessExit
from flatline.tracks import GOES_ON_AFTER, Track

E = TypeVar("E", Match, Crash, ProcessExit, Marker)
EVENTS_OF = "kubernetes"
"""Of the signatures of what Kubernetes says of its pods, of all of their tries in one list."""
Fold = dict[tuple[str, int], int]
"""(source, attempt as its folder or record names it) to the attempt it is counted as."""


def fold_attempts(logs: Sequence[tuple[Any, Any, LogEvents]], rows: int) -> Fold:
    """Attempts by name where folders or records name them, else by time; within a file as its
    steps show them."""
    numbers = sorted({setting.attempt for _, setting, _ in logs})
    base = _by_name(logs, numbers, rows) if len(numbers) > 1 or rows > 1 else _by_time(logs)
    fold: Fold = {}
    for _, setting, events in logs:
        inside = {n for track in events.tracks.values() for n in track.attempts}
        inside |= {marker.attempt for marker in events.markers}
        inside |= {match.attempt for match in events.matches}
        numbered = inside | {setting.attempt}
        # Of a log that is named after no try the last one is the last row's.
        more = 0 if setting.name.attempt else min(max(numbered) - setting.attempt, rows - 1)
        for n in numbered:
            fold[events.source, n] = base[events.source] + n - setting.attempt - max(more, 0)
    return fold


def kept_to(
    tracks: Sequence[Track], logs: Sequence[tuple[Any, Any, LogEvents]], fold: Fold
) -> Fold:
    """The same, where a log none of whose steps is among the `tracks` that speak for the run tells
    of no more tries than these do: what it counts may begin anew with each of their steps.  One
    in which the scheduler says that it ended the job knows better."""
    kept = {track.source for track in tracks}
    left = {e.source for *_, e in logs if any(map(len, e.tracks.values()))
            and not any(map(_taken_from_it, e.matches))} - kept  # fmt: skip
    last = max((n for (source, _), n in fold.items() if source in kept), default=0)
    first = {s: min(n for (source, _), n in fold.items() if source == s) for s in left}
    return {
        (source, own): min(n, max(last, first[source])) if source in left else n
        for (source, own), n in fold.items()
    }


def _by_name(
    logs: Sequence[tuple[Any, Any, LogEvents]], numbers: list[int], rows: int
) -> dict[str, int]:
    """An elastic attempt in which no step was made belongs to the one it tried to go on with."""
    stepped = {
        setting.attempt
        for _, setting, events in logs
        if any(len(track) for track in events.tracks.values())
    }
    fold: dict[int, int] = {}
    current = numbers[0] if numbers else 0
    for n in numbers:
        if n in stepped or n == numbers[0] or rows > 1:
            current = n
        fold[n] = current
    return {events.source: fold[setting.attempt] for _, setting, events in logs}


def _by_time(logs: Sequence[tuple[Any, Any, LogEvents]]) -> dict[str, int]:
    spans = []
    for _, _, events in logs:
        times = [t for track in events.tracks.values() for t in track.at if t == t]
        if times:
            spans.append((min(times), max(times), events.source))
    spans += failed_starts([events for _, _, events in logs], {source for *_, source in spans})
    if not spans:
        told = [events for _, _, events in logs]
        return _by_container(told) or _by_number(told) or _by_job(told)
    fold: dict[str, int] = {}
    tries: list[tuple[float, float]] = []
    for start, stop, source in sorted(spans):
        if not tries or start > tries[-1][1]:
            tries.append((start, stop))
        tries[-1] = tries[-1][0], max(tries[-1][1], stop)
        fold[source] = len(tries) - 1
    # A file without progress or dates goes with the last try: it says how that ended.
    return {e.source: fold.get(e.source, _try_of_its_dates(e, tries)) for _, _, e in logs}


def _by_container(told: Sequence[LogEvents]) -> dict[str, int]:
    """Logs of the containers before (`kubectl logs --previous`) are of one try, all else of the
    next, where the log of the same name but for that word lies beside one."""
    sources = {events.source for events in told}
    before = {source for source in sources if PREVIOUS.search(source)}
    if sources.isdisjoint(PREVIOUS.sub("", source) for source in before):
        return {}
    return {source: int(source not in before) for source in sources}


def _try_of_its_dates(events: LogEvents, tries: Sequence[tuple[float, float]]) -> int:
    """The last whose steps had begun when the file was over; of one that is over before a next
    try's steps, and began behind the steps of the one before, it is that next: it starts it.  A
    list of events goes with the try that had begun when the last of them ended one."""
    ended = [m.cite.at.timestamp() for m in events.matches if m.cite.at is not None
             and m.signature.role == "root" and m.signature.origin == EVENTS_OF]  # fmt: skip
    if tries and ended:
        return max(0, bisect_right(tries, max(ended), key=lambda one: one[0]) - 1)
    if events.first_seen is None or events.last_seen is None or not tries:
        return len(tries) - 1
    first, last = events.first_seen.timestamp(), events.last_seen.timestamp()
    over = bisect_left(tries, first, key=lambda one: one[1])
    begun = bisect_right(tries, last, key=lambda one: one[0])
    return min(max(over, begun - 1), len(tries) - 1)


def _by_number(logs: Sequence[LogEvents]) -> dict[str, int]:
    """Of undated logs whose names differ in a number alone, as in `run.log` and `run.2.log`, where
    each ends far below all steps of the one before: ranks of one run are not so far apart, and
    what a logger cuts by its size goes on.  Empty where any is not so; a log without steps goes
    with the last."""
    steps: dict[str, list[int]] = {}
    for one in logs:
        own = [n for track in one.tracks.values() for n in track.steps if n >= 0]
        if own:
            steps[one.source] = own
    parts = {source: found for source in steps if (found := _NUMBERED_LOG.fullmatch(source))}
    numbers = {source: int(found["n"] or 1) for source, found in parts.items()}
    names = {(found["name"], found["end"]) for found in parts.values()}
    order = sorted(numbers, key=numbers.__getitem__)
    anew = all(FAR * max(steps[b]) < min(steps[a]) for a, b in pairwise(order))
    told = {*numbers.values()}
    if not anew or len(names) != 1 or not 2 <= len(told) == len(steps):
        return {}
    return {one.source: order.index(one.source) if one.source in order else len(order) - 1
            for one in logs}  # fmt: skip


def _by_job(logs: Sequence[LogEvents]) -> dict[str, int]:
    """Of undated logs that are named after jobs: one whose command goes on from a checkpoint comes
    after those of lower numbers, as schedulers count.  Jobs that run at once name none."""
    ids = {one.source: int(found[1]) for one in logs if (found := _JOB_LOG.search(one.source))}
    stepped = {one.source for one in logs if any(map(len, one.tracks.values()))}
    asks = {ids[one.source] for one in logs if one.source in stepped & ids.keys()
            and any("resume-asked" in m.signature.tags for m in one.matches)}  # fmt: skip
    if not stepped <= ids.keys():
        return {one.source: 0 for one in logs}
    later = sorted(asks - {min(ids.values(), default=0)})
    last = len(later)
    return {one.source: bisect_right(later, ids[one.source]) if one.source in ids else last
            for one in logs}  # fmt: skip


def moved(event: E, fold: Fold) -> E:
    source = event.cite.source
    n = fold.get((source, event.attempt), event.attempt)
    return event if n == event.attempt else replace(event, attempt=n)


def of_rows(
    logs: Iterable[Sequence[Match]], rows: Sequence[Job], kernel: Collection[str], fold: Fold
) -> list[Match]:
    """The logs' matches in their tries; those of kernels in the one that ran when they were
    printed, by the rows of the record."""
    matches = [moved(match, fold) for found in logs for match in found]
    starts = [row.started_at.timestamp() for row in rows if row.started_at is not None]
    each = len(rows) == max(fold.values(), default=0) + 1
    if len(rows) < 2 or len(starts) < len(rows) or not each:
        return matches
    return [
        replace(m, attempt=max(bisect_right(starts, m.cite.at.timestamp()) - 1, 0))
        if m.cite.source in kernel and m.cite.at is not None
        else m
        for m in matches
    ]


def in_their_try(matches: list[Match], tracks: Sequence[Track]) -> list[Match]:
    """The same, where Kubernetes tells in a log of no steps that the run was taken back before a
    later try began: that ended the one which had begun by then."""
    begun: dict[int, float] = {}
    for track in tracks:
        for at, n in zip(track.at, track.attempts, strict=True):
            if at == at and not track.assumed:
                begun[n] = min(at, begun.get(n, at))
    starts, own = [begun[n] for n in sorted(begun)], {track.source for track in tracks}
    if len(starts) < 2 or sorted(starts) != starts or begun.keys() != set(range(len(starts))):
        return matches
    return [
        replace(m, attempt=min(m.attempt, max(bisect_right(starts, m.cite.at.timestamp()) - 1, 0)))
        if m.signature.origin == "kubernetes" and _TAKEN_BACK & set(m.signature.tags)
        and m.cite.source not in own and m.cite.at is not None and not m.cite.at_assumed
        else m
        for m in matches
    ]  # fmt: skip


RESET_INTERVALS = 4
"""A step so many printing intervals back is a new beginning.  Ranks that print unlabelled into one
stream are one or two intervals apart; an epoch that counts its steps anew says its number."""
MOST_RESETS = 500
"""Steps that go back more often in one file are no restarts: several programs print into it."""
_JOB_LOG = re.compile(r"(?:^|[/._-])(\d{3,12})\.(?:out|err|log)$")
"""`slurm-771820.out`, and what sites name after %x and %j."""
FAR = 2
"""Times its last step at which the try before it begins, as far as it is shown.  A judgement."""
_NUMBERED_LOG = re.compile(
    r"(?P<name>.*?[^\d._-])[._-]?(?P<n>\d{1,3})?(?P<end>\.(?:log|out|err|txt))"
)
ENDED_JOBS = frozenset(("time-limit", "preempted", "node-failure", "requeued"))
_TAKEN_BACK = {"preempted", "requeued"}
KILLED_S = 600.0
"""Slurm kills what is left of a job 30 s after it was told to end (KillWait); sites give it
minutes."""
_BEGINNINGS = ("resume", "fresh", "checkpoint_loaded", "plan", "config")


def split(events: LogEvents, first: int) -> None:
    """Numbers the tries inside one file from `first`, where its steps go back, or a batch system
    appended the output of another job."""
    resets = _of_several_jobs(events, _resets(events))
    if len(resets) > MOST_RESETS:
        reason = f"its steps go back {len(resets)} times: it is read as one try"
        events.gaps.append(Gap("the tries in one log", reason, events.source))
        return
    if not resets:
        return
    ends, begins_at = [last for last, _ in resets], [reset for _, reset in resets]
    for track in events.tracks.values():
        for i, line in enumerate(track.lines):
            track.attempts[i] = first + bisect_right(begins_at, line)

    def n(line: int, begins: bool) -> int:
        return first + (bisect_left(ends, line) if begins else bisect_right(begins_at, line))

    events.matches = [replace(m, attempt=n(m.cite.line, False)) for m in events.matches]
    events.crashes = [replace(c, attempt=n(c.cite.line, False)) for c in events.crashes]
    events.exits = [replace(e, attempt=n(e.cite.line, False)) for e in events.exits]
    events.markers = [
        replace(m, attempt=n(m.cite.line, m.kind in _BEGINNINGS)) for m in events.markers
    ]


def _of_several_jobs(
    events: LogEvents, resets: Sequence[tuple[int, int]]
) -> Sequence[tuple[int, int]]:
    """The resets, and the ends of jobs whose output other jobs' is appended to; where steps go
    back across such an end, the end is where."""
    said = [m.cite.line for m in events.matches if "output-ends" in m.signature.tags]
    said += _cancelled_jobs(events)
    last = max((m.cite.line for m in events.matches), default=0)
    last = max(last, *(t.lines[-1] for t in events.tracks.values() if len(t)), 0)
    ends = [line for line in said if line < last]
    if not ends:
        return resets
    apart = [(a, b) for a, b in resets if not any(a <= line < b for line in ends)]
    return sorted([*apart, *((line, line + 1) for line in ends)])


def _cancelled_jobs(events: LogEvents) -> list[int]:
    """The lines by which a daemon ended all of the job, that a beginning follows long after: the
    job was queued again, and wrote on into its log."""
    begun = [m.cite for m in events.markers if m.kind in _BEGINNINGS[:3]]
    return [
        m.cite.line for m in events.matches
        if ENDED_JOBS & set(m.signature.tags) and "*** JOB " in m.cite.text and any(
            cite.line > m.cite.line and cite.at and m.cite.at
            and (cite.at - m.cite.at).total_seconds() >= KILLED_S for cite in begun
        )
    ]  # fmt: skip


def _started_again(events: LogEvents) -> Callable[[int, int], bool]:
    """Tells whether the program began again between two lines of progress though its steps go on,
    as where a launcher restarts its workers from a checkpoint: it said from which step it goes
    on, or a process ended, or its machine or its turn was taken back, and a beginning follows."""
    begun = sorted(m.cite.line for m in events.markers if m.kind in _BEGINNINGS[:3])
    taken = (m.cite.line for m in events.matches if _TAKEN_BACK & set(m.signature.tags))
    ended = sorted([*(e.cite.line for e in events.exits), *taken])
    numbered = sorted(
        m.cite.line for m in events.markers if m.kind == "resume" and m.progress.step
    )

    def told(old: int, new: int) -> bool:
        if _between(numbered, old, new):
            return True
        at = bisect_right(ended, old)
        if at == len(ended) or ended[at] >= new:
            return False
        return _between(begun, ended[at], new)

    return told


def _between(lines: Sequence[int], old: int, new: int) -> bool:
    at = bisect_right(lines, old)
    return at < len(lines) and lines[at] <= new


def _taken_from_it(match: Match) -> bool:
    """Whether a line tells that the run's turn or its machine was over.  Steps that go back behind
    one, by however little, are a rerun's, where they never did before: then ranks that print into
    one stream are not in step."""
    tags = set(match.signature.tags)
    return bool(_TAKEN_BACK & tags or (ENDED_JOBS & tags and "*** JOB " in match.cite.text))


def _of_new_workers(
    events: LogEvents, begun: Sequence[int], taken: Sequence[int]
) -> list[tuple[int, int]]:
    """The same where other processes took over: all steps of the one stream lie below those of the
    other, and between them a machine was taken back, then a checkpoint loaded."""
    streams = sorted((t for t in events.tracks.values() if len(t)), key=lambda t: t.lines[0])
    told = []
    for a, b in pairwise(streams):
        old, new = a.lines[-1], b.lines[0]
        at = bisect_right(taken, old)
        if old < new and at < len(taken) and taken[at] < new and _between(begun, taken[at], new):
            told.append((old, new))
    return told


def _of_epochs(
    track: Track, begun: Sequence[int], taken: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """Of one that counts epochs alone: folds and stages begin at their first as well, so that
    only those that go back behind the word that the run was taken back are a rerun's."""
    last, rising = -1, True
    for i, epoch in enumerate(track.epoch):
        if not isfinite(epoch):
            continue
        if last >= 0 and epoch < track.epoch[last]:
            lines = track.lines[last], track.lines[i]
            at = bisect_right(taken, lines[0])
            ended = at < len(taken) and taken[at] < lines[1]
            goes_on = rising and len(track) - i > GOES_ON_AFTER
            if ended and (goes_on or _between(begun, taken[at], lines[1])):
                yield lines
                rising = True
            else:
                rising = False
        last = i


def _of_steps(
    track: Track,
    begun: Sequence[int],
    taken: Sequence[int],
    again: Callable[[int, int], bool],
) -> Iterator[tuple[int, int]]:
    last = -1
    interval = 1
    rising = True
    for i, step in enumerate(track.steps):
        if step < 0:
            continue
        if last >= 0 and step < track.steps[last]:
            back = track.steps[last] - step
            lines = track.lines[last], track.lines[i]
            said = _between(begun, *lines)
            said |= rising and len(track) - i > GOES_ON_AFTER and _between(taken, *lines)
            rising = False
            epoch = track.epoch[i] > track.epoch[last]
            if not epoch and (back >= RESET_INTERVALS * interval or said):
                yield lines
                last, rising = i, True
            continue
        if last >= 0 and step > track.steps[last]:
            interval = step - track.steps[last]
        if last >= 0 and again(track.lines[last], track.lines[i]):
            yield track.lines[last], track.lines[i]
        last = i


def _resets(events: LogEvents) -> list[tuple[int, int]]:
    """(last line of the old try's progress, first line of the new one's), in order."""
    found: list[tuple[int, int]] = []
    begun = sorted(m.cite.line for m in events.markers if m.kind in _BEGINNINGS[:3])
    taken = sorted(m.cite.line for m in events.matches if _taken_from_it(m))
    again = _started_again(events)
    for track in telling(events.tracks.values()):
        if any(step >= 0 for step in track.steps):
            found += _of_steps(track, begun, taken, again)
        else:
            found += _of_epochs(track, begun, taken)
    found += _of_new_workers(events, begun, taken)
    merged: list[tuple[int, int]] = []
    for old, new in sorted(found):
        if merged and old < merged[-1][1]:  # another rank's view of the same new beginning
            merged[-1] = (max(merged[-1][0], old), min(merged[-1][1], new))
        else:
            merged.append((old, new))
    return merged
