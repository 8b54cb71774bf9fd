"""
How fast training advanced over time, by its own numbers or by the log's clock.

Numbers that the program reports come first (`training_tokens_per_second`), then a dated log:
throughput or step time as printed, else steps by the clock.  An undated log that prints either is
laid on the clock where that can be told, and has its phases in the order of its steps all the same
(`course_in_order`).  Steps that wrote a checkpoint are
left out: they are slow by design and say nothing of the rest.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from math import isfinite
from statistics import median

from flatline.facts import Facts, Track
from flatline.judging.by_anchors import laid_by_anchors
from flatline.judging.by_dates import laid_by_dates
from flatline.judging.by_steps import MOST_SLACK, laid, spent
from flatline.judging.by_work import laid_by_work
from flatline.judging.claims import claim
from flatline.judging.own_clock import own_clock, told_beside
from flatline.judging.rounded import far_apart
from flatline.judging.timeline import Timeline, instant, timeline
from flatline.model import Cite, Claim
from flatline.series.phases import Phase, phases
from flatline.signals import PACE

AFTER_CHECKPOINT = 2
"""Steps after a save that may still pay for it: an asynchronous writer shares the host."""
DROP = 0.05
"""A fall beyond this is a slow-down: repeats on other nodes differ by 2 %."""
LEAST_POINTS = 12
"""Fewer points show no phases."""
RECOVERS = 20
"""Rates of a progress bar after which less than a thousandth of a pause is left in them: tqdm's
smoothing is 0.3 unless told otherwise."""
LEAST_S = 300.0
"""Steps that took less than this together tell nothing by becoming slower.  A judgement: small
runs of real libraries, of 1 to 120 s, slowed by up to three quarters after an evaluation or a
save, or at their start."""
LOGGED = "(as logged)"
"""The unit of a throughput that the log prints."""
WARM_UP_STEPS, WARM_SHARE = 10, 0.1
"""In so many first steps everything is compiled once; what takes more of the run's time than that
share is looked at, whatever it is."""
LASTING = 4
"""Points of a phase from which it lasted."""


@dataclass(frozen=True, slots=True)
class Pace:
    """
    Advance at times (POSIX seconds), higher is faster, and what says so.

    `signal` is the metric it comes from, or None where a log's track says it; then `indexes` are
    the track's points.
    """

    times: tuple[float, ...]
    values: tuple[float, ...]
    unit: str
    signal: str | None = None
    track: Track | None = None
    indexes: tuple[int, ...] = ()
    off_s: float = 0.0
    """How far off the times may be, where they are laid by steps (`judging.by_steps`)."""
    laid_by: str = ""
    clocked: bool = True
    """Whether the times are a clock's: else they are what was spent on steps by then."""

    @property
    def span(self) -> tuple[float, float]:
        return self.times[0], self.times[-1]

    @property
    def interval_s(self) -> float:
        """The usual time between two points of a log; metrics have one a sample."""
        if self.signal is not None:
            return 0.0
        return median(b - a for a, b in pairwise(self.times)) if len(self.times) > 1 else 0.0


@dataclass(frozen=True, slots=True)
class Slow:
    """A phase of the run, first..last POSIX seconds, with its level as a part of the best."""

    begins: float
    ends: float
    level: float
    part: float
    points: tuple[int, int]


FEW_STRETCHES = 20
"""Of 14, one that may be off by one at each end meets one cut of the run in 13."""


@dataclass(frozen=True, slots=True)
class Course:
    """The phases of a run's throughput: `best` is the highest level that lasted."""

    pace: Pace
    best: Slow
    phases: tuple[Slow, ...]

    @property
    def warm_up(self) -> Slow | None:
        """The first steps, where they were slow: they compile, and fill caches."""
        first, known = self.phases[0], self.pace
        if known.track is None or first.part >= 1 - DROP:
            return None
        steps = [known.track.steps[known.indexes[at]] for at in first.points]
        whole_s = known.times[-1] - known.times[0]
        brief = first.ends - first.begins <= WARM_SHARE * whole_s
        return first if brief and steps[1] - steps[0] < WARM_UP_STEPS else None

    @property
    def settled(self) -> tuple[Slow, ...]:
        """All phases but the warm-up."""
        return self.phases[1:] if self.warm_up is not None else self.phases

    @property
    def slow(self) -> tuple[Slow, ...]:
        """Phases below the best by more than DROP, but for the warm-up."""
        return tuple(phase for phase in self.settled if phase.part < 1 - DROP)

    @property
    def stretch_s(self) -> float:
        """How finely what was measured is laid beside the phases: two points of the pace to a
        stretch, or one where that leaves so few that one phase may meet anything."""
        begins, ends = self.pace.span
        few = ends - begins < FEW_STRETCHES * 2 * self.pace.interval_s
        return (1 if few else 2) * self.pace.interval_s

    def low(self, cut: Timeline) -> list[bool | None]:
        """Per stretch whether most of it lies in a slow phase; None where no pace is known, or the
        run warmed up."""
        out: list[bool | None] = []
        settled = self.settled
        for end in cut.ends:
            middle = end - cut.length_s / 2
            here = [p for p in settled if p.begins <= middle <= p.ends]
            out.append(here[0].part < 1 - DROP if here else None)
        return out


def pace(facts: Facts) -> Pace | None:
    """The run's advance; None where neither metrics nor a dated log tell it."""
    return facts.memo("throughput.pace", lambda f: _of_metrics(f) or _of_log(f))


def course(facts: Facts) -> Course | None:
    """The phases of the run's advance; None where too little is known of it."""
    return facts.memo("throughput.course", _course)


def course_in_order(facts: Facts) -> Course | None:
    """The same, of an undated log in the order of its steps: for what asks no clock."""
    return course(facts) or facts.memo("throughput.course in order", _course_in_order)


def course_to_tell(facts: Facts) -> Course | None:
    """The same, but of a run of minutes: its pace is uneven for reasons that nobody asks for."""
    run = course_in_order(facts)
    if run is None or run.pace.clocked or run.pace.unit != "steps/s":
        return run
    return run if run.pace.times[-1] >= LEAST_S else None


def _course(facts: Facts) -> Course | None:
    return _phases(pace(facts))


def _course_in_order(facts: Facts) -> Course | None:
    return None if pace(facts) is not None else _phases(_in_order(facts))


def course_of_steps(facts: Facts) -> Course | None:
    """The phases of the steps' own times where the log prints a throughput as well, which may hold
    while a step has more to do: work done a second, not steps."""
    return facts.memo("throughput.course of steps", _course_of_steps)


def _course_of_steps(facts: Facts) -> Course | None:
    known = pace(facts)
    if known is None or known.track is None or known.unit != LOGGED:
        return None
    at = dict(zip(known.indexes, known.times, strict=True))
    return _phases(_printed(facts, known.track, at, ("steps/s",)))


def _phases(known: Pace | None) -> Course | None:
    if known is None or len(known.values) < LEAST_POINTS:
        return None
    parts = phases(known.values)
    lasting = [p for p in parts if len(p) >= LASTING]
    if not lasting:
        return None
    top = _usual_best(lasting)
    made = tuple(_slow(known, part, top.level) for part in parts)
    return Course(known, made[parts.index(top)], made)


def _usual_best(lasting: Sequence[Phase]) -> Phase:
    """The phase in the middle of those as fast as the fastest, by their points: of many fast
    phases the fastest is so by chance."""
    highest = max(phase.level for phase in lasting)
    alike = sorted((p for p in lasting if p.level >= (1.0 - DROP) * highest),
                   key=lambda phase: phase.level)  # fmt: skip
    left = sum(map(len, alike)) / 2
    for phase in alike:
        left -= len(phase)
        if left <= 0:
            return phase
    return alike[-1]


def _slow(known: Pace, part: Phase, best: float) -> Slow:
    """Borders stand half way to the neighbouring points."""
    times, first, last = known.times, part.first, part.last - 1
    begins = times[0] if first == 0 else (times[first - 1] + times[first]) / 2
    ends = times[-1] if last + 1 == len(times) else (times[last] + times[last + 1]) / 2
    return Slow(begins, ends, part.level, part.level / best if best else 1.0, (first, last))


# --- where it comes from ------------------------------------------------------------------------


def _of_metrics(facts: Facts) -> Pace | None:
    cut = timeline(facts, PACE, samples=1)
    if cut is None:
        return None
    for signal in filter(facts.measured, PACE):
        answer = cut.ask(facts, f"quantile(0.5, avg_over_time({signal}[w]))")
        row = answer.rows[0] if answer is not None and len(answer.rows) == 1 else None
        points = [(t, v) for t, v in row.points() if isfinite(v) and v > 0] if row else []
        if len(points) >= LEAST_POINTS and answer is not None:
            times, values = zip(*points, strict=True)
            if signal == "training_step_seconds":
                values = tuple(1 / value for value in values)
            half = cut.length_s / 2
            unit = "steps/s" if signal == "training_step_seconds" else "tokens/s a device"
            return Pace(tuple(t - half for t in times), tuple(values), unit, signal)
    return None


def _of_log(facts: Facts) -> Pace | None:
    track = facts.main_track(facts.last.n)
    if track is None:
        return None
    at, off_s, by = _placed(facts, track)
    found = _printed(facts, track, at)
    if found is None and by:
        return None
    if found is not None:
        return replace(found, off_s=off_s, laid_by=by)
    saved = checkpoint_steps(facts)
    kept = sorted({track.steps[i]: i for i in reversed(_kept(facts, track, at))}.values())
    reached = far_apart(kept, at, LEAST_POINTS)
    steps = [
        (b, (track.steps[b] - track.steps[a]) / (at[b] - at[a]))
        for a, b in pairwise(reached)
        if 0 <= track.steps[a] < track.steps[b] and at[b] > at[a]
        and not any(track.steps[a] < step <= track.steps[b] for step in saved)
    ]  # fmt: skip
    return _made(track, at, steps, "steps/s") or _by_epochs(facts, track, at)


def _by_epochs(facts: Facts, track: Track, at: Mapping[int, float]) -> Pace | None:
    """Of a log that counts no steps, its epochs: each has as many, and what it prints first in one
    comes at the same place of each."""
    span = [i for i in track.of_attempt(facts.last.n) if i in at]
    if any(track.steps[i] >= 0 for i in span):
        return None
    first: dict[float, int] = {}
    for i in span:
        if isfinite(track.epoch[i]):
            first.setdefault(track.epoch[i], i)
    made = [(b, (track.epoch[b] - track.epoch[a]) / (at[b] - at[a]))
            for a, b in pairwise(first.values())
            if track.epoch[a] < track.epoch[b] and at[b] > at[a]]  # fmt: skip
    return _made(track, at, made, "epochs/s")


def _in_order(facts: Facts) -> Pace | None:
    """The pace of an undated log by what it prints, with what was spent on steps for times."""
    track = facts.main_track(facts.last.n)
    at = {} if track is None else in_order(facts, track)
    found = _printed(facts, track, at) if track is not None and at else None
    return None if found is None else replace(found, clocked=False)


def _kept(facts: Facts, track: Track, at: Mapping[int, float]) -> list[int]:
    saved = checkpoint_steps(facts)
    return [i for i in track.counted(facts.last.n)
            if i in at and not _pays(track.steps[i], saved)]  # fmt: skip


def _printed(
    facts: Facts, track: Track, at: Mapping[int, float], units: Sequence[str] = (LOGGED, "steps/s")
) -> Pace | None:
    """By the throughput or the step time that most of these points print."""
    blurred = _blurred(facts, track)
    kept = [i for i in _kept(facts, track, at) if i not in blurred]
    told = told_beside(track, track.of_attempt(facts.last.n))
    for unit in units:
        column = track.throughput if unit == LOGGED else track.step_s
        said = [i for i in kept if isfinite(column[i]) and column[i] > 0]
        if 2 * len(said) > len({track.steps[i] if track.steps[i] >= 0 else -i - 1 for i in kept}):
            values = [1 / told.get(track.steps[i], column[i]) if unit == "steps/s" else column[i]
                      for i in said]  # fmt: skip
            return _made(track, at, list(zip(said, values, strict=True)), unit)
    return None


def _blurred(facts: Facts, track: Track) -> set[int]:
    """Undated points of a progress bar to whose rate an evaluation or a save still adds: a bar
    prints a moving average."""
    if not any(m.cite.source == track.source for m in facts.markers_of("bar")):
        return set()
    told = [m.cite for m in facts.markers_of("eval", "checkpoint_saved")]
    told += [m.cite for tag in ("evaluation", "save-begun") for m in facts.tagged(tag)]
    rated = [i for i in range(len(track)) if isfinite(track.step_s[i])]
    lines = [track.lines[i] for i in rated]
    out: set[int] = set()
    for cite in told:
        if cite.source == track.source:
            first = bisect_right(lines, cite.line)
            out.update(rated[first : first + RECOVERS])
    return {i for i in out if not isfinite(track.at[i])}


def times(facts: Facts, track: Track) -> tuple[Mapping[int, float], float]:
    """When each point was printed, or stands by the sum of steps where none is dated, and how
    far off that may be."""
    return _placed(facts, track)[:2]


def in_order(facts: Facts, track: Track) -> Mapping[int, float]:
    """What was spent on steps by each point of an undated log: no clock's time."""
    span = track.of_attempt(facts.last.n)
    known = None if any(isfinite(track.at[i]) for i in span) else spent(track, span)
    return {} if known is None else dict(zip(known.indexes, known.by, strict=True))


def lasted(facts: Facts, track: Track) -> Mapping[int, float]:
    """Times from which it can be told how long anything took: a clock's, or where no point is
    dated those the steps were laid at, else seconds by the program's own clock."""
    return times(facts, track)[0] or own_clock(track, track.of_attempt(facts.last.n))


def _placed(facts: Facts, track: Track) -> tuple[Mapping[int, float], float, str]:
    dated = {i: track.at[i] for i in track.of_attempt(facts.last.n) if isfinite(track.at[i])}
    for lay in () if dated else (laid_by_dates, laid, laid_by_anchors, laid_by_work):
        known = lay(facts)
        if known and known.track is track and known.slack_s <= MOST_SLACK * known.wall_s:
            return dict(zip(known.indexes, known.times, strict=True)), known.slack_s, known.by
    return dated, 0.0, ""


def _made(
    track: Track,
    at: Mapping[int, float],
    points: Sequence[tuple[int, float]],
    unit: str,
) -> Pace | None:
    if not points:
        return None
    chosen, values = zip(*sorted(points, key=lambda point: at[point[0]]), strict=True)
    return Pace(tuple(at[i] for i in chosen), tuple(values), unit, None, track, chosen)


def checkpoint_steps(facts: Facts) -> tuple[int, ...]:
    """Steps at which a checkpoint was saved, in order; of a line that names none the step that was
    printed before it."""
    markers = facts.markers_of("checkpoint_saved")
    steps = {m.progress.step for m in markers if m.progress.step is not None}
    track = facts.main_track(facts.last.n)
    for marker in markers:
        unnamed = marker.progress.step is None
        if track is not None and unnamed and marker.cite.source == track.source:
            before = bisect_left(track.lines, marker.cite.line)
            steps |= {track.steps[before - 1]} if before else set()
    return tuple(sorted(step for step in steps if step >= 0))


def _pays(step: int, saved: Sequence[int]) -> bool:
    """Whether a step may have been slowed by a save: the one that saved, and those after."""
    at = bisect_left(saved, step - AFTER_CHECKPOINT)
    return at < len(saved) and saved[at] <= step


# --- what it shows ------------------------------------------------------------------------------


def step_at(facts: Facts, time: float) -> int | None:
    """The step last completed at a moment, by `training_step` or by the dated log."""
    known = facts.measured("training_step")
    answer = instant(facts, "max(training_step)", time) if known else None
    if answer is not None and answer.rows and isfinite(answer.rows[0].last):
        return int(answer.rows[0].last)
    track = facts.main_track(facts.last.n)
    if track is None:
        return None
    at, _ = times(facts, track)
    dated = [i for i in track.counted(facts.last.n) if i in at and at[i] <= time]
    return track.steps[dated[-1]] if dated and track.steps[dated[-1]] >= 0 else None


def shown(facts: Facts, found: Course, phase: Slow) -> Claim:
    """That a phase was slower than the best one, with what says so."""
    fell = f"{1 - phase.part:.0%}"
    when = f"{clock(phase.begins)} to {clock(phase.ends)} UTC"
    if not found.pace.clocked:
        when = "step {} to {}".format(*steps_of(found, phase))
    elif found.pace.off_s:
        when += f" (by {found.pace.laid_by}, off by {found.pace.off_s:.0f} s at most)"
    text = (
        f"Throughput was {phase.level:.4g} {found.pace.unit} from {when}, {fell} below the"
        f" {found.best.level:.4g} of the best phase"
    )
    return claim(text, *level_cites(facts, found.pace, phase),
                 *level_cites(facts, found.pace, found.best))  # fmt: skip


def steps_of(found: Course, phase: Slow) -> tuple[int, int]:
    """The first and the last step of a phase of a log's course."""
    known = found.pace
    first, last = (known.indexes[at] for at in phase.points)
    assert known.track is not None
    return known.track.steps[first], known.track.steps[last]


def held(facts: Facts, found: Course) -> Claim | None:
    """The usual pace, and how far the slowest phase that lasted was below the fastest; None where
    nothing can be cited for it."""
    usual, unit = median(found.pace.values), found.pace.unit
    lasting = [p for p in found.settled if p.points[1] - p.points[0] + 1 >= LASTING]
    slowest, fastest = (pick(lasting, key=lambda phase: phase.level) for pick in (min, max))
    below = 1 - slowest.level / fastest.level if fastest.level else 0.0
    text = "The pace held" if below <= DROP else "The pace"
    text += f": median {usual:.4g} {unit}"
    text += f" ({1 / usual:.3g} s a step)" if unit == "steps/s" and usual > 0 else ""
    text += (
        "; no phase stands apart"
        if slowest is fastest
        else f"; its slowest lasting phase {below:.1%} below the best"
    )
    cites = [cite for phase in dict.fromkeys((slowest, fastest))
             for cite in level_cites(facts, found.pace, phase)]  # fmt: skip
    return claim(text, *cites) if cites else None


def level_cites(facts: Facts, known: Pace, phase: Slow) -> tuple[Cite, ...]:
    """A phase's level: one query over it, or the first and last line of it."""
    if known.track is not None:
        ends = dict.fromkeys(known.indexes[at] for at in phase.points)
        return tuple(facts.point(known.track, index).cite for index in ends)
    length_s = max(1, int(phase.ends - phase.begins))
    query = f"quantile(0.5, quantile_over_time(0.5, {known.signal}[{length_s}s]))"
    answer = instant(facts, query, float(int(phase.ends)))
    if answer is None or not answer.rows:
        return ()
    return (answer.cite(answer.rows[0], f"median of {length_s} s"),)


def clock(time: float) -> str:
    """A moment of the day (UTC)."""
    return f"{datetime.fromtimestamp(time, UTC):%H:%M:%S}"


def unaccounted(facts: Facts) -> tuple[float, float] | None:
    """
    Seconds by the log's clock, or by the program's own where none is dated, from the first step
    to the last, and how many of them no step's own printed time accounts for; None where times or
    steps were not printed throughout.

    What is left over was spent outside steps: saving, evaluating, waiting, hanging.
    """
    track = facts.main_track(facts.last.n)
    if track is None:
        return None
    span = track.of_attempt(facts.last.n)
    at = {i: track.at[i] for i in span if isfinite(track.at[i])} or own_clock(track, span)
    kept = [i for i in span if i in at and isfinite(track.step_s[i]) and track.steps[i] >= 0]
    spent = wall = 0.0
    for a, b in pairwise(kept):
        steps = track.steps[b] - track.steps[a]
        if steps > 0 and at[b] >= at[a]:
            wall += at[b] - at[a]
            spent += (
                steps * (track.step_s[a] + track.step_s[b]) / 2 if steps > 1 else track.step_s[b]
            )
    return (wall, max(0.0, wall - spent)) if wall > 0 else None
