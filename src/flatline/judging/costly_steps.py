"""Steps that cost more than others for something the log says was done in them."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import isfinite, nan
from statistics import median

from flatline.facts import Facts, Track
from flatline.judging.by_steps import laid, spent
from flatline.judging.paced_by_saves import paced_by_saves
from flatline.judging.throughput import WARM_UP_STEPS, lasted, unaccounted
from flatline.logs.clock import Clock
from flatline.model import LogCite, Match, Place

PLAIN = 4
"""Intervals without the event that the others are compared with."""
REPEATED, TAKEN = 4, 0.1
"""Times a thing was done past the first steps, and of the time by the clock: fewer and less is a
shape or two that are compiled late, or a collection of garbage now and then.  A judgement."""
STATED = 0.5
"""Of what the steps lost so much must be had from the times a compiler states. A judgement: a step
waits as well for what it traces and loads anew, which the compiler does not count."""
LINES = 4
"""Dated lines of steps that tell how often such a line comes."""
SEVERAL, STATED_HELD = 2.0, 0.9
"""Lines of steps that a save kept from being printed, and the part of its stated time for which it
did: seconds are rounded."""
WAITED_FOR = ("host_io_pressure_seconds_total", "host_io_pressure_ratio")
_TOOK = re.compile(
    r"(?:\bin |\(|\btook |[Dd]uration ?: |\bsave time[ :=]{1,3})"
    r"([0-9]{1,6}(?:\.[0-9]{1,6})?) ?s(?:ec(?:onds?)?)?\b"
)
_OF_AN_EVALUATION = re.compile(
    r"(?i)(?:eval|valid|generat|sampl|test)(?!.*(?:sav|writ|wrote|checkpoint|ckpt))"
)
"""What a time behind it is of: the line tells of a save as well, farther on."""
_FOLDER = re.compile(r"[\w./~-]{1,300}/checkpoint-[0-9]{1,12}\b")
MOST_FILES = 40
"""Lines that transformers writes of one checkpoint, at most."""
TIMER_LINES = 3
_TIMER = re.compile(r"^\s*save-checkpoint \.{3,80}: \([0-9.]{1,16}, ([0-9.]{1,16})\)")
"""Milliseconds, of the rank that took least and of the one that took most."""
GOES_WITH = "and the time from step to step goes up and down with them"
_NO_SAVE = re.compile(
    r"\b(?:not|never|skip(?:s|ped|ping)?|without|finished|done|after|error|while) saving\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Cost:
    """What an event cost: seconds lost of seconds in all, the usual step interval and the one
    with it, how often it was, and the points of the log that show it."""

    lost_s: float
    wall_s: float
    usual_s: float
    costly_s: float
    events: int
    at: tuple[int, ...]
    attempt: int
    facts: Facts
    track: Track
    printed: bool = False
    """Whether the usual interval is what the steps print that they take, for no line is without
    the event."""

    def cite(self, index: int) -> LogCite:
        return self.facts.point(self.track, index).cite


def cost(facts: Facts, marked: Sequence[int], least: int, share: float) -> Cost | None:
    """None where fewer than `least` steps are marked, their times are not known, or they cost
    less than `share` of the time.  A mark is the step before the one that paid.  Steps between
    which the model was evaluated are left out: it is done beside saves, and costs more."""
    track = facts.main_track(facts.last.n)
    if track is None or len(marked) < least:
        return None
    when = lasted(facts, track)
    points = [i for i in track.of_attempt(facts.last.n) if i in when and track.steps[i] >= 0]
    known = _one_a_line(track, points, when)
    ordered, evaluated = sorted(marked), _evaluated(facts, track.source)
    plain: list[float] = []
    costly: list[tuple[float, int, int]] = []
    for a, b in pairwise(known):
        steps, took = track.steps[b] - track.steps[a], when[b] - when[a]
        first = bisect_right(evaluated, track.lines[a])
        between = first < len(evaluated) and evaluated[first] <= track.lines[b]
        if steps <= 0 or took < 0 or between:
            continue
        at = bisect_left(ordered, track.steps[a])
        if at < len(ordered) and ordered[at] < track.steps[b]:
            costly.append((took, steps, b))
        else:
            plain.append(took / steps)
    printed = _printed_s(track, [b for *_, b in costly]) if not plain else None
    if len(costly) < least or (len(plain) < PLAIN and printed is None):
        return None
    each = printed or median(plain)
    wall = when[known[-1]] - when[known[0]]
    paid = sorted(max(0.0, took - steps * each) for took, steps, _ in costly)
    pause = paid[-1] - paid[-2] if len(paid) > 1 else 0.0  # what one took more, as at a requeue
    lost = sum(paid)
    if wall <= 0 or lost - pause < share * (wall - pause):
        return None
    typical = sorted(costly)[len(costly) // 2]
    at = known.index(typical[2])
    shown = (known[0], known[at - 1], typical[2], known[-1])
    per_step = typical[0] / typical[1]
    return Cost(lost, wall, each, per_step, len(marked), shown, facts.last.n, facts, track,
                printed is not None)  # fmt: skip


def _one_a_line(track: Track, points: Sequence[int], when: Mapping[int, float]) -> list[int]:
    """The last point of each line: all passes of a bar that is drawn on within one have its date,
    and the whole time between two lines would be that of the first pass in the second."""
    return [
        i
        for n, i in enumerate(points, 1)
        if n == len(points)
        or track.lines[points[n]] != track.lines[i]
        or when[points[n]] != when[i]
    ]


def _printed_s(track: Track, points: Sequence[int]) -> float | None:
    """What a step takes by its own word, where it tells apart what it waited for data and hardly
    waited: else what is not told may be a loader's."""
    told = [i for i in points if isfinite(track.step_s[i]) and isfinite(track.data_s[i])]
    if len(told) < max(PLAIN, STATED_HELD * len(points)):
        return None
    each, waited = (median(column[i] for i in told) for column in (track.step_s, track.data_s))
    return each if 0 <= waited <= TAKEN * each else None


def _evaluated(facts: Facts, source: str) -> list[int]:
    """Lines of a log that tell of an evaluation, in order."""
    told = [*(marker.cite for marker in facts.markers_of("eval")),
            *(match.cite for match in facts.tagged("evaluation"))]  # fmt: skip
    return sorted(cite.line for cite in told if cite.source == source)


@dataclass(frozen=True, slots=True)
class Stated:
    """Seconds that lines on saves say these took, as far as the time outside of steps holds them,
    of how many by which clock, how often, and the lines."""

    lost_s: float
    wall_s: float
    events: int
    cites: tuple[LogCite, ...]
    clock: str
    sure: bool = True
    """Whether a clock tells that these seconds were had from the steps'."""
    how: str = "time that no step accounts for"


def stated_saves(facts: Facts) -> Stated | None:
    """Where a save follows every step nothing is left to compare with but what it says it took;
    one that is written beside the steps takes none of the time outside of them."""
    outside, clock = unaccounted(facts), "the log's clock"
    undated = laid(facts) if outside is None else None
    if undated is not None:
        outside, clock = (undated.wall_s, undated.slack_s), "the record of the run"
    told = [
        (seconds, marker.cite)
        for marker in facts.markers_of("checkpoint_saved")
        if marker.attempt == facts.last.n and (seconds := _said(facts, marker.cite)) is not None
    ]
    own = _own_times(facts) if outside is None else None
    if told and own is not None:
        saved = sum(seconds for seconds, _ in told)
        cites = tuple(cite for _, cite in told)
        return Stated(saved, saved + own, len(told), cites, "their own word", sure=False)
    if outside is None:
        return _held_by_saves(facts, told) or _by_its_lines(facts)
    if not told:
        lines = _by_its_lines(facts)
        if lines is None or _of_a_bar(facts):  # whose average a save adds to
            return lines
        return replace(lines, lost_s=min(lines.lost_s, outside[1]), wall_s=outside[0])
    lost, wall = min(sum(seconds for seconds, _ in told), outside[1]), outside[0]
    if undated is None and (paced := paced_by_saves(facts, told)) is not None:
        cites = tuple(cite for _, cite in told)
        return Stated(*paced, len(told), cites, clock, how=GOES_WITH)
    return Stated(lost, wall, len(told), tuple(cite for _, cite in told), clock)


def _of_a_bar(facts: Facts) -> bool:
    track = facts.main_track(facts.last.n)
    span = [] if track is None else track.of_attempt(facts.last.n)
    return track is not None and any(isfinite(track.since_s[i]) for i in span)


_THEN = "Deleting older checkpoint ["
"""transformers' Trainer, once the optimizer's state is written as well, which it does not tell."""


def _by_its_lines(facts: Facts) -> Stated | None:
    """Where a library dates what it writes of a checkpoint: from its word that it begins to the
    last file that it names before the next step, or to what it does when all is there."""
    track = facts.main_track(facts.last.n)
    begun = [m.cite for m in facts.tagged("save-begun") if m.attempt == facts.last.n]
    begun = [c for c in begun if c.at and not c.at_assumed and _FOLDER.search(c.text)]
    if track is None or len(begun) < LINES:
        return None
    steps = [track.lines[i] for i in track.of_attempt(facts.last.n)]
    clock, took, ended = Clock(), [], 0.0
    for cite in begun:
        folder, at = _FOLDER.search(cite.text), bisect_right(steps, cite.line)
        until = steps[at] if at < len(steps) else cite.line + MOST_FILES
        count = min(until - cite.line, MOST_FILES) - 1
        named = [text for text in facts.lines(cite.source, cite.line + 1, max(count, 0))
                 if folder and (folder[0] + "/" in text or _THEN in text)]  # fmt: skip
        # by one clock: where lines state no zone that of the run may have been found since
        stamps = [stamp for text in (cite.text, *named)
                  if (stamp := clock.either(text, text)) is not None]  # fmt: skip
        if cite.source == track.source and len(stamps) > 1:
            took.append((stamps[-1].at - stamps[0].at).total_seconds())
            ended = _moment(cite) + took[-1]
    if len(took) < LINES or len(took) < STATED_HELD * len(begun):
        return None
    wall = ended - _moment(begun[0])
    return Stated(sum(took), wall, len(took), tuple(begun), "the log's clock")


def _said(facts: Facts, saved: LogCite) -> float | None:
    """Seconds that a line on a save says it took, or Megatron's timer on the lines behind it."""
    found = _TOOK.search(saved.text)
    if found and not _OF_AN_EVALUATION.search(saved.text, 0, found.start()):
        return float(found[1])
    behind = facts.lines(saved.source, saved.line + 1, TIMER_LINES)
    timed = next(filter(None, map(_TIMER.search, behind)), None)
    return float(timed[1]) / 1e3 if timed is not None else None


def _held_by_saves(facts: Facts, told: Sequence[tuple[float, LogCite]]) -> Stated | None:
    """Where no step says how long it took: seconds of saves during which the log's clock went on
    and no step was printed, in a log that prints several in such a time."""
    track = facts.main_track(facts.last.n)
    span = [] if track is None else track.of_attempt(facts.last.n)
    at = [(track.lines[i], track.at[i]) for i in span if track and isfinite(track.at[i])]
    if track is None or len(at) < LINES:
        if track is None or not told:
            return None
        return _begun_and_ended(facts, track, told) or _between_steps(facts, track, told)
    usual = sorted(b - a for (_, a), (_, b) in pairwise(at))[len(at) // 4]
    held: list[tuple[float, float, LogCite]] = []
    for seconds, cite in told:
        before = [when for line, when in at if line < cite.line]
        ended = cite.at.timestamp() if cite.at is not None else nan
        alone = cite.source == track.source and seconds >= SEVERAL * usual
        if alone and before and ended - before[-1] >= STATED_HELD * seconds:
            held.append((seconds, ended, cite))
    if not held or len(held) < len(told):
        return None
    wall = max(at[-1][1], held[-1][1]) - at[0][1]
    cites = tuple(cite for *_, cite in held)
    return Stated(sum(lost for lost, *_ in held), wall, len(held), cites, "the log's clock")


def _begun_and_ended(
    facts: Facts, track: Track, told: Sequence[tuple[float, LogCite]]
) -> Stated | None:
    """Where steps carry no times and saves do: seconds of saves between whose beginning and end no
    step was printed, in a log that prints several in such a time from one save to the next."""
    begun = sorted((m.cite for m in facts.tagged("save-begun")
                    if m.cite.source == track.source and m.cite.at and not m.cite.at_assumed),
                   key=lambda cite: cite.line)  # fmt: skip
    steps = [track.lines[i] for i in track.of_attempt(facts.last.n)]
    pairs: list[tuple[LogCite, LogCite, float]] = []
    for seconds, end in told:
        before = bisect_left(begun, end.line, key=lambda cite: cite.line)
        if not before or end.at is None or end.at_assumed or end.source != track.source:
            return None
        start = begun[before - 1]
        if "async" in start.text + end.text:
            return None
        if bisect_left(steps, start.line) != bisect_left(steps, end.line):
            return None
        pairs.append((start, end, seconds))
    usual = [
        (_moment(start) - _moment(end)) / count
        for (_, end, _), (start, _, _) in pairwise(pairs)
        if (count := bisect_left(steps, start.line) - bisect_left(steps, end.line))
    ]
    if len(usual) < LINES - 1 or min(took for *_, took in pairs) < SEVERAL * median(usual):
        return None
    job = facts.job
    first, last = _moment(pairs[0][0]), _moment(pairs[-1][1])
    if job is not None and job.started_at is not None and job.ended_at is not None:
        first = min(first, job.started_at.timestamp())
        last = max(last, job.ended_at.timestamp())
    cites = tuple(end for _, end, _ in pairs)
    lost = sum(took for *_, took in pairs)
    # an output that its buffer holds back looks so too: the hosts must have waited for storage
    sure = job is not None and any(facts.measured(signal) for signal in WAITED_FOR)
    return Stated(lost, last - first, len(pairs), cites, "the log's clock", sure)


def _between_steps(
    facts: Facts, track: Track, told: Sequence[tuple[float, LogCite]]
) -> Stated | None:
    """Where nothing in the log has a time: saves between whose beginning and end no step was
    printed, each longer than several steps are by the run's record.  Of an output that a buffer
    holds back not every two saves would have steps between them."""
    (began, ended), job = facts.lived, facts.job
    ended = ended or facts.now
    if job is None or job.started_at is None or began is None or ended is None:
        return None
    begun = sorted(
        m.cite.line for m in facts.tagged("save-begun") if m.cite.source == track.source
    )
    steps = [track.lines[i] for i in track.of_attempt(facts.last.n)]
    made = []
    for _, end in told:
        before = bisect_left(begun, end.line)
        start = begun[before - 1] if before else None
        if start is None or end.source != track.source:
            return None
        if "async" in facts.text(end.source, start) + end.text:
            return None
        made.append(bisect_left(steps, end.line))
        if bisect_left(steps, start) != made[-1]:
            return None
    lost, wall = sum(took for took, _ in told), (ended - began).total_seconds()
    each = (wall - lost) / max(1, len(steps))
    often = len(steps) >= LINES * len(told) and len(set(made)) == len(made)
    if not often or lost >= wall or min(took for took, _ in told) < SEVERAL * each:
        return None
    cites = tuple(end for _, end in told)
    return Stated(lost, wall, len(told), cites, "the record of the run")


def _moment(cite: LogCite) -> float:
    return cite.at.timestamp() if cite.at is not None else nan


def _own_times(facts: Facts) -> float | None:
    """Seconds that the steps of an undated log say they took together."""
    track = facts.main_track(facts.last.n)
    known = None if track is None else spent(track, track.of_attempt(facts.last.n))
    return known.by[-1] if known is not None and known.seconds else None


def saves_begun(facts: Facts) -> tuple[int, ...]:
    """The steps printed last before a save began, where no line says that it ended."""
    track = facts.main_track(facts.last.n)
    if track is None:
        return ()
    span = track.of_attempt(facts.last.n)
    lines = [track.lines[i] for i in span]
    begun = [
        m.cite.line
        for m in facts.tagged("save-begun")
        if m.cite.source == track.source and not _NO_SAVE.search(m.cite.text)
    ]
    before = {bisect_left(lines, line) for line in begun}
    return tuple(sorted(track.steps[span[at - 1]] for at in before if at))


@dataclass(frozen=True, slots=True)
class Repeated:
    """Lines of a thing that was done again and again, and what the steps in which they stand cost.
    `doubted`: nothing says how long it took, and it was done every so many steps, as other things
    are of which a log need say nothing.  `by_word`: hardly a step is without it, and what it cost
    is what the lines say it took."""

    cites: tuple[LogCite, ...]
    lost: Cost
    doubted: bool
    by_word: bool


def repeated(facts: Facts, tag: str) -> Repeated | None:
    """
    Lines of this tag past the first steps, and what the steps in which they stand cost.

    A line may be written after that of the step in which it was done (`_done_before`).
    An interval in which the log also saves or evaluates is left out, for nothing parts the two;
    and what the lines of any one place say they took must come to about as much.
    """
    track = facts.main_track(facts.last.n)
    if track is None:
        return None
    span = track.of_attempt(facts.last.n)
    lines = [track.lines[i] for i in span]
    when = lasted(facts, track)
    others = [m.cite for m in facts.markers_of("checkpoint_saved", "eval")]
    others += [m.cite for m in facts.tagged("save-begun")]
    shared = {bisect_right(lines, c.line) for c in others if c.source == track.source}
    marked: dict[int, LogCite] = {}
    said: dict[Place, float] = {}
    for match in facts.tagged(tag):
        if match.cite.source != track.source:
            continue
        after = _done_before(match, bisect_right(lines, match.cite.line), span, when)
        if after >= len(span) or after in shared:
            continue
        step = track.steps[span[after]]
        if step >= track.steps[span[0]] + WARM_UP_STEPS:
            marked.setdefault(step - 1, match.cite)
            if "seconds" in match.groups:
                place = match.cite.place
                said[place] = said.get(place, 0.0) + float(match.groups["seconds"])
    steps, stated_s = sorted(marked), max(said.values(), default=0.0)
    by_word = len(span) - 1 - len(steps) - len(shared) < PLAIN
    lost = (_as_stated(facts, track, when, stated_s, len(steps)) if by_word
            else cost(facts, steps, REPEATED, TAKEN))  # fmt: skip
    if lost is None or (said and stated_s < STATED * lost.lost_s):
        return None
    apart = {b - a for a, b in pairwise(steps)}
    doubted = not said and len(apart) == 1
    return Repeated(tuple(marked[step] for step in steps), lost, doubted, by_word)


def _as_stated(
    facts: Facts, track: Track, when: Mapping[int, float], stated_s: float, events: int
) -> Cost | None:
    """What a thing took by its own word; None where that is little, or more than there was, so
    that it was done beside the steps."""
    known = [i for i in track.of_attempt(facts.last.n) if i in when and track.steps[i] >= 0]
    if events < REPEATED or len(known) < REPEATED:
        return None
    first, last = known[0], known[-1]
    wall_s, steps = when[last] - when[first], track.steps[last] - track.steps[first]
    if steps <= 0 or not TAKEN * wall_s <= stated_s < wall_s:
        return None
    return Cost(stated_s, wall_s, (wall_s - stated_s) / steps, wall_s / steps, events,
                (first, last), facts.last.n, facts, track)  # fmt: skip


def _done_before(match: Match, after: int, span: Sequence[int], when: Mapping[int, float]) -> int:
    """Which point of the track ends the interval in which a thing was done: the next one after its
    line, or the one before it where by the clock more of the seconds that it states lie there, or,
    without a clock, where the next interval is too short for them and that one is not."""
    first, middle, last = (
        when.get(span[at]) if 0 <= at < len(span) else None for at in (after - 2, after - 1, after)
    )
    if "seconds" not in match.groups or first is None or middle is None:
        return after
    took, at = float(match.groups["seconds"]), match.cite.at
    last = middle if last is None else last
    if at is None or match.cite.at_assumed:
        return after - 1 if last - middle < took <= middle - first else after
    ended = at.timestamp()
    before, since = (
        min(ended, until) - max(ended - took, begun)
        for begun, until in ((first, middle), (middle, last))
    )
    return after - 1 if before > max(since, 0.0) else after
