"""
The run did what it was asked to do.

Symptom:
    The planned end was reached, the loss was finite and fell, and nothing that was read
    contradicts it.

Mechanism:
    None: this is the answer for a sound run, given on positive evidence and never because errors
    are absent.

Told apart from:
    E1 loss-divergence, E2 resume-from-scratch, E3 undertrained: runs that end well and are wrong;
    each must be ruled out first.
    An undetermined run: no progress recognised, no end seen, or cancelled while sound.
    A run without a record, whose log just ends: it goes on only where the events of its pods tell
    of their start alone, and log, metrics and the GPUs' work reach to the same end.
    A slow one: where throughput slipped, or a device stood out, and it is not decided why or at
    what cost, it is healthy still, with little confidence.

Do:
    Nothing.  Warnings beside the verdict are for operations.

References:
    The order of judgement in the project's design notes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from flatline.facts import METRICS, SCHEDULER, Facts, Point, Track
from flatline.judging.all_but_one_print import UNPRINTED, all_but_one_print
from flatline.judging.belonging import doubtful, gpus_seen, scoped, timeless
from flatline.judging.busy_clocks import busy_clocks
from flatline.judging.by_steps import spent
from flatline.judging.by_work import WORK, at_work
from flatline.judging.claims import claim
from flatline.judging.costly_steps import stated_saves
from flatline.judging.fresh_start import begins_where_it_saves
from flatline.judging.good_already import good_already
from flatline.judging.health import within
from flatline.judging.lately import counted, lately
from flatline.judging.launches import launches
from flatline.judging.level_kept import denoised, kept_level, policy_rewarded
from flatline.judging.lone_worker import works_beside
from flatline.judging.loss import curve
from flatline.judging.own_work import longest
from flatline.judging.pace import LOOKED_S, Pace, pace
from flatline.judging.pauses import LONGER, Pause, Stood, between, stood
from flatline.judging.printed_sizes import resized
from flatline.judging.printed_waits import waits_least
from flatline.judging.said_done import sent_in_vain
from flatline.judging.slow_cpus import standing_apart
from flatline.judging.throughput import (
    Slow,
    clock,
    course_to_tell,
    held,
    shown,
    steps_of,
    unaccounted,
)
from flatline.judging.timeline import usual
from flatline.judging.trained_step import trained_well
from flatline.judging.uneven import uneven
from flatline.judging.unrecorded import drew_on, still_at_work, worked_on
from flatline.judging.unsettled import LEFT_OUT, unsettled
from flatline.model import Cite, Claim, Finding, Job, Judgement, LogCite, Match, Step

CODE = "G1"
NAME = "healthy"
NEEDS = ("training progress", "scheduler records|job log to its end")
DECIDED_BY = "the planned end reached, with a loss that fell"
EXPLAINS: dict[str, str] = {}
BLIND_CEILING = 0.79
"""DESIGN: without GPU metrics the confidence of healthy stays below 0.8.  So it does where the run
lost time to something that is not known, or where one of its GPUs had a fault meanwhile."""
FAULT = "Whether the fault cost the run anything: no slow time is laid at it."
WHOSE = "Which of the hosts that were measured ran it: a fault of one may be another job's."
CPUS = "What the slow CPUs of one of its hosts cost: its steps bear no times."
EARLY = "Whether it was right to stop so early: what it goes by was not read."
CLOCKS = (
    "What a GPU that clocks far below the others costs: nothing read says what holds it there."
)
WHEN = "Whether the metrics are of its time: its log states no zone."
WHICH = "Which GPUs of a node it held: those that its record counts did no work."
ANEW = "Whether an earlier run should have left a checkpoint where it found none and began anew."
MEANWHILE = "What it did in the time that no step accounts for: save, evaluate, wait or compile."
UNEVEN = "Why some of its steps took so much longer than most."
OUTSIDE = 0.1
"""Of the time by the clock: as much as a slow phase must take (LONG_SHARE).  Sound runs of
generated clusters lost 0.08 at most, saves and evaluations of which their logs say nothing with
them."""
SAVING, MUCH = "What saving cost: see the warning.", 0.25
"""Of the time, as much as makes it a cause of slowness where a clock tells (D2)."""
SETTING = "What a setting costs that makes each kernel launch wait: see the warning."
HELD = "Whether one rank holds the others back: it alone does more in every step, or waits less."
LEVEL = "Whether it still learnt: its loss kept the level that the run went on at."
NOISE = "Whether it still learnt: its loss scatters with the noise that a step draws."
POLICY = "Whether it learnt what it should: its loss is not meant to fall; the reward rose."
UNSENT = "Whether what was saved is whole: it was not looked at, and sending it failed."
LEFT_LATE = "Why its processes did not leave once training was done: no stack of them was read."
MUCH_SLOWER = 0.95
"""Below this part of its best level a phase is slow: repeats of one run differ by 2 %
(docs/design/slow-runs.md)."""
NEWS_INTERVALS = 5.0
"""Progress that is older than so many of its usual intervals has stopped, or its log has."""
ROUNDED = 0.01
"""Of the time that steps say they took together: by so much they may say too much."""
NO_RECORD = 0.6
STATE = "Whether it ended just as it was looked at: no record tells its state."
LOADING_S = 240.0
"""From a job's start to its first step: containers, imports, weights.  A judgement: less than most
take, so that a run which stood still for long is not taken for one that goes on."""
MUCH_LESS = 0.9
"""Of its best level: a run that goes on below it is not called sound.  A judgement."""
FAR = 0.1
"""Of its plan: less is a printing interval or two, and what a loader drops at its end."""
LONG_SHARE = 0.1
"""Of the run's time; less is an evaluation or a save that the log does not name."""


def judge(facts: Facts) -> Judgement:
    """The planned end, progress, and the word of the scheduler or the program that it ended."""
    if facts.disposition == "running":
        return None if facts.job is None else _advancing(facts, facts.job.cite)
    if facts.disposition == "unknown":
        return _unrecorded(facts)
    left_late = facts.disposition == "timeout" and facts.reached_plan and _done(facts)
    unsent = sent_in_vain(facts) if facts.disposition == "failed" else None
    apart = trained_well(facts)
    if facts.disposition != "completed" and not left_late and unsent is None and apart is None:
        return None
    track = facts.main_track(facts.last.n)
    if track is None:
        return None
    span = track.of_attempt(facts.last.n)
    first, last = facts.point(track, span[0]), facts.point(track, span[-1])
    short = facts.stops_short or (not facts.end_seen and _last_step_failed(facts.job))
    near = all_but_one_print(facts) if short else ()
    if short and unsent is None and not near:
        return None
    plan = facts.planned_steps
    shows = [_ended_so(facts, plan, last.cite, unsent), *((apart.shows,) if apart else ()), *near]
    shows += _loss_fell(facts, track, first, last)
    done = plan if facts.reached_plan or (plan and (facts.last_step or 0) >= plan) else None
    strength = 0.7 + (0.15 if SCHEDULER in facts.stores else 0.0) + (0.1 if done else 0.0)
    slow, faults, outside = _slow(facts), _faulty(facts), _outside(facts)
    open_, rough = unsettled(facts, paced=slow is None), uneven(facts) if slow is None else None
    doubts = (*_doubts(facts, faults, outside), *((UNEVEN,) if rough else ()),
              *((UNPRINTED,) if near else ()),
              *(one.question for one in open_),
              *((LEFT_LATE,) if left_late else ()), *((UNSENT,) if unsent else ()),
              *((apart.question,) if apart and apart.question else ()))  # fmt: skip
    if not gpus_seen(facts) or slow is not None or doubts:
        strength = min(strength, BLIND_CEILING)
    return Finding(
        code=CODE,
        summary="The run completed" + (
            f" its {done} planned steps" if done else ", stopped early by its own word,"
            if EARLY in doubts else "") + (
            f", {1 - slow.part:.0%} slower {_when(facts, slow)}; nothing that was read says why"
            if slow else ", though a GPU showed a fault meanwhile" if faults
            else f", steps taking longer as {grew} grew" if rough and (grew := resized(facts))
            else ", some steps taking far longer than most; nothing read says why" if rough
            else "; its processes held on until the time limit" if left_late
            else "; its result could not be sent to where it was to go" if unsent
            else f"; {apart.what}" if apart
            else ", passing over what did not fit in GPU memory" if any(
                one.question == LEFT_OUT for one in open_)
            else " and nothing that was read contradicts it"),
        attribution="none",
        strength=round(strength, 3),  # a sum of tenths must not fall a hair below 0.8
        severity="none",
        shows=(*shows, *_paced(facts, slow), *((rough,) if rough else ()), *faults, *outside,
               *(one for part in open_ for one in part.shows)),
        implies=(claim("The run is sound as far as what was read reaches.", *shows[0].cites),),
        scope="none",
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=(*_open(facts, slow), *doubts), resubmit="unnecessary",
    )  # fmt: skip


def _loss_fell(facts: Facts, track: Track, first: Point, last: Point) -> tuple[Claim, ...]:
    if first.index == last.index or not (
        track.has_loss[first.index] and track.has_loss[last.index]
    ):
        return ()
    text = f"The {track.loss_name} went from {first.loss:g} to {last.loss:g}"
    return (claim(text, first.cite, last.cite),)


def _ended_so(
    facts: Facts, plan: int | None, last: LogCite, unsent: tuple[LogCite, LogCite] | None
) -> Claim:
    """What says that the run ended, and how far it had come."""
    if unsent is not None:
        text = "The program said that it was done, and failed as it sent its result"
        return claim(text, *unsent)
    ends: list[Cite] = [m.cite for m in facts.tagged("end-ok")[-1:] or _stopped_early(facts)]
    ends += _freed(facts)
    job = facts.job
    if job is not None and job.disposition == "completed":
        ends.append(job.cite)
    return claim(_reached(facts.last_step, plan), *(ends or [last]), last)


def _freed(facts: Facts) -> list[LogCite]:
    """The last word of a program of which all that is told is that it took its process group down
    as it finished, though much of its plan was left by its last step: not that it had trained."""
    said = [m.cite for m in facts.markers_of("finished") if m.attempt == facts.last.n]
    bare = all("process group" in cite.text.lower() for cite in said)
    left = (facts.last_step or 0) < (1 - FAR) * (facts.planned_steps or 0)
    short = left and not facts.reached_plan and not facts.tagged("end-ok")
    return said[-1:] if bare and short else []


def _stopped_early(facts: Facts) -> list[Match]:
    return [m for m in facts.tagged("stopped-early") if m.attempt == facts.last.n][-1:]


def _done(facts: Facts) -> bool:
    """Whether the program itself says that training was done."""
    attempts = (
        *(match.attempt for match in facts.tagged("end-ok")),
        *(marker.attempt for marker in facts.markers_of("finished")),
    )
    return facts.last.n in attempts


def _doubts(
    facts: Facts, faults: tuple[Claim, ...], outside: tuple[Claim, ...]
) -> tuple[str, ...]:
    """What keeps a sound run from being called so with confidence."""
    waits, saves = launches(facts), stated_saves(facts)
    told = {
        FAULT: bool(faults),
        MEANWHILE: bool(outside),
        SETTING: waits is not None and not waits.cheap,
        SAVING: saves is not None and not saves.sure and saves.lost_s >= MUCH * saves.wall_s,
        HELD: _held_back(facts),
        LEVEL: kept_level(facts, curve(facts)) is not None
        or good_already(facts, curve(facts)) is not None,
        NOISE: denoised(facts, curve(facts)) is not None,
        POLICY: policy_rewarded(facts) is not None,
        EARLY: not facts.reached_plan
        and bool(_freed(facts) or (facts.planned_steps and _stopped_early(facts))),
        ANEW: begins_where_it_saves(facts),
        WHEN: timeless(facts),
        WHICH: doubtful(facts),
        WHOSE: METRICS in facts.stores and not scoped(facts),
        CLOCKS: (at := busy_clocks(facts)) is not None and at.one_lies_low,
        CPUS: standing_apart(facts) is not None,
    }
    return tuple(text for text, holds in told.items() if holds)


def _held_back(facts: Facts) -> bool:
    """Whether one rank, or its card, stands apart in each step by what slows a run, though nothing
    tells that it is not so by design."""
    run = course_to_tell(facts)
    worked = run is not None and run.pace.clocked and works_beside(facts, run)
    return worked or waits_least(facts) or longest(facts)


def _outside(facts: Facts) -> tuple[Claim, ...]:
    """That much of the time by the clock is no step's, or that of steps which stood still, however
    much they say they took, and no line says what was done in it."""
    known, track = unaccounted(facts), facts.main_track(facts.last.n)
    paused = stood(facts)
    named = () if paused is None else _named(facts, paused)
    if known is None or track is None:
        pauses = () if paused is None else _pauses(facts, paused, named)
        return pauses or _more_than_steps(facts)
    explained_s = sum(pause.lost_s for pause in named)
    if known[1] - explained_s < OUTSIDE * known[0]:
        return () if paused is None else _pauses(facts, paused, named)
    span = track.of_attempt(facts.last.n)
    ends = [facts.point(track, at).cite for at in (span[0], span[-1])]
    text = (
        f"Of {known[0]:.0f} s by the log's clock its steps, by their own times, account for"
        f" {known[0] - known[1]:.0f} s"
    )
    return (claim(text, *ends),)


def _more_than_steps(facts: Facts) -> tuple[Claim, ...]:
    """That the GPUs worked for much longer than the steps of an undated log say they took, and
    than its saves say."""
    track = facts.main_track(facts.last.n)
    known = None if track is None else spent(track, track.of_attempt(facts.last.n))
    worked = None if known is None else at_work(facts)
    if track is None or known is None or worked is None or not known.seconds or known.clocked:
        return ()
    begins, ends, within_s = worked
    saves, took_s = stated_saves(facts), known.by[-1]
    left_s = ends - begins - within_s - took_s - (saves.lost_s if saves else 0.0)
    if left_s < OUTSIDE * (ends - begins):
        return ()
    text = (
        f"The GPUs were at work from {clock(begins)} to {clock(ends)} UTC, {ends - begins:.0f} s;"
        f" its steps, by their own times, account for {took_s:.0f} s"
    )
    drawn = _median_gpu(facts, int(ends - begins), ends)
    cites = [facts.point(track, known.indexes[at]).cite for at in (0, -1)]
    return (claim(text, *cites, *(() if drawn is None else (drawn,))),)


def _named(facts: Facts, paused: Stood) -> tuple[Pause, ...]:
    """Pauses in which the log says that it saved or evaluated, but for those that were far longer
    than the others of them."""
    told = [p for p in paused.pauses if between(facts, paused, p, "checkpoint_saved", "eval")]
    usual = median(p.lost_s for p in told) if told else 0.0
    return tuple(p for p in told if p.lost_s <= LONGER * usual)


def _pauses(facts: Facts, paused: Stood, named: Sequence[Pause]) -> tuple[Claim, ...]:
    """That the other pauses took so much of the time."""
    silent = [p for p in paused.pauses if p not in named]
    lost_s = sum(pause.lost_s for pause in silent)
    if not silent or lost_s < OUTSIDE * paused.wall_s:
        return ()
    longest = max(silent, key=lambda pause: pause.lost_s)
    ends = [facts.point(paused.track, at).cite for at in longest.at]
    text = (
        f"In {len(silent)} pauses that no line explains the run lost {lost_s:.0f} s of"
        f" {paused.wall_s:.0f}"
    )
    return (claim(text, *ends),)


def _unrecorded(facts: Facts) -> Finding | None:
    """A run that still goes as far as Kubernetes, its log and its GPUs tell."""
    track, reckoned = facts.main_track(facts.last.n), lately(facts)
    if track is None:
        return None
    seen, first = reckoned[0] if reckoned else pace(facts), track.of_attempt(facts.last.n)[0]
    told = still_at_work(facts, seen, track.time(first))
    found = None if told is None else _advancing(facts, told.cite)
    if told is None or found is None:
        return None
    return replace(
        found,
        strength=NO_RECORD,
        shows=(*found.shows, told.at_work),
        cannot_decide=(*found.cannot_decide, STATE),
    )


def _advancing(facts: Facts, record: Cite) -> Finding | None:
    """A run that still goes, and whose last progress is no older than its pauses make it."""
    track = facts.main_track(facts.last.n)
    news = None if track is None else _news(facts, record)
    if news is None or track is None:
        return None
    slow, run = _slow(facts), course_to_tell(facts)
    if slow is not None and run is not None and run.phases[-1].part < MUCH_LESS:
        return None  # what slows it goes on
    first = facts.point(track, track.of_attempt(facts.last.n)[0])
    went = f", {1 - slow.part:.0%} slower {_when(facts, slow)}; nothing says why" if slow else ""
    return Finding(
        code=CODE,
        summary=f"The run is still going and advances{went or '; nothing that was read is wrong'}",
        attribution="none",
        strength=0.75 if gpus_seen(facts) else 0.7,
        most=BLIND_CEILING,
        severity="none",
        shows=(
            claim(news.text, first.cite, *news.cites),
            *_paced(facts, slow),
        ),
        implies=(claim("The run is sound so far, as far as what was read reaches.",
                       news.cites[0]),),
        scope="none",
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=("How it ends.", *_open(facts, slow)),
        resubmit="unnecessary",
    )  # fmt: skip


def _news(facts: Facts, record: Cite) -> Claim | None:
    """The last sign of progress, and that it is no older than its pauses make it: by its lines, or
    by its step counter in the metrics where they bear no times."""
    reckoned, dated = lately(facts), pace(facts)
    if reckoned is not None and dated is not None and dated.at > reckoned[0].at:
        # a dated line is later than the sum of what the steps say; how far apart they are holds
        dated = replace(dated, interval_s=dated.interval_s or reckoned[0].interval_s)
        reckoned = None
    seen, since = reckoned or (dated, None)
    if facts.now is None:
        return None
    if seen is None or seen.interval_s is None:
        return _by_its_counter(facts, record)
    silent_s = (facts.now - seen.at).total_seconds()
    at_most = since is not None and not isinstance(since, LogCite)
    if at_most and facts.measured("training_step"):
        return _by_its_counter(facts, record)
    drew = drew_on(facts, seen, since) if isinstance(since, LogCite) else None
    loading_s = LOADING_S if at_most or drew else 0.0
    if silent_s - loading_s > max(NEWS_INTERVALS * seen.interval_s, seen.pauses_s, LOOKED_S):
        drew = worked_on(facts, seen) if since is None else None
        if drew is None:
            return None
    if since is not None and silent_s < -max(seen.interval_s, _rounded(seen, since)):
        return None  # steps that took less than they say
    how = (
        f",{' its GPUs worked on since,' if drew else ''}" if since is None
        else ", by what its steps say they took since a dated line," if isinstance(since, LogCite)
        else " at most, by what its steps say they took since the job began,"
    )  # fmt: skip
    text = (f"Its last progress is {max(0.0, silent_s):.0f} s old{how} and comes every"
            f" {seen.interval_s:.0f} s or so")  # fmt: skip
    return claim(text, seen.last, since, record, *(drew.cites if drew else ()))


def _rounded(seen: Pace, since: Cite) -> float:
    """Seconds by which steps that are summed up since a line may say too much."""
    begun = since.at if isinstance(since, LogCite) else None
    return 0.0 if begun is None else ROUNDED * (seen.at - begun).total_seconds()


def _by_its_counter(facts: Facts, record: Cite) -> Claim | None:
    found = counted(facts, NEWS_INTERVALS)
    if found is None:
        return None
    (rose, stands), within_s = found
    text = f"Its step counter rose {rose.value:.0f} times in the last {within_s:.0f} s"
    return claim(text, rose, stands, record)


def _median_gpu(facts: Facts, length_s: int, until: float) -> Cite | None:
    """What tells of work, of the median GPU over so many seconds until then (POSIX seconds)."""
    signal = next(filter(facts.measured, WORK))
    query = f"avg_over_time({signal}[{length_s}s])"
    return usual(facts, query, float(int(until)), "the median GPU")


def _open(facts: Facts, slow: Slow | None) -> tuple[str, ...]:
    blind = "Whether the GPUs were healthy and well used: no GPU metrics were read."
    why = "Why throughput fell: no slow family is found, and not all of them could be measured."
    return (*(() if gpus_seen(facts) else (blind,)), *((why,) if slow else ()))


def _slow(facts: Facts) -> Slow | None:
    """The worst phase of a run that was much slower for a good part of its time."""
    run = course_to_tell(facts)
    if run is None:
        return None
    slow = [phase for phase in run.slow if phase.part < MUCH_SLOWER]
    length_s = run.pace.times[-1] - run.pace.times[0]
    if sum(phase.ends - phase.begins for phase in slow) < LONG_SHARE * length_s:
        return None
    return min(slow, key=lambda phase: phase.part, default=None)


def _when(facts: Facts, slow: Slow) -> str:
    """In which steps, where they are on no clock."""
    run = course_to_tell(facts)
    if run is None or run.pace.clocked:
        return "for a time"
    first, last = steps_of(run, slow)
    to_the_end = slow.points[1] == len(run.pace.values) - 1
    return f"from step {first} on" if to_the_end else f"from step {first} to {last}"


def _faulty(facts: Facts) -> tuple[Claim, ...]:
    """The first sign that one of the run's GPUs had a fault within it: B2 tells the rest."""
    return tuple(claim(f"{one.place}: {one.what}", *one.cites) for one in within(facts)[:1])


def _paced(facts: Facts, slow: Slow | None) -> tuple[Claim, ...]:
    """The phase in which the run was slower, or that its pace held, as far as that is known."""
    run = course_to_tell(facts)
    if run is None:
        return ()
    told = held(facts, run) if slow is None else shown(facts, run, slow)
    return (told,) if told is not None else ()


def _last_step_failed(job: Job | None) -> bool:
    """Whether the program of the job that ended last failed on record, though its script ended
    well: the status of a script is that of its last command."""
    steps = [step for step in job.steps if step.id.isdigit()] if job is not None else []
    last = max(steps, key=lambda step: (_ended(step), int(step.id)), default=None)
    return last is not None and last.disposition not in ("completed", "cancelled", "unknown")


def _ended(step: Step) -> float:
    return 0.0 if step.ended_at is None else step.ended_at.timestamp()


def _reached(step: int | None, plan: int | None) -> str:
    if step is None:
        return "The run ended on its own"
    return f"The run ended on its own; step {step}" + (f" of {plan}" if plan else "") + " was seen"
