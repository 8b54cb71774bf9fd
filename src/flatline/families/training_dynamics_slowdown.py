"""
The work itself grew.

Symptom:
    Throughput slides while every system signal is clean; a training metric moved at the same
    step: expert imbalance, sequence length; or the program is compiled anew again and again.

Mechanism:
    The model or the data changed the amount or the balance of work per step.

Told apart from:
    D2 to D5: a system signal moved.
    E1 loss-divergence: the loss itself is wrong.
    A training metric that moved at another time, and a fall for which a clock or a host was not
    measured: then nothing is said.  Where no counter of the network was read, it is said with
    little confidence, and so it is of a log alone, whose pace must then follow the metric.

Do:
    Look at the metric that moved: router balance, length buckets, compilation counts.

References:
    MaxText and Megatron mixture-of-experts metrics; JAX compilation logging.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from math import isfinite

from flatline.facts import Facts, Track
from flatline.judging.again import RECOMPILED, again
from flatline.judging.announced_sizes import announced
from flatline.judging.claims import claim
from flatline.judging.compiled_since import compiled_since
from flatline.judging.follows import follows
from flatline.judging.held_out_fell import held_out_fell
from flatline.judging.in_proportion import in_proportion
from flatline.judging.left_level import CHANCE, PART, falls, first_slow, left_level
from flatline.judging.loss import curve
from flatline.judging.printed_sizes import printed_balance, printed_sizes, sized_track
from flatline.judging.quiet import NETWORK, SOCKETS, WATCHED, Quiet, all_quiet, quiet
from flatline.judging.throughput import (
    DROP,
    Course,
    course_in_order,
    course_of_steps,
    in_order,
    shown,
    step_at,
    times,
)
from flatline.judging.timeline import timeline
from flatline.judging.uniform import other_dynamics
from flatline.model import Action, Cite, Cleared, Finding, Judgement, LogCite

CODE = "D6"
NAME = "training-dynamics-slowdown"
NEEDS = ("training throughput over time", "training metrics", "GPU, host and network metrics")
DECIDED_BY = (
    "a training metric that moves as the pace does (balance loss, sequence length), the "
    "system's signals being clean"
)
EXPLAINS = {"F3": "a slowed run does not reach its plan in time"}

MOVED = {"training_balance_loss": "the balance loss of the experts"}
"""Training metrics whose move means another amount or balance of work a step. The gradient's
norm is none: it moves with the loss."""
BLIND = 0.6
"""Where the network may have slowed as well: no link moves a router's balance, but one that loses
packets slows a run as much."""
FEWER_SAMPLES = 0.6
"""Of samples that became longer, fewer a second: the same tokens, and what was planned is late."""
NOT_DONE, MUCH_LONGER = ("running", "timeout"), 0.8
"""Of the pace in steps, by which a plan in steps is kept: by a judgement, a quarter longer."""
OF_OTHERS = 0.79
"""Where no size is printed, and only their loss says that batches are others."""
NOT_READ = "Whether the network slowed as well: no counter of it was read."
NONE_READ = "Whether a clock, a host or the network slowed as well: nothing but the log was read."
GRADUAL = 0.02
"""Of the run: a balance is lost over some time, and the pace shows it only once it costs more than
its own noise.  How likely such a move meets a fall by chance is bounded beside it."""
ORDER = 2
"""A step's work grows at most as the square of its sequences' length (attention), and less with
anything else that is printed."""
SLACK = 2
"""Stretches by which the two may miss one another: logs and events are written later."""
_TOKENS = re.compile(
    r"(?i)(?:(?<![\w.,])(?P<before>\d[\d,]*(?:\.\d+)?) ?)?"
    r"(?<![a-z])(?:tok(?:en)?s?(?:[_ ]?/[_ ]?s|[_ ]?per[_ ]?s(?:ec|\b))|(?:tps|wps)\b)"
    r"(?:[a-z/_ ()'\"]{0,30}[:= ]{1,4}(?P<after>\d[\d,]*(?:\.\d+)?)(?![\w.]))?"
)
"""A number with a letter behind it (`950k`, `1.1M`) is none: of two the letters may differ."""
_SAMPLES = re.compile(
    r"(?i)(?<![a-z])(?:doc|sample|seq(?:uence)?|example|sentence|utt(?:erance)?|im(?:a)?g(?:e)?)s?"
    r"(?:[_ ]?/[_ ]?s(?:ec)?\b|[_ ]per[_ ]s(?:ec(?:ond)?)?\b)[\"']?[:= ]{1,6}"
    r"(?P<after>\d[\d,]*(?:\.\d+)?)(?![\w.])(?P<before>)"
)
"""The same of samples."""


@dataclass(frozen=True, slots=True)
class _Move:
    """That a metric left its level, when, and how likely it met the fall by chance."""

    name: str
    at: float
    chance: float
    before: Cite
    after: Cite
    values: tuple[float, float]
    fault_class: str = "expert-imbalance"
    step: int | None = None
    """Where the step itself printed it."""
    gradual: bool = False
    """Told point for point, not by when it moved."""

    @property
    def by_chance(self) -> str:
        if self.gradual:
            return "each takes as long as its own asks, which nothing else that grows would tell"
        return f"by chance the two would meet in {self.chance:.0%} of runs"

    @property
    def told(self) -> tuple[str, str]:
        """What it implies, and what cannot be decided of it."""
        if self.fault_class == "expert-imbalance":
            implied = "The model spread its work otherwise, and a step costs more since"
            return implied, "How the router spreads its tokens: counts per expert would tell."
        return "A step has more work to do since", (
            "Whether it costs what so much more work must: a run of that size throughout would"
            " tell."
        )


def judge(facts: Facts) -> Judgement:
    """The training slowed itself: everything else was measured and stayed as it was, and a
    training metric moved when throughput began to fall."""
    compiled = again(facts, CODE, RECOMPILED) or compiled_since(facts, CODE)
    if compiled is not None:
        return compiled
    run = course_in_order(facts)
    raised = other_dynamics(facts, CODE, MOVED.items())
    if run is None or raised is not None:
        return raised
    more = None if any(p.begins >= run.best.begins for p in run.slow) else _more_a_step(facts)
    if more is not None:
        return more
    if not run.slow:
        cites = shown(facts, run, run.best).cites
        return Cleared(CODE, "throughput did not fall", cites) if len(run.phases) == 1 else None
    if not run.pace.clocked:
        return _in_order(facts, run)
    measured = [signal for signal in MOVED if facts.measured(signal)]
    track = facts.main_track(facts.last.n)
    balanced = None if track is None else _balanced(facts, track)
    balance = None if balanced is None else _balance(facts, balanced)
    later = [phase for phase in run.slow if phase.begins >= run.best.begins]
    if not later:
        return None
    prints = None if track is None else sized_track(facts, track)
    sized = [] if prints is None else printed_sizes(facts, prints)
    # a balance is one, told twice
    tried = max(len(measured), int(balance is not None)) + _unlike(sized)
    moves = [move for signal in measured
             if (move := _move(facts, run, signal, tried)) is not None]  # fmt: skip
    if balanced is not None and balance is not None:
        moves += _logged(facts, run, balanced, balance, tried)
    grown = [] if prints is None else _grown(facts, run, prints, sized, tried)
    blind = not any(facts.measured(signal) for one in NETWORK for signal in one.signals)
    system = quiet(facts, run, (*WATCHED, SOCKETS) if blind else WATCHED)
    calm = all_quiet(system, NETWORK if blind else ()) is True
    told = calm or (moves != [] and balanced is not None and balance is not None
                    and follows(facts, run, times(facts, balanced)[0], *balance[1:]))  # fmt: skip
    chosen = grown or (moves if told else [])
    if not chosen:
        return _of_other_batches(facts, run, track, system) if calm and not blind else None
    first = min(chosen, key=lambda m: m.chance)
    found = _finding(facts, run, first, system if calm else ())
    if grown or not blind:
        return _held(facts, run, found, first, min(phase.part for phase in later))
    return replace(
        found,
        summary=found.summary.replace(
            "; nothing else changed", "; nothing else that was read changed"
        ),
        most=BLIND,
        cannot_decide=(NOT_READ if calm else NONE_READ, *found.cannot_decide),
    )


def _of_other_batches(
    facts: Facts, run: Course, track: Track | None, system: tuple[Quiet, ...]
) -> Finding | None:
    """The loss of training left its level where throughput fell, and that of held-out cases kept
    falling: the same model, of other batches."""
    seen = curve(facts)
    held = held_out_fell(facts, seen)
    if seen is None or track is None or seen.track is not track or held is None:
        return None
    at = [i for i in track.of_attempt(facts.last.n) if track.has_loss[i]]
    moves = _logged(facts, run, track, ("the training loss", at, [track.loss[i] for i in at]), 1)
    if not moves or moves[0].values[0] > moves[0].values[1]:
        return None
    found = _finding(facts, run, replace(moves[0], fault_class="size"), system)
    fell = claim(f"The loss of held-out cases went on falling, from {held.before:.4g} to"
                 f" {held.last:.4g}", *held.cites)  # fmt: skip
    return replace(
        found,
        most=OF_OTHERS,
        shows=(*found.shows, fell),
        implies=(claim("The model is as good as before: the batches are others, with more work to"
                       f" do; {moves[0].by_chance}.", *held.cites),),
        cannot_decide=("What was changed of the batches: their lengths, augmentation or order are"
                       " not printed.",),
    )  # fmt: skip


def _grown(
    facts: Facts,
    run: Course,
    track: Track,
    sized: Sequence[tuple[str, list[int], list[float]]],
    tried: int,
) -> list[_Move]:
    """Sizes that grew where throughput began to fall, by no less than it fell can come of."""
    if not any(phase.begins >= run.best.begins for phase in run.slow):
        return []
    least = first_slow(run).part / (1 - DROP)
    moves = [move for one in sized for move in _logged(facts, run, track, one, tried)]
    moves = moves or [move for one in sized for move in _in_proportion(facts, run, track, one)]
    return [
        replace(move, fault_class="size")
        for move in (*moves, *_told(facts, run, track))
        if move.values[0] < move.values[1] and (move.values[0] / move.values[1]) ** ORDER <= least
    ]


def _unlike(sized: Sequence[tuple[str, list[int], list[float]]]) -> int:
    """How many of these change apart from one another: prompts and what answers them are one, and
    what never goes as far as a move counts for none."""
    moving = [(at, v) for _, at, v in sized if max(v) - min(v) > PART * abs(min(v))]
    jumps = ([abs(b - a) for a, b in pairwise(values)] for _, values in moving)
    return len({at[one.index(max(one)) + 1]
                for one, (at, _) in zip(jumps, moving, strict=True)})  # fmt: skip


def _told(facts: Facts, run: Course, track: Track) -> list[_Move]:
    """The same by lines that say so, where the first step behind one is where throughput fell."""
    when = times(facts, track)[0] if run.pace.clocked else in_order(facts, track)
    told = [one for one in announced(facts, track) if one.index in when]
    begins, fell = falls(run)[0]
    slack = _spread_s(run, (begins, fell))
    length = run.pace.times[-1] - run.pace.times[0]
    chance = len(told) * (fell - begins + 2 * slack) / length
    return [
        _Move(one.name, when[one.index], chance, one.cite, one.cite, (one.before, one.after),
              step=track.steps[one.index])
        for one in told
        if chance <= CHANCE and begins - slack <= when[one.index] <= fell + slack
        and _slow_at_once(run, when[one.index])
    ]  # fmt: skip


def _slow_at_once(run: Course, at: float) -> bool:
    """Whether the steps behind are slow at once: they are of the new size.  The first that is
    printed may still tell of those before."""
    first = [value for time, value in zip(run.pace.times, run.pace.values, strict=True)
             if time >= at][1 : 1 + SLACK]  # fmt: skip
    return bool(first) and max(first) < (1 - DROP) * run.best.level


def _spread_s(run: Course, fall: tuple[float, float]) -> float:
    """By how much two that are read from one log may miss one another: without a clock, or laid on
    one by what steps print, both are read from one line, or from one step's lines."""
    printed = not run.pace.clocked or bool(run.pace.laid_by)
    spread_s = (1 if printed else 2 * SLACK) * run.pace.interval_s
    if printed:  # the first slow point lies as far behind the border as the last good one before
        return max(spread_s, 1.01 * (fall[1] - fall[0]))
    return max(spread_s, GRADUAL * (run.pace.times[-1] - run.pace.times[0]))


def _more_a_step(facts: Facts) -> Finding | None:
    """Steps that became longer with their sequences, while the throughput that the log prints held
    or rose: it counts the work done a second, of which a step has more.  Batches that grow are
    meant to, unless the steps became longer by more than they did; and where it counts tokens the
    run learns from as many as before: a warning, unless it counts samples as well, and fewer, or
    the run is not done, and its steps will take longer than they promised."""
    run = course_of_steps(facts)
    if run is None or run.pace.track is None or not run.pace.clocked:
        return None
    later = [phase for phase in run.slow if phase.begins >= run.best.begins]
    if not later:
        return None
    part = min(phase.part for phase in later)
    prints = sized_track(facts, run.pace.track)
    sized = printed_sizes(facts, prints)
    grown = [move for move in _grown(facts, run, prints, sized, _unlike(sized))
             if "batch" not in move.name
             or part < (1 - DROP) * move.values[0] / move.values[1]]  # fmt: skip
    if not grown:
        return None
    move = min(grown, key=lambda m: m.chance)
    found = _finding(facts, run, move, ())
    longer = f"Steps take {1 / part - 1:.0%} longer since {move.name} grew"
    return _held(facts, run, replace(found, summary=longer), move, part)


def _held(facts: Facts, run: Course, found: Finding, move: _Move, part: float) -> Finding:
    """Less sure, where steps have more to do and the tokens a second that the log prints held."""
    by_steps = move.fault_class == "size" and run.pace.unit == "steps/s"
    track = run.pace.track if by_steps else None
    last = "" if track is None else facts.point(track, run.pace.indexes[-1]).cite.text
    if _TOKENS.search(last) is None or _fewer(_TOKENS, move):
        return found
    if _fewer(_SAMPLES, move):
        return replace(found, strength=min(found.strength, FEWER_SAMPLES))
    longer = found.summary.partition(";")[0]
    found = replace(found, summary=f"{longer}; the tokens a second that are printed held")
    if facts.disposition in NOT_DONE and part <= MUCH_LONGER:
        return replace(found, strength=FEWER_SAMPLES, most=BLIND)
    return replace(found, strength=0.3, role="warning", severity="warning")


def _fewer(rate: re.Pattern[str], move: _Move) -> bool:
    """Whether what the log prints a second fell where the size grew."""
    said = [rate.search(cite.text) if isinstance(cite, LogCite) else None
            for cite in (move.before, move.after)]  # fmt: skip
    told = [one["after"] or one["before"] for one in said if one is not None]
    rates = [float(text.replace(",", "")) for text in told if text]
    return len(rates) == len(said) and rates[1] < (1 - DROP) * rates[0]


def _in_order(facts: Facts, run: Course) -> Judgement:
    """What steps without a clock show by themselves: the size that they print with their pace."""
    track = None if run.pace.track is None else sized_track(facts, run.pace.track)
    sized = [] if track is None else printed_sizes(facts, track)
    grown = [] if track is None else _grown(facts, run, track, sized, _unlike(sized))
    return _finding(facts, run, min(grown, key=lambda m: m.chance), ()) if grown else None


def _balanced(facts: Facts, track: Track) -> Track:
    """The track of the same log whose lines tell of it, where its own do not (`sized_track`)."""
    beside = (t for t in facts.tracks if t.source == track.source and t is not track)
    return next((one for one in (track, *beside) if _balance(facts, one) is not None), track)


def _balance(facts: Facts, track: Track) -> tuple[str, list[int], list[float]] | None:
    """The points at which the log prints how evenly the experts share the work, and the values:
    the balance loss, or what else a router tells."""
    at = [i for i in track.of_attempt(facts.last.n) if isfinite(track.balance[i])]
    if at:
        return MOVED["training_balance_loss"], at, [track.balance[i] for i in at]
    printed = printed_balance(facts, track)
    return None if printed is None else ("the balance of the experts", *printed)


def _move(facts: Facts, run: Course, signal: str, tried: int) -> _Move | None:
    """The metric's first move, if it falls where throughput began to fall and not before."""
    cut = timeline(facts, [signal], run.pace.span, samples=1)
    answer = None if cut is None else cut.ask(facts, f"quantile(0.5, avg_over_time({signal}[w]))")
    if cut is None or answer is None or len(answer.rows) != 1:
        return None
    row = answer.rows[0]
    points = [(t, v) for t, v in row.points() if isfinite(v)]
    left = left_level(run, points, lambda fall: SLACK * cut.length_s, tried)
    if left is None:
        return None
    moved, calm_at, most, chance = left
    return _Move(MOVED[signal], points[moved][0], chance,
                 answer.cite(row, f"{MOVED[signal]} before", at=points[calm_at][0]),
                 answer.cite(row, f"{MOVED[signal]} as it moved", at=points[most][0]),
                 (points[calm_at][1], points[most][1]))  # fmt: skip


def _when(facts: Facts, run: Course, track: Track, wanted: Sequence[int]) -> Mapping[int, float]:
    """When these points were printed, or stand; one that nothing lays on a clock is of the step
    whose bar stands above it."""
    when = times(facts, track)[0] if run.pace.clocked else in_order(facts, track)
    above = {i: when[i - 1] for i in wanted if i not in when and i - 1 in when}
    return {**when, **above}


def _in_proportion(
    facts: Facts, run: Course, track: Track, what: tuple[str, list[int], list[float]]
) -> list[_Move]:
    """A size that grows over many steps, each of which takes as long as its own size asks."""
    name, indexes, printed = what
    when = _when(facts, run, track, indexes)
    ends = in_proportion(run, when, indexes, printed) if run.pace.clocked else None
    if ends is None:
        return []
    before, after = (facts.point(track, indexes[one]).cite for one in ends)
    return [_Move(name, falls(run)[0][0], 0.0, before, after,
                  (printed[ends[0]], printed[ends[1]]), gradual=True)]  # fmt: skip


def _logged(
    facts: Facts, run: Course, track: Track, what: tuple[str, list[int], list[float]], tried: int
) -> list[_Move]:
    """The same of what the log prints with its steps: its name, points and values."""
    name, indexes, printed = what
    when = _when(facts, run, track, indexes)
    at = [i for i in indexes if i in when]
    points = [(when[i], v) for i, v in zip(indexes, printed, strict=True) if i in when]
    left = left_level(run, points, lambda fall: _spread_s(run, fall), tried, beside=True)
    if left is None:
        return []
    moved, calm_at, most, chance = left
    before, after = (facts.point(track, at[one]).cite for one in (calm_at, most))
    return [_Move(name, points[moved][0], chance, before, after,
                  (points[calm_at][1], points[most][1]), step=track.steps[at[moved]])]  # fmt: skip


def _finding(facts: Facts, run: Course, move: _Move, system: tuple[Quiet, ...]) -> Finding:
    later = [phase for phase in run.slow if phase.begins >= run.best.begins]
    worst = min(later, key=lambda phase: phase.part)
    clocked = run.pace.clocked
    step = step_at(facts, move.at) if clocked else move.step
    implied, open_ = move.told
    where = f" at step {step}" if step is not None else ""
    clean: list[Cite] = [cite for one in system for cite in (one.slow, one.best)]
    names = ", ".join(dict.fromkeys(one.watched.name for one in system))
    return Finding(
        code=CODE,
        summary=f"Throughput fell by {1 - worst.part:.0%} as {move.name} moved{where}"
        + ("; nothing else changed" if system else ""),
        fault_class=move.fault_class,
        attribution="training",
        shows=(
            claim(f"{move.name[:1].upper() + move.name[1:]} went from {move.values[0]:,.4g} to"
                  f" {move.values[1]:,.4g}{where}", move.before, move.after),
            shown(facts, run, worst),
            *((claim(f"As in the fast phase: {names}", *clean),) if clean else ()),
        ),
        implies=(
            claim(f"{implied}; {move.by_chance}.", move.before, move.after),
        ),
        strength=0.75,
        severity="degraded",
        scope="all",
        onset=datetime.fromtimestamp(move.at, UTC) if clocked else None,
        onset_step=step,
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=(open_,),
        actions=(_action(move),),
        resubmit="fix_first" if move.fault_class == "expert-imbalance" else "unknown",
    )  # fmt: skip


def _action(move: _Move) -> Action:
    if move.fault_class == "size":
        return Action("watch", "Steps of another size are not comparable: compare the pace with"
                      " that of steps of the same size.")  # fmt: skip
    return Action("watch", "Look at the router: weight of the balance loss, capacity, counts per"
                  " expert around this step.")  # fmt: skip
