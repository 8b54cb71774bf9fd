"""
A run whose state no record tells, but whose pods Kubernetes told of as they started, or of which
somebody wrote down when it was looked at.

A log that ends may be that of a run that died without a word, or a copy that is older than it.
Such a run still went on where its log, the metrics and its GPUs' work reach to the same end, and
no event says that any pod was stopped, failed or done since; or where that end is the moment at
which all of it was collected, by a note beside it: a run that had died would have been found so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from statistics import median

from flatline.facts import Facts
from flatline.judging.by_work import WORK
from flatline.judging.claims import claim
from flatline.judging.gpus import readings
from flatline.judging.own_clock import own_clock
from flatline.judging.pace import Pace
from flatline.judging.timeline import instant, usual
from flatline.model import Claim, LogCite

STARTED, COLLECTED, EVENTS_OF = "kubernetes-started", "notes-collected", "kubernetes"
NOTE_LINES = 12
"""A note is no longer; a program may say of data that it was collected."""
_MOMENT = re.compile(r"20\d\d-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?")
NOTED_EARLY_S = 60.0
"""What is collected first may be the note."""
MOST_ROWS = 2_000
_REASON = re.compile(r"\b(?:Normal|Warning)\s+(\w+)\s+\w+/[a-z0-9]")
BEFORE_IT_RAN = frozenset(
    ("Scheduled", "Pulling", "Pulled", "Created", "Started", "SuccessfulCreate",
     "SuccessfulCreatePod", "SuccessfulCreateService", "FailedScheduling",
     "SuccessfulAttachVolume", "AddedInterface", "TriggeredScaleUp", "NotTriggerScaleUp")
)  # fmt: skip
"""What events say of a pod until it runs (kubernetes/kubernetes pkg/kubelet/events, scheduler and
controllers, Kubeflow's trainer, cluster-autoscaler, multus)."""
DRAWS = WORK[:2]
"""What falls where a GPU waits; utilisation does not."""
COPIED_S = 180.0
"""From the copy of a log to when the rest was collected by hand: a judgement.  Who looks at a run
that hangs finds its log silent for minutes, and one that computes little draws as much then."""
INTERVALS, LEAST_S = 2.0, 120.0
"""Of progress, within which the metrics and the log end: a step may be under way, and a level is
told from some samples."""
UNUSED = 0.25
"""Of what the GPU that did most did since the first step: one below it is not the run's, or is not
used."""
EACH, ALL = 0.8, 0.9
"""Of what a GPU drew since the first step: each at the end, and the one in the middle.  What waits
draws less than 0.8 of it (`spinning`).  A judgement."""


@dataclass(frozen=True, slots=True)
class Unrecorded:
    """The last word of a pod that started, or the note of when it was collected, and that the GPUs
    worked to the end."""

    cite: LogCite
    at_work: Claim


def still_at_work(facts: Facts, seen: Pace | None, first: datetime | None) -> Unrecorded | None:
    """None where any of it is not known, or the run is known to have ended; `seen` is its last
    progress, `first` the moment of its first."""
    if facts.job is not None or facts.disposition != "unknown" or facts.window is None:
        return None
    if facts.end_seen or facts.reached_plan or facts.crashes or len(facts.attempts) > 1:
        return None
    noted = _collected(facts)
    started = _started(facts) or (noted[1] if noted else None)
    if started is None or seen is None or seen.interval_s is None or facts.now is None:
        return None
    within_s = max(LEAST_S, INTERVALS * seen.interval_s)
    last = facts.window[1]
    if (max(facts.now, seen.at) - min(last, seen.at)).total_seconds() > within_s:
        return None
    if noted is not None and started is noted[1]:
        away_s = (noted[0] - seen.at).total_seconds()
        if not -NOTED_EARLY_S <= away_s <= within_s or facts.exits:
            return None
        started = replace(started, at=None)
    begins = max(filter(None, (first, started.at, facts.window[0])))
    told = _working(facts, begins.timestamp(), last.timestamp(), within_s)
    return None if told is None else Unrecorded(started, told)


def drew_on(facts: Facts, seen: Pace, since: LogCite) -> Claim | None:
    """That the GPUs worked from a run's last progress to where the metrics end, which is when it
    was looked at; `seen` is reckoned by a bar from a line above all steps, so that what the
    program loaded below that line makes it too early."""
    track, now = facts.main_track(facts.last.n), facts.now
    if track is None or now is None or facts.window is None or since.at is None:
        return None
    span, end = track.of_attempt(facts.last.n), facts.window[1]
    away_s = (max(now, end) - min(now, end)).total_seconds()
    if not own_clock(track, span) or since.line >= track.lines[span[0]] or away_s > LEAST_S:
        return None
    within_s = max(LEAST_S, (end - seen.at).total_seconds())
    return _working(facts, max(since.at, facts.window[0]).timestamp(), end.timestamp(), within_s)


def worked_on(facts: Facts, seen: Pace) -> Claim | None:
    """That the GPUs worked on from the last progress of a dated log, some minutes before it was
    looked at, to where the metrics end: what lies there is a copy from before."""
    track, now = facts.main_track(facts.last.n), facts.now
    if track is None or now is None or facts.window is None:
        return None
    first, end = track.time(track.of_attempt(facts.last.n)[0]), facts.window[1]
    away_s, beyond_s = (now - seen.at).total_seconds(), (now - end).total_seconds()
    if first is None or not 0 < away_s <= COPIED_S or beyond_s > LEAST_S:
        return None
    within_s = max(LEAST_S, (end - seen.at).total_seconds())
    return _working(facts, max(first, facts.window[0]).timestamp(), end.timestamp(), within_s)


def _started(facts: Facts) -> LogCite | None:
    """The last event of a container that was started, where the same table tells of nothing that
    comes later in a pod's life."""
    said = [m.cite for m in facts.matches if m.signature.id == STARTED and m.cite.at is not None]
    if not said or len({cite.source for cite in said}) != 1:
        return None
    rows = facts.lines(said[0].source, 1, MOST_ROWS, 400)
    reasons = [found[1] for row in rows if (found := _REASON.search(row))]
    if len(rows) == MOST_ROWS or "Started" not in reasons or {*reasons} - BEFORE_IT_RAN:
        return None
    return said[-1]


def _collected(facts: Facts) -> tuple[datetime, LogCite] | None:
    """When a note that lies beside the logs says that they were collected, and it; None where
    notes differ, or Kubernetes told of the run's pods."""
    said = [m for m in facts.matches if m.signature.id == COLLECTED]
    if any(m.signature.origin == EVENTS_OF for m in facts.matches):
        return None
    stepped = {track.source for track in facts.tracks}
    most = NOTE_LINES + 1
    notes = [m for m in said if m.cite.source not in stepped
             and len(facts.lines(m.cite.source, 1, most, 200)) < most]  # fmt: skip
    moments = {at for m in notes if (at := _moment(m.cite.text)) is not None}
    return (moments.pop(), notes[0].cite) if len(moments) == 1 else None


def _moment(text: str) -> datetime | None:
    """As it is written, or in UTC: as near to the last step as a note must lie no other zone
    would lay it."""
    told = _MOMENT.search(text)
    try:
        at = datetime.fromisoformat(told[0]) if told else None
    except ValueError:
        return None
    return at if at is None or at.tzinfo else at.replace(tzinfo=UTC)


def _read_on(facts: Facts, signal: str, end: float, length_s: int) -> bool:
    """Whether a server, of which no more is read than up to a log's last line, knows more."""
    later = instant(facts, f"count(count_over_time({signal}[{length_s}s]))", end + 2 * length_s)
    return later is not None and bool(later.rows)


def _working(facts: Facts, begins: float, ends: float, within_s: float) -> Claim | None:
    """That every GPU drew at the end about what it had drawn since the first step."""
    signal = next(filter(facts.measured, DRAWS), None)
    end, whole_s, last_s = float(int(ends)), int(ends - begins), int(within_s)
    if signal is None or whole_s < 2 * last_s or _read_on(facts, signal, end, last_s):
        return None
    now, ever = (
        readings(instant(facts, f"avg_over_time({signal}[{length_s}s])", end))
        for length_s in (last_s, whole_s)
    )
    if now is None or ever is None or now.rows.keys() != ever.rows.keys():
        return None
    levels = {place: ever.value(place, end) or 0.0 for place in ever.rows}
    at_work = {p: level for p, level in levels.items() if level > UNUSED * max(levels.values())}
    part = [(now.value(place, end) or 0.0) / level for place, level in at_work.items()]
    if not part or min(part) < EACH or median(part) < ALL:
        return None
    cites = [
        usual(facts, f"avg_over_time({signal}[{length_s}s])", end, f"the median GPU, {text}")
        for length_s, text in ((last_s, "at the end"), (whole_s, "since the first step"))
    ]
    text = (f"In the last {last_s} s of the metrics every GPU that it used was at {min(part):.0%}"
            " or more of its mean since the first step")  # fmt: skip
    return claim(text, *cites) if all(cites) else None
