"""
When an undated log last told of progress: its last dated line, and the steps that followed it.

Trainers print steps without a time between lines of a library that has one.  What the steps say
they took leaves out what lies between them, so that progress is placed too early, never too late:
good enough to show that a run goes on, and no proof that one stands still.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from math import inf, isfinite
from statistics import median

from flatline.facts import Facts, Track
from flatline.judging.by_its_bar import by_its_bar
from flatline.judging.own_clock import own_clock
from flatline.judging.pace import RECENT, Pace
from flatline.judging.timeline import usual
from flatline.logs.clock import Clock
from flatline.model import Cite, LogCite, QueryCite

COUNTED_S, BEHIND = 120.0, 5
"""A counter is scraped some times in as long, and may lag the log by so many steps: of another run
it would be elsewhere."""
POINT_S, MOST_POINTS = 15.0, 5_000
"""Seconds between looks at a counter, and so many of them at most."""
LOOKED_BACK, STAMP_CHARS = 2_000, 200
"""Lines above the last step, and where in one a stamp stands."""
BAR_CHARS = 400
_BEGINS = re.compile(r"\| 0/\d{1,12} \[00:00[<?]")
"""A bar of tqdm as it is drawn first."""
FIRST, COMPILED_S = 1, 160.0
"""The step, counted from nought or one, which is compiled as it is made: a dated line within it
places what follows too early by most of it.  So much of it, at most, that half as long again,
which a pause may take, is what a job may take to load (`healthy`)."""
EARLY, LOADED = timedelta(minutes=2), timedelta(minutes=25)
"""Between a job's start by its record and the first date in its log: zones are half an hour apart
at the least, and clocks of hosts some seconds."""
LEAST = 3
"""Points: an interval is told from no fewer."""


def lately(facts: Facts) -> tuple[Pace, Cite | None] | None:
    """
    The last progress of the main track with what it is reckoned from, where that is not its own
    line: a dated line before it, or the job's start on record.

    None where its points are dated, do not say what they took, or nothing tells when that began.
    """
    track = facts.main_track(facts.last.n)
    if track is None:
        return None
    span = track.of_attempt(facts.last.n)
    if len(span) < LEAST or any(isfinite(track.at[i]) for i in span):
        return None
    said = [(m.attempt, m.cite) for m in facts.markers] + [
        (m.attempt, m.cite) for m in facts.matches
    ]
    last = track.lines[span[-1]]
    own = [cite for attempt, cite in said
           if attempt == facts.last.n and cite.source == track.source]  # fmt: skip
    dated = [cite for cite in own if cite.at and not cite.at_assumed and cite.line < last]
    dated += _last_dated(facts, track, last)
    anchor = max(dated, key=lambda cite: cite.line, default=None)
    took = {b: (track.steps[b] - track.steps[a]) * track.step_s[b] for a, b in pairwise(span)
            if track.steps[b] != track.steps[a] or isfinite(track.step_s[b])}  # fmt: skip
    if (told := _line_below(facts, track, span[-RECENT:])) is not None:
        return told
    if anchor is None or anchor.at is None:
        return _since_its_start(facts, track, span) or by_its_bar(facts, track)
    if clocked := _by_clock(track, own_clock(track, span), dated):
        at, interval_s = clocked
        return Pace(facts.point(track, span[-1]).cite, at, interval_s), anchor
    if any(not isfinite(length) or length <= 0 for length in took.values()):
        return _since_its_start(facts, track, span)
    since = [i for i in span if track.lines[i] > anchor.line]
    seconds = sum(took.get(i, 0.0) for i in since[1:]) + _bar_had_run(
        facts, track, anchor.line, since
    )
    usual = median(list(took.values())[-RECENT:])
    at = anchor.at + timedelta(seconds=seconds)
    under_way_s = track.step_s[since[0]] if since and track.steps[since[0]] <= FIRST else 0.0
    longest_s = min(under_way_s, COMPILED_S) if isfinite(under_way_s) else None
    return Pace(facts.point(track, span[-1]).cite, at, usual, longest_s), anchor


def _bar_had_run(facts: Facts, track: Track, line: int, since: Sequence[int]) -> float:
    """Seconds that a bar had run at the first of these points, where it began below a line: it is
    drawn at 00:00 there."""
    first = track.lines[since[0]] if since else line
    if not since or not isfinite(track.since_s[since[0]]):
        return 0.0
    between = facts.lines(track.source, line + 1, first - line - 1, BAR_CHARS)
    return float(track.since_s[since[0]]) if any(map(_BEGINS.search, between)) else 0.0


def _last_dated(facts: Facts, track: Track, line: int) -> list[LogCite]:
    """The nearest line above this one that says when it was printed, which is when anything was
    last said in its log, where any that tells of something says when; none where it says so in
    another zone's time."""
    began = facts.job.started_at if facts.job is not None else None
    seen = facts.last_seen.get(track.source)
    clock = Clock(began.year if began is not None else None)  # glog's dates have none
    first = max(1, line - LOOKED_BACK)
    above = facts.lines(track.source, first, line - first, STAMP_CHARS)
    for n in range(len(above) - 1, -1, -1):
        if (stamp := clock.read(above[n])) is not None:
            if stamp.at != seen and (seen is not None or not _begins_with(facts, track, began)):
                return []
            text = facts.text(track.source, first + n)
            return [LogCite(track.source, first + n, text, track.place, stamp.at)]
    return []


def _begins_with(facts: Facts, track: Track, began: datetime | None) -> bool:
    """Whether the first date of a log lies soon after its job's start, where that is known: in
    another zone's time a run that has stood for an hour would look as if it had not."""
    if began is None:
        return True
    clock = Clock(began.year)
    head = map(clock.read, facts.lines(track.source, 1, LOOKED_BACK, STAMP_CHARS))
    first = next(filter(None, head), None)
    return first is not None and -EARLY <= first.at - began <= LOADED


def _since_its_start(facts: Facts, track: Track, span: range) -> tuple[Pace, Cite] | None:
    """As early as it can have been, where the job began on record and did nothing but these
    steps."""
    job, ran = facts.job, own_clock(track, span)
    if job is None or job.started_at is None or facts.last.n > 0:
        return None
    if ran:
        lengths = [b - a for a, b in pairwise(ran.values())]
        seconds = max(ran.values())
    else:
        took = {track.steps[i]: track.step_s[i] for i in span if isfinite(track.step_s[i])}
        many = {b: b - a for a, b in pairwise(sorted(set(track.steps[span.start : span.stop])))}
        told = [step for step in many if step in took or step != max(many)]
        lengths = [many[step] * took.get(step, inf) for step in told]
        seconds = sum(lengths)
    if len(lengths) + 1 < LEAST or any(not isfinite(one) or one <= 0 for one in lengths):
        return None
    at = job.started_at + timedelta(seconds=seconds)
    return Pace(facts.point(track, span[-1]).cite, at, median(lengths[-RECENT:])), job.cite


def _line_below(facts: Facts, track: Track, span: Sequence[int]) -> tuple[Pace, None] | None:
    """By the dated line that stands right below each of the last steps."""
    clock, cites = Clock(), list[LogCite]()
    for index in span:
        line = track.lines[index] + 1
        text = "".join(facts.lines(track.source, line, 1))
        stamp = clock.read(text)
        if stamp is None or (index + 1 < len(track) and track.lines[index + 1] <= line):
            return None
        cites.append(LogCite(track.source, line, text, track.place, stamp.at, stamp.assumed))
    times = [cite.at for cite in cites if cite.at is not None]
    if len(times) < LEAST or times != sorted(times):
        return None
    apart_s = median((b - a).total_seconds() for a, b in pairwise(times))
    return Pace(cites[-1], times[-1], apart_s), None


def _by_clock(
    track: Track, ran: Mapping[int, float], dated: Sequence[LogCite]
) -> tuple[datetime, float] | None:
    """When the last step was made at the earliest, by the program's own clock and what was printed
    before a step; and what that clock usually runs from one step to the next."""
    lines, times = [track.lines[i] for i in ran], [*ran.values()]
    began = [
        cite.at - timedelta(seconds=times[below])
        for cite in dated
        if cite.at is not None and (below := bisect_right(lines, cite.line)) < len(lines)
    ]
    if len(ran) < LEAST or not began:
        return None
    usual_s = median(b - a for a, b in pairwise(times[-RECENT:]))
    return max(began) + timedelta(seconds=times[-1]), usual_s


def counted(facts: Facts, intervals: float) -> tuple[tuple[QueryCite, QueryCite], float] | None:
    """That the run's step counter in the metrics rose within so many of its steps' own times
    before now, and that time in seconds: how often it rose, and where it stands, which is where
    its log ends.  None where that is not known or it did not."""
    track = facts.main_track(facts.last.n)
    if track is None or facts.now is None or not facts.measured("training_step"):
        return None
    said = [track.step_s[i] for i in track.of_attempt(facts.last.n) if isfinite(track.step_s[i])]
    if len(said) < LEAST or facts.last_step is None:
        return None
    within_s, now = max(COUNTED_S, intervals * median(said[-RECENT:])), facts.now.timestamp()

    def asked(query: str, text: str, reduce: str) -> QueryCite | None:
        return usual(facts, query, now, text, reduce)

    window = f"[{int(within_s)}s]"
    rose = asked(f"changes(training_step{window})", "how often the step counter rose", "max({})")
    fell = asked(f"resets(training_step{window})", "how often it fell", "max({})")
    stands = [asked("training_step", "the step counter", f"{how}({{}})") for how in ("min", "max")]
    known = [cite for cite in stands if cite is not None]
    if rose is None or rose.value < 1 or fell is None or fell.value > 0 or len(known) < 2:
        return None
    if any(abs(cite.value - facts.last_step) > BEHIND for cite in known):
        return None
    return (rose, known[1]), within_s


def last_counted(facts: Facts) -> float | None:
    """When the run's step counter in the metrics rose last (POSIX seconds), where it stood then
    where the log ends; None where that is not known."""
    if facts.window is None or facts.last_step is None or not facts.measured("training_step"):
        return None
    start, end = facts.window
    step_s = max(POINT_S, (end - start).total_seconds() / MOST_POINTS)
    answer = facts.series("max(training_step)", start=start, end=end, step_s=step_s)
    rows = () if answer is None else answer.rows
    known = [(at, value) for row in rows[:1] for at, value in row.points() if isfinite(value)]
    rose = [(b, now) for (_, before), (b, now) in pairwise(known) if now > before]
    if len(rose) < LEAST or abs(rose[-1][1] - facts.last_step) > BEHIND:
        return None
    return float(rose[-1][0])
