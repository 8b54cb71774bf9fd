"""When progress was last seen, and how far apart its signs usually are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from statistics import median

from flatline.facts import Facts
from flatline.judging.timeline import instant
from flatline.model import Cite, DerivedCite, LogCite
from flatline.signals import ACTIVITY
from flatline.tracks import Track

LIKE_BEFORE = 1.5
"""A pause up to so many times the longest that the run came back from is nothing new."""
RECENT = 20
"""Points over which the usual interval is taken: late ones, since pace drifts over a run."""

LOOKED_S = 60.0
"""Silence that tells nothing yet: what a program prints is buffered, records and metrics are read
some scrapes later."""
AT_ONCE = 0.01
"""Of the interval: a loss, a bar and a rate that are printed as far apart are of one step."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The last dated sign of progress, and the usual and the longest seconds between such signs
    (None from fewer than three)."""

    last: LogCite
    at: datetime
    interval_s: float | None
    longest_s: float | None = None

    @property
    def pauses_s(self) -> float:
        """What silence the run has broken before: an evaluation, a checkpoint, a long batch."""
        return LIKE_BEFORE * (self.longest_s or 0.0)


def pace(facts: Facts, attempt: int | None = None) -> Pace | None:
    """Over steps, evaluations and checkpoints of an attempt (the last by default)."""
    n = facts.last.n if attempt is None else attempt
    best: Pace | None = None
    for track in facts.tracks:
        span = track.of_attempt(n)
        dated = [t for t in track.at[span.start : span.stop] if t == t]
        if not dated:
            continue
        index = track.at.index(max(dated), span.start, span.stop)
        at = track.time(index)
        if at is not None and (best is None or at > best.at):
            each = [*_of_each(track, span)]
            best = Pace(facts.point(track, index).cite, at, _interval(each), _longest(each))
    undated = _undated_after(facts, n)
    signs = [
        (m.cite.at, m.cite)
        for m in facts.markers_of("eval", "checkpoint_saved", "finished")
        if m.cite.at is not None and m.attempt == n
        and m.cite.line >= undated.get(m.cite.source, 0)
    ]  # fmt: skip
    if signs:
        at, cite = max(signs, key=lambda sign: sign[0])
        if best is None or at > best.at:
            dated = [t.timestamp() for t, _ in signs]
            usual = best.interval_s if best else _interval(dated)
            best = Pace(cite, at, usual, best.longest_s if best else _longest(dated))
    return best


def _of_each(track: Track, span: range) -> Iterator[float]:
    """The first time that is told of each step: several lines may be of one."""
    last = -1
    for at, step in zip(track.at[span.start : span.stop], track.steps[span.start : span.stop],
                        strict=True):  # fmt: skip
        if at == at and (step < 0 or step != last):
            yield at
            last = step


def _undated_after(facts: Facts, n: int) -> dict[str, int]:
    """By log the line of its last undated step: a date before it is not of the last progress."""
    found: dict[str, int] = {}
    for track in facts.tracks:
        span = track.of_attempt(n)
        last = span[-1] if span else None
        if last is not None and track.at[last] != track.at[last]:
            found[track.source] = max(found.get(track.source, 0), track.lines[last])
    return found


def lost_its_dates(facts: Facts, seen: Pace) -> bool:
    """Whether the steps that were dated up to that sign went on without a readable date: it is
    not the last progress, and how long ago that was is open."""
    for track in facts.tracks:
        span = track.of_attempt(facts.last.n)
        if track.source != seen.last.source or not span:
            continue
        dated = [track.at[i] == track.at[i] for i in span]
        until = sum(track.lines[i] <= seen.last.line for i in span)
        if until >= RECENT <= len(dated) - until and all(dated[:until]) != any(dated[until:]):
            return True
    return False


def _interval(stamps: list[float]) -> float | None:
    late = sorted(set(stamps))[-RECENT:]
    gaps = sorted(b - a for a, b in pairwise(late))
    apart = [gap for gap in gaps if gap > AT_ONCE * gaps[3 * len(gaps) // 4]]
    return median(apart) if len(gaps) >= 2 else None


def _longest(stamps: list[float]) -> float | None:
    times = sorted(set(stamps))
    return max((b - a for a, b in pairwise(times)), default=None) if len(times) > 2 else None


def silence(pace_: Pace, until: datetime, end: Cite) -> tuple[float, DerivedCite]:
    """Seconds from the last progress to an end, with the derivation."""
    seconds = (until - pace_.at).total_seconds()
    cite = DerivedCite(
        method="elapsed@1",
        inputs=(pace_.last, end),
        params=(),
        value=round(seconds, 3),
        text=f"{seconds:.0f} s from the last progress to the end",
        unit="s",
        tolerance=1.0,
    )
    return seconds, cite


SAID_ON_S = 1_800.0
"""A judgement: an evaluation or a save that prints the same line for so long, without a count that
goes up, is as rare as a trainer that prints no step for so long and works."""
SAID_ON_LINES, SAID_ON_KINDS = 24, 3
"""Among so many last lines there are no more that differ in more than their time."""
SAID_SINCE = 5
"""Lines below the last step in which a program says what it begins."""
_BUSY = re.compile(
    r"(?i)retry|upload|download|sav(?:e|ing)|writ(?:e|ing)|copy|sync|eval|generat|sleep|export|resiz"
    r"|autoscal|\bGET\b|\bPOST\b|finish|done\b|complete|process(?:ed|ing)|inspect|read of|load"
)
_STAMP = re.compile(r"\d{1,4}[-/]\d\d?[-/]\d{1,4}|\d\d?:\d\d:\d\d(?:[.,]\d+)?")
STILL_INTERVALS = 10.0
STILL_S = 30.0
"""A run that has printed nothing for ten of its usual intervals, and for longer than a checkpoint
of a small model takes, stands still or does something it had not done before."""
TELLING = ("gpu_power_watts", *ACTIVITY, "host_procs_running")
TAKEN_S, READ_ON_S = 120.0, 300.0
"""Within so long of the last step's line metrics end that were taken with it, and before the end
of the run by so much or more."""


def standstill(facts: Facts) -> tuple[Pace, float, DerivedCite, Cite] | None:
    """
    Progress that had stopped well before the run was ended from outside, with what dates the end.

    Needs a dated end (the limit, a cancel, a log that goes on saying one thing) and the usual
    interval: silence proves nothing without another source that shows time passing. After the
    program's own end nothing is to come.
    """
    seen = pace(facts)
    ended = wall(facts) or _cancel(facts) or (_waits_on(facts, seen) if seen else None)
    if seen is None or seen.interval_s is None or ended is None or facts.end_seen:
        return None
    seconds, derived = silence(seen, *ended)
    if seconds < max(STILL_INTERVALS * seen.interval_s, STILL_S, seen.pauses_s):
        return None
    if _read_until_then(facts, seen, ended[0]):
        return None
    return seen, seconds, derived, ended[1]


def _read_until_then(facts: Facts, seen: Pace, ended: datetime) -> bool:
    """Whether the metrics of the run's hosts end with the log, long before the run did: what was
    read was taken then, and tells nothing of the rest."""
    slack_s = max(TAKEN_S, 2 * (seen.interval_s or 0.0))
    silent_s = int((ended - seen.at).total_seconds() - slack_s)
    if silent_s < READ_ON_S or facts.window is None:
        return False
    signals = [name for name in TELLING if facts.measured(name)]

    def read(name: str, at: datetime, length_s: int) -> bool:
        query = f"count(count_over_time({name}[{length_s}s]))"
        answer = instant(facts, query, float(int(at.timestamp())))
        return answer is not None and bool(answer.rows)

    return any(read(name, seen.at, int(slack_s)) for name in signals) and not any(
        read(name, ended, silent_s) for name in signals)  # fmt: skip


def silent_while_it_runs(facts: Facts) -> tuple[Pace, float, DerivedCite, Cite] | None:
    """The same of a job that its record says is running: its log may be a copy from before, so
    that other evidence must show that it stands still."""
    seen, job = pace(facts), facts.job
    if seen is None or seen.interval_s is None or job is None or facts.now is None:
        return None
    if facts.disposition != "running" or facts.end_seen:
        return None
    seconds, derived = silence(seen, facts.now, job.cite)
    if seconds < max(STILL_INTERVALS * seen.interval_s, STILL_S, seen.pauses_s):
        return None
    return seen, seconds, derived, job.cite


def _waits_on(facts: Facts, seen: Pace) -> tuple[datetime, Cite] | None:
    """The end of a log that for long has said one thing again and again, and no step."""
    last = facts.last_lines.get(seen.last.source) if isinstance(seen.last, LogCite) else None
    if last is None or last.at is None or facts.disposition not in ("unknown", "running"):
        return None
    if facts.crashes or (last.at - seen.at).total_seconds() < SAID_ON_S:
        return None
    lines = range(max(seen.last.line, last.line - SAID_ON_LINES) + 1, last.line + 1)
    said = [_STAMP.sub("", facts.text(last.source, line)).strip() for line in lines]
    kinds = {*said} - {""}
    if len(said) < SAID_ON_LINES or not 1 <= len(kinds) <= SAID_ON_KINDS:
        return None
    since = facts.lines(last.source, seen.last.line + 1, SAID_SINCE)
    if any(map(_BUSY.search, (*kinds, *since))) or len(
        {t.source for t in facts.tracks if len(t)}
    ) > len(facts.ranks or (0,)):
        return None  # it says what it does, or steps are told of elsewhere as well
    if any(bar.cite.source != last.source for bar in facts.markers_of("bar")):
        return None
    return last.at, last


def _cancel(facts: Facts) -> tuple[datetime, Cite] | None:
    for match in facts.standing("cancelled"):
        if match.cite.at is not None and not match.cite.at_assumed:
            return match.cite.at, match.cite
    job = facts.job
    if job is not None and job.disposition == "cancelled" and job.ended_at is not None:
        return job.ended_at, job.cite
    return None


def wall(facts: Facts) -> tuple[datetime, Cite] | None:
    """When the wall-clock limit was reached, and what says so."""
    for match in facts.standing("time-limit"):
        if match.cite.at is not None and not match.cite.at_assumed:
            return match.cite.at, match.cite
    job = facts.job
    if job is not None and job.disposition == "timeout" and job.ended_at is not None:
        return job.ended_at, job.cite
    return None
