"""From records and log markers to one job, its attempts, and how each ended."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TypeVar

from flatline.collect.elsewhere import died_elsewhere, failed_elsewhere
from flatline.errors import ManyJobs
from flatline.facts import Marker, Track
from flatline.model import (
    Attempt,
    Crash,
    Disposition,
    Job,
    Match,
    ProcessExit,
)
from flatline.redact import mask
from flatline.tracks import GOES_ON_AFTER, LEAVING_LINES, Plan, leaving, plan_of, reached

E = TypeVar("E", Crash, ProcessExit)
_MARKS: tuple[tuple[str, Disposition], ...] = (
    ("time-limit", "timeout"),
    ("node-failure", "node_fail"),
    ("preempted", "preempted"),
    ("requeued", "requeued"),
)


def choose(jobs: Sequence[Job], wanted: str | None, named: str | None) -> tuple[Job, ...]:
    """
    The rows of the job that is meant.

    Raises `ManyJobs` where the records hold several and neither --job nor the target's own
    name says which.  What `squeue` lists besides may be anybody's: it is left out then.
    """
    known = {job.id for job in jobs if not job.listed}
    if wanted is None and named not in {job.id for job in jobs}:
        if not known and len({job.id for job in jobs}) > 1:
            return ()
        jobs = [job for job in jobs if job.id in known or not known]
    ids = list(dict.fromkeys(job.id for job in jobs))
    if wanted is not None:
        return tuple(job for job in jobs if job.id == wanted)
    if len(ids) <= 1:
        return tuple(jobs)
    if named in ids:
        return tuple(job for job in jobs if job.id == named)
    last = {job.id: job for job in jobs}
    raise ManyJobs(tuple((i, mask(last[i].name or ""), last[i].state) for i in ids))


def attempts(
    jobs: Sequence[Job],
    matches: Sequence[Match],
    tracks: Sequence[Track],
    ended: Disposition,
    numbers: Sequence[int],
    earlier: Callable[[int], Disposition] = lambda n: "failed",
    told: tuple[str, ...] = (),
) -> tuple[Attempt, ...]:
    """
    The tries of the run: accounting rows where there are any, else the tries the logs show.

    Rows are matched to the tries where there is one for each: logs of an elastic restart live in
    one row.  The last attempt carries how the run ended, an earlier one its row or what `earlier`
    says.  `told` are the hosts the log names, where there is no row.
    """
    last = max((*numbers, len(jobs) - 1, 0))
    each = len(jobs) == last + 1
    made = []
    for n in range(last + 1):
        row = jobs[n] if each else jobs[-1] if jobs else None
        steps = [
            track.steps[i] for track in tracks for i in track.of_attempt(n) if track.steps[i] >= 0
        ]
        final = n == last
        ends = row if each or final else None
        made.append(
            Attempt(
                n=n,
                disposition=ended if final else row.disposition if row and each else earlier(n),
                started_at=row.started_at if row and (each or n == 0) else None,
                ended_at=ends.ended_at if ends else None,
                exit_code=ends.exit_code if ends else None,
                signal=ends.signal if ends else None,
                hosts=row.nodes if row else told,
                first_step=min(steps, default=None),
                last_step=max(steps, default=None),
                cites=(ends.cite,) if ends else (),
            )
        )
    return tuple(made)


def how_it_ended(
    job: Job | None,
    matches: Sequence[Match],
    crashes: Sequence[Crash],
    exits: Sequence[ProcessExit],
    tracks: Sequence[Track],
    markers: Sequence[Marker],
    kernel: frozenset[str] = frozenset(),
    attempt: int = 0,
    lines: Mapping[str, int] | None = None,
) -> Disposition:
    """
    The record's word where there is one, else the log's; "unknown" where neither says.

    A record of a completed job is the exit status of its script, which is that of the script's
    last command: where the log shows that the program died before its end, the log is believed.
    `kernel` names files of the whole host: their lines do not end the run; `lines` is how long
    each file is.  The scheduler's own word there that it ended the job is believed as well.
    """
    events = (matches, crashes, exits, tracks, markers)
    if job is not None and job.disposition != "unknown":
        if (otherwise := _told_otherwise(job, events, attempt, lines or {})) is not None:
            return otherwise
        denied = job.disposition == "completed" and _denied(events, kernel, attempt, lines or {})
        return "failed" if denied else job.disposition
    crashes, exits = _not_before(crashes, tracks, attempt), _not_before(exits, tracks, attempt)
    ended = reached_end(matches, crashes, exits, tracks, markers, attempt)
    own = {track.source for track in tracks if track.of_attempt(attempt)}
    bygone = {track.source for track in tracks} - own if own else set()  # an earlier job's log
    since = _not_bygone(matches, tracks, attempt)
    own_lines = [m for m in since if m.cite.source not in bygone and m.attempt == attempt]
    last = _after_all_steps(own_lines, tracks, lines or {})
    tags = {tag for match in last for tag in match.signature.tags}
    if ended is not None and all(_elsewhere(match, ended) for match in last):
        tags.discard("node-failure")
    for tag, disposition in _MARKS:
        if tag in tags:
            return disposition
    interrupted = any(c.exception.endswith("KeyboardInterrupt") for c in crashes)
    first = _first_failing(exits)
    if "cancelled" in tags and not _failed_before_cancel(matches, first):
        return "cancelled"
    if interrupted and first is None:
        return "cancelled"
    ignored = _ignored(matches)
    kept = [c for c in crashes if not _dropped(c, ignored)]
    if ended is not None and not (
        died_elsewhere(ended, kept, tracks, attempt)
        or failed_elsewhere(ended, matches, tracks, attempt)
    ):
        return "completed"
    if any(_failing(e) for e in exits) or _died(since, crashes, tracks, kernel):
        return "failed"
    return "unknown"


def _not_before(events: Sequence[E], tracks: Sequence[Track], attempt: int) -> list[E]:
    """Without those in logs of steps that ended an earlier try, where this one made steps."""
    went_on = any(track.of_attempt(attempt) for track in tracks)
    logs = {track.source for track in tracks if went_on}
    return [e for e in events if e.attempt == attempt or e.cite.source not in logs]


def _not_bygone(matches: Sequence[Match], tracks: Sequence[Track], attempt: int) -> list[Match]:
    """Without those that are dated before the steps of this try and of an earlier one, or of a log
    without steps beside a try that is not the first: a list of events tells of all tries."""
    stepped = {track.source for track in tracks}
    made = (track.at[i] for track in tracks for i in track.of_attempt(attempt))
    began = min((at for at in made if isfinite(at)), default=None)
    return [m for m in matches if began is None or m.cite.at is None
            or m.cite.at.timestamp() >= began
            or (m.attempt == attempt and (attempt == 0 or m.cite.source in stepped))]  # fmt: skip


def _told_otherwise(
    job: Job, events: Events, attempt: int, lines: Mapping[str, int]
) -> Disposition | None:
    """What ended a run short of its end, by the scheduler's own last word in the log, where its
    record has another state: a script's or a wrapper's."""
    if job.disposition not in ("completed", "cancelled", "failed"):
        return None
    mine = [m for m in events[0] if m.attempt == attempt]
    last = _after_all_steps(mine, events[3], lines)
    if (
        job.ran_to_its_limit
        and any("time-limit" in m.signature.tags for m in last)
        and _said_end(*events, attempt, on_record=True) is None
    ):
        return "timeout"
    as_a_whole = job.disposition == "completed" and any(
        "cancelled" in m.signature.tags
        and f" JOB {job.id} ON " in m.cite.text
        and lines.get(m.cite.source, 0) - m.cite.line <= TAIL_LINES
        for m in last
    )
    done = not as_a_whole or reached_end(*events, attempt, on_record=True) is not None
    return None if done else "cancelled"


def _elsewhere(match: Match, ended: str) -> bool:
    """Whether a line tells of no lost node, or of one in a file in which the run's end is not: it
    may be any node, and any time."""
    return "node-failure" not in match.signature.tags or match.cite.source != ended


Events = tuple[
    Sequence[Match], Sequence[Crash], Sequence[ProcessExit], Sequence[Track], Sequence[Marker]
]


TAIL_LINES = 20
"""A traceback in a log without progress ends its program only where little follows it: a script
that goes on for longer has printed what it caught."""


def _denied(
    events: Events, kernel: frozenset[str], attempt: int, lines: Mapping[str, int]
) -> bool:
    """
    Whether the log of a job that is on record as completed shows that its program died.

    That is a report of a failing process or a traceback after the last step, or, where the steps
    stop short of a stated plan, any line of a failure after them; and no sign of the end.
    """
    matches, crashes, exits, tracks, markers = events
    if _said_end(*events, attempt, on_record=True) is not None:
        return False
    tails: dict[str, int] = {}
    for track in tracks:
        if len(track):
            tails[track.source] = max(tails.get(track.source, 0), track.lines[-1])

    def ends(one: Match | Crash | ProcessExit, last: int) -> bool:
        source = one.cite.source
        if source in kernel or one.attempt != attempt:
            return False
        if source in tails:
            return one.cite.line > tails[source]
        return lines.get(source, last) - last <= TAIL_LINES

    ignored = _ignored(matches)
    if reached_end(*events, attempt, on_record=True) is not None:  # by its last step alone
        return any(
            _uncaught(c, ignored) and c.cite.source not in tails and ends(c, c.end_line)
            for c in crashes
        )
    if any(_failing(e) and ends(e, e.cite.line) for e in exits):
        return True
    if any(_uncaught(c, ignored) and ends(c, c.end_line) for c in crashes):
        return True
    short = bool(tails) and plan_of(tracks, markers) != Plan()
    return short and any(
        (m.signature.role == "root" or "timeout" in m.signature.tags) and ends(m, m.cite.line)
        for m in matches
    )


def how_a_try_ended(events: Events, n: int) -> Disposition:
    """How a try ended that another followed, by its own lines alone; "failed" where they do not
    say, for a run that was whole is not begun again."""
    matches, crashes, exits, tracks, markers = events
    mine = [m for m in matches if m.attempt == n]
    tags = {tag for match in mine for tag in match.signature.tags}
    for tag, disposition in _MARKS:
        if tag in tags:
            return disposition
    if "cancelled" in tags:
        return "cancelled"
    own = [c for c in crashes if c.attempt == n]
    left = [e for e in exits if e.attempt == n]
    return "failed" if reached_end(mine, own, left, tracks, markers, n) is None else "completed"


def _after_all_steps(
    matches: Sequence[Match], tracks: Sequence[Track], lines: Mapping[str, int]
) -> list[Match]:
    """Lines after which no steps were printed in their own file, or few as it was being ended."""

    def goes_on(match: Match) -> bool:
        cite, long = match.cite, lines.get(match.cite.source, 0)
        ends_it = any(leaving(tag, cite.line, long) for tag in match.signature.tags)
        for track in tracks:
            if track.source == cite.source:
                first = bisect_right(track.lines, cite.line)
                begins = ends_it and _further(track, first)
                if len(track) - first > (LEAVING_LINES if begins else GOES_ON_AFTER):
                    return True
        return False

    return [match for match in matches if not goes_on(match)]


def _further(track: Track, first: int) -> bool:
    """Whether the points from one on are of later steps than those before: no new attempt's."""
    return min(track.steps[first:], default=0) > max(track.steps[:first], default=-1)


def _first_failing(exits: Sequence[ProcessExit]) -> ProcessExit | None:
    return next((event for event in exits if _failing(event)), None)


def _failed_before_cancel(matches: Sequence[Match], first: ProcessExit | None) -> bool:
    """Whether a task had failed before the cancel in its file: srun cancels a step itself once
    one of its tasks has."""
    return first is not None and any(
        "cancelled" in m.signature.tags
        and m.cite.source == first.cite.source
        and m.cite.line > first.cite.line
        for m in matches
    )


def _failing(event: ProcessExit) -> bool:
    return bool(event.exit_code) or event.signal not in (None, 15)


def _died(
    matches: Sequence[Match],
    crashes: Sequence[Crash],
    tracks: Sequence[Track],
    kernel: frozenset[str],
) -> bool:
    """Whether a traceback or root line stands after the last progress of its stream's file."""
    tails: dict[str, int] = {}
    for track in tracks:
        if len(track):
            tails[track.source] = max(tails.get(track.source, 0), track.lines[-1])
    ignored = _ignored(matches)
    ends = [c.cite for c in crashes if c.complete and not c.caught and not _dropped(c, ignored)]
    ends += [m.cite for m in matches if m.signature.role == "root" and m.cite.source not in kernel]
    return any(cite.line > tails.get(cite.source, 0) for cite in ends)


def reached_end(
    matches: Sequence[Match],
    crashes: Sequence[Crash],
    exits: Sequence[ProcessExit],
    tracks: Sequence[Track],
    markers: Sequence[Marker],
    attempt: int = 0,
    *,
    on_record: bool = False,
) -> str | None:
    """
    The file in which the attempt shows its planned end, or None.

    That is a line of a framework that says so, the program's own word that training is over, or
    a last step that leaves no room for another within the plan; with no traceback, no root line
    and no failing exit after it there.  A log that breaks off at a step it may well have ended at
    shows none.  With the end `on_record` only a traceback speaks against it: a script ends its
    helpers once its program is done.
    """
    said = _said_end(matches, crashes, exits, tracks, markers, attempt, on_record=on_record)
    if said is not None:
        return said
    roots = _against(matches, crashes, exits, on_record=on_record)
    plan = plan_of(tracks, markers)
    for track in tracks:
        span = track.of_attempt(attempt)
        if (
            span
            and reached(track, span, plan)
            and not roots.after(track.source, track.lines[span[-1]])
        ):
            return track.source
    return None


def _said_end(
    matches: Sequence[Match],
    crashes: Sequence[Crash],
    exits: Sequence[ProcessExit],
    tracks: Sequence[Track],
    markers: Sequence[Marker],
    attempt: int,
    *,
    on_record: bool,
) -> str | None:
    """The file in which a line of the program or its framework says that it was done."""
    roots = _against(matches, crashes, exits, on_record=on_record)
    ends = [m.cite for m in matches if "end-ok" in m.signature.tags and m.attempt == attempt]
    done = [m for m in markers if m.kind == "finished" and m.attempt == attempt]
    lowest = _lowest(tracks, attempt) if done else {}
    by_log: dict[str, list[Track]] = defaultdict(list)
    for track in tracks if done else ():
        by_log[track.source].append(track)
    ends += [m.cite for m in done if _has_the_last_word(m, by_log[m.cite.source], lowest)]
    return next((e.source for e in ends if not roots.after(e.source, e.line)), None)


@dataclass(frozen=True, slots=True)
class _Against:
    """What speaks against an end that stands before it."""

    last: Mapping[str, int]

    def after(self, source: str, line: int) -> bool:
        return self.last.get(source, 0) > line


def _against(
    matches: Sequence[Match],
    crashes: Sequence[Crash],
    exits: Sequence[ProcessExit],
    *,
    on_record: bool,
) -> _Against:
    ignored = _ignored(matches)
    cites = [c.cite for c in crashes if _uncaught(c, ignored)]
    if not on_record:
        cites += [m.cite for m in matches if m.signature.role == "root" and not _told_of(m)]
        cites += [e.cite for e in exits if _failing(e)]
    last: dict[str, int] = {}
    for cite in cites:
        last[cite.source] = max(last.get(cite.source, 0), cite.line)
    return _Against(last)


IGNORED_LINES = 2
"""How far before its traceback `Exception ignored in` stands."""
_LOGGED = re.compile(r"\b(?:WARN(?:ING)?|ERROR|INFO|DEBUG|wandb)\b")


def _told_of(match: Match) -> bool:
    """Whether an exception stands in a message of a logger: something caught it to say so; or it
    is of what may come."""
    if "forewarns" in match.signature.tags:
        return True
    return "uncaught" in match.signature.tags and bool(_LOGGED.search(match.cite.text[:80]))


def _uncaught(crash: Crash, ignored: _Ignored) -> bool:
    """Whether a whole traceback stands for the end of its program: not where the line before it
    says that the interpreter goes on or was at its end anyway.  What a launcher raises once a
    child has failed says so without its traceback."""
    if crash.exception.endswith("ChildFailedError"):
        return True
    return (
        crash.complete
        and not crash.caught
        and crash.head != crash.cite
        and not _dropped(crash, ignored)
    )


_Ignored = frozenset[tuple[str, int]]


def _ignored(matches: Sequence[Match]) -> _Ignored:
    """Where a line says that the exception below it is dropped."""
    return frozenset(
        (m.cite.source, m.cite.line) for m in matches if "ignored-exception" in m.signature.tags
    )


def _dropped(crash: Crash, ignored: _Ignored) -> bool:
    """Whether the line before a traceback says that the interpreter goes on after it."""
    above = range(crash.head.line - IGNORED_LINES, crash.head.line + 1)
    return any((crash.cite.source, line) in ignored for line in above)


def _has_the_last_word(said: Marker, tracks: Sequence[Track], lowest: Mapping[str, int]) -> bool:
    """
    Whether nothing denies that the run was over where its program said so.

    What was trained before the first step is a tokenizer or a cluster index; a stage, a fold and
    a rank end too: no more steps were made after it in its file, and no other rank's stream stands
    behind those in the file by more than it prints at a time: `lowest` is, by format, how far the
    one has come that is least far.  `tracks` are those of its file.
    """
    line = said.cite.line
    begun = bool(said.progress.step or said.progress.epoch)
    furthest: dict[str, int] = {}
    for track in tracks:
        span = track.of_attempt(said.attempt)
        if span:
            own = track.lines[span.start : span.stop]
            begun = begun or own[0] < line
            if sum(at > line for at in own[-1 - GOES_ON_AFTER :]) > GOES_ON_AFTER:
                return False
            top = max(track.steps[i] for i in span)
            furthest[track.format] = max(top, furthest.get(track.format, -1))
    return begun and all(top <= lowest.get(kind, top) for kind, top in furthest.items())


def _lowest(tracks: Sequence[Track], attempt: int) -> dict[str, int]:
    """By format, two printing intervals beyond the last step of the stream that is least far."""
    lowest: dict[str, int] = {}
    for track in tracks:
        steps = [track.steps[i] for i in track.of_attempt(attempt) if track.steps[i] >= 0]
        if len(steps) >= 2:
            interval = max(1, steps[-1] - steps[-2])
            reached = max(steps) + GOES_ON_AFTER * interval
            lowest[track.format] = min(reached, lowest.get(track.format, reached))
    return lowest
