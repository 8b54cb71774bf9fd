"""
The work itself grew.

Symptom:
    Throughput slides while every system signal is clean; a training metric moved at the same
    step: expert imbalance, sequence length, recompilation.

Mechanism:
    The model or the data changed the amount or the balance of work per step.

Told apart from:
    D2 to D5: a system signal moved.
    E1 loss-divergence: the loss itself is wrong.
    A training metric that moved at another time, and a fall for which a clock, a link or a host
    was not measured: then nothing is said.

Do:
    Look at the metric that moved: router balance, length buckets, compilation counts.

References:
    MaxText and Megatron mixture-of-experts metrics; JAX compilation logging.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite
from statistics import median

from flatline.facts import Facts
from flatline.judging.claims import claim
from flatline.judging.quiet import Quiet, all_quiet, quiet
from flatline.judging.throughput import Course, course, shown, step_at
from flatline.judging.timeline import timeline
from flatline.judging.uniform import other_dynamics
from flatline.model import Action, Cite, Cleared, Finding, Judgement, QueryCite
from flatline.series.spread import SIGMA, mad

CODE = "D6"
NAME = "training-dynamics-slowdown"
NEEDS = ("training throughput over time", "training metrics", "GPU, host and network metrics")
EXPLAINS = {"F3": "a slowed run does not reach its plan in time"}

MOVED = {"training_balance_loss": "the balance loss of the experts"}
"""Training metrics whose move means another amount or balance of work a step. The gradient's
norm is none: it moves with the loss."""
FAR, HALF = 6.0, 0.5
"""A metric has moved where it leaves its level in the fast phase by so many standard deviations
and by half of that level, for two stretches."""
AT_LEVEL = 0.01
"""Throughput within this of its best level has not begun to fall."""
CHANCE = 0.15
"""A metric that moves once meets the fall by chance as often as its window is long."""
SLACK = 2
"""Stretches by which the two may miss one another: logs and events are written later."""


@dataclass(frozen=True, slots=True)
class _Move:
    """That a metric left its level, when, and how likely it met the fall by chance."""

    signal: str
    at: float
    chance: float
    before: QueryCite
    after: QueryCite


def judge(facts: Facts) -> Judgement:
    """The training slowed itself: everything else was measured and stayed as it was, and a
    training metric moved when throughput began to fall."""
    run = course(facts)
    raised = other_dynamics(facts, CODE, MOVED.items())
    if run is None or raised is not None:
        return raised
    if not run.slow:
        cites = shown(facts, run, run.best).cites
        return Cleared(CODE, "throughput did not fall", cites) if len(run.phases) == 1 else None
    measured = [signal for signal in MOVED if facts.measured(signal)]
    if not measured or run.slow[0].begins < run.best.begins:
        return None
    system = quiet(facts, run)
    if all_quiet(system) is not True:
        return None
    moves = [move for signal in measured
             if (move := _move(facts, run, signal, len(measured))) is not None]  # fmt: skip
    return _finding(facts, run, min(moves, key=lambda m: m.chance), system) if moves else None


def _move(facts: Facts, run: Course, signal: str, tried: int) -> _Move | None:
    """The metric's first move, if it falls where throughput began to fall and not before."""
    cut = timeline(facts, [signal], run.pace.span, samples=1)
    answer = None if cut is None else cut.ask(facts, f"quantile(0.5, avg_over_time({signal}[w]))")
    if cut is None or answer is None or len(answer.rows) != 1:
        return None
    row = answer.rows[0]
    points = [(t, v) for t, v in row.points() if isfinite(v)]
    begins, fell = _fall(run)
    calm = [value for time, value in points if time <= begins - SLACK * cut.length_s]
    if len(calm) < 8:
        return None
    level = median(calm)
    far = max(FAR * SIGMA * mad(calm), HALF * abs(level))
    away = [abs(value - level) > far for _, value in points]
    moved = next((at for at in range(len(points) - 1) if away[at] and away[at + 1]), None)
    if moved is None:
        return None
    slack = SLACK * cut.length_s
    time = points[moved][0]
    window = fell - begins + 2 * slack
    chance = tried * window / (run.pace.times[-1] - run.pace.times[0])
    if not begins - slack <= time <= fell + slack or chance > CHANCE:
        return None
    most = max(
        range(moved, min(moved + 8, len(points))), key=lambda at: abs(points[at][1] - level)
    )
    calm_at = max(at for at in range(len(points)) if points[at][0] <= begins - slack)
    return _Move(signal, time, chance,
                 answer.cite(row, f"{MOVED[signal]} before", at=points[calm_at][0]),
                 answer.cite(row, f"{MOVED[signal]} as it moved", at=points[most][0]))  # fmt: skip


def _fall(run: Course) -> tuple[float, float]:
    """From when throughput last stood at its best level to the first slow phase."""
    first = run.slow[0]
    pairs = zip(run.pace.times, run.pace.values, strict=True)
    good = [time for time, value in pairs
            if time <= first.begins and value >= (1 - AT_LEVEL) * run.best.level]  # fmt: skip
    return (good[-1] if good else first.begins), first.begins


def _finding(facts: Facts, run: Course, move: _Move, system: tuple[Quiet, ...]) -> Finding:
    worst = min(run.slow, key=lambda phase: phase.part)
    step = step_at(facts, move.at)
    where = f" at step {step}" if step is not None else ""
    clean: list[Cite] = [cite for one in system for cite in (one.slow, one.best)]
    names = ", ".join(dict.fromkeys(one.watched.name for one in system))
    return Finding(
        code=CODE,
        summary=f"Throughput fell by {1 - worst.part:.0%} as {MOVED[move.signal]} moved{where};"
        " nothing else changed",
        fault_class="expert-imbalance",
        attribution="training",
        shows=(
            claim(f"{MOVED[move.signal].capitalize()} went from {move.before.value:.3g} to"
                  f" {move.after.value:.3g}{where}", move.before, move.after),
            shown(facts, run, worst),
            claim(f"As in the fast phase: {names}", *clean),
        ),
        implies=(
            claim("The model spread its work otherwise, and a step costs more since; by chance"
                  f" the two would meet in {move.chance:.0%} of runs.", move.before, move.after),
        ),
        strength=0.75,
        severity="degraded",
        scope="all",
        onset=datetime.fromtimestamp(move.at, UTC),
        onset_step=step,
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=("How the router spreads its tokens: counts per expert would tell.",),
        actions=(
            Action("watch", "Look at the router: weight of the balance loss, capacity, counts"
                   " per expert around this step."),
        ),
        resubmit="fix_first",
    )  # fmt: skip
