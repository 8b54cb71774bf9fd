"""
The run was making progress when its time limit ended it.

Symptom:
    The job ends TIMEOUT; steps, evaluations or checkpoints are printed up to the wall.

Mechanism:
    More work was planned than fits the limit, or the work is slower than was assumed.  The limit
    itself is a disposition: what matters is whether the run was advancing when it was reached.

Told apart from:
    C2 collective-hang, C3 idle-gpu-hang: progress had stopped long before the wall.
    C1 rendezvous-hang, F4 launch-failure: progress never began.
    D-families: the run advanced, but slower than the same work should.

Do:
    Raise the limit, or save checkpoints before it and chain jobs.

References:
    Slurm documentation: --time, --signal, OverTimeLimit, KillWait.
"""

from __future__ import annotations

from dataclasses import replace

from flatline.facts import Facts
from flatline.judging.by_steps import MOST_SLACK, Laid, added_up, laid
from flatline.judging.claims import claim
from flatline.judging.loss import curve
from flatline.judging.pace import Pace, lost_its_dates, pace, silence, wall
from flatline.judging.shapes import SHAPE_POINTS
from flatline.judging.steering import scheduler
from flatline.model import PRINTED, Action, Cite, Claim, Cleared, Finding, Judgement, Progress
from flatline.tracks import LEARNED

CODE = "F3"
NAME = "timeout"
NEEDS = ("scheduler records|job log to its end",)
DECIDED_BY = "dated steps up to the limit, or a record of the job's state and limit (sacct)"
EXPLAINS = {
    "A2": "the scheduler signals every task at the limit",
    "C2": "ranks are ended one after the other at the limit, and those left lose their peers",
}
INTERVALS = 5.0
"""Progress within so many usual intervals of the wall is progress to the wall."""
BREATH_S = 15.0
"""And a run that prints many times a second may take a breath for a checkpoint."""
PAUSED = 0.5
"""A run that the limit met in a pause like those it had come back from was advancing, most
likely."""
UNDATED, UNACCOUNTED = 0.75, 0.45
"""Both the log and the record say that the limit was met; neither, that steps were made then."""
EPOCHS, BY_EPOCHS = 3, 0.5
"""Evaluations of one epoch after the other: what each cost, and how long ago the last was, they do
not say.  As weak as two drawings of a bar."""
ONE_BAR = 0.45
"""One drawing of a bar, kept: that it had moved until then, and nothing of how long it stood."""
DIVERGED = "diverged"
LOST = ("non-finite", "spiked", "dead-plateau")
"""Shapes of a loss that E1 is confident of."""
MANY, ALIKE = 50, 0.2
"""tqdm's rate is a moving mean of ten drawings or so (smoothing=0.3): of fewer steps it is the
mean of all by its making. By how much the two may differ is a judgement."""
GRACE_S = 120.0
"""Where the usual interval is not known: a judgement, and then not a confident one."""


def judge(facts: Facts) -> Judgement:
    """A timeout counts only with progress up to the wall; without dated progress, weakly."""
    lines = [match for match in facts.standing("time-limit") if match.attempt == facts.last.n]
    job = facts.job
    timed_out = facts.disposition == "timeout" or (job is None and bool(lines))
    if not timed_out:
        return _cleared(facts)
    ends: list[Cite] = [match.cite for match in lines[:2]]
    if job is not None and job.disposition == "timeout":
        ends.append(job.cite)
    if not ends:
        return None
    seen = pace(facts)
    reached = wall(facts)
    if seen is not None and reached is not None and not lost_its_dates(facts, seen):
        seconds, derived = silence(seen, *reached)
        usual = seen.interval_s
        sure = 0.6 if usual is None else 0.9
        if seconds > (GRACE_S if usual is None else max(INTERVALS * usual, BREATH_S)):
            if seconds > seen.pauses_s:
                return None
            sure = PAUSED  # a pause like those before
        shown = claim(f"The last progress stands {seconds:.0f} s before the limit", derived,
                      seen.last)  # fmt: skip
        return _finding(facts, ends, shown, sure, seen)
    track = facts.main_track(facts.last.n)
    if track is None:
        return _by_bar(facts, ends) or _by_epochs(facts, ends)
    known = laid(facts)
    if known is not None:
        return _by_steps(facts, ends, known)
    point = facts.point(track, track.of_attempt(facts.last.n)[-1])
    shown = claim("Progress was printed, without a time of its own", point.cite)
    return _finding(facts, ends, shown, 0.6, None, most=UNDATED)


def _by_steps(facts: Facts, ends: list[Cite], known: Laid) -> Finding:
    """Steps that account for nearly all of the run's length were made up to its end."""
    sum_ = added_up(facts, known)
    left = f"its steps account for all but {known.slack_s:.0f} s of {known.wall_s:.0f} s"
    shown = claim(_cap(left), sum_, *(cite for cite in (*ends, *_record(facts))[-1:]))
    if known.slack_s <= MOST_SLACK * known.wall_s:
        return _finding(facts, ends, shown, 0.85, None)
    told = _finding(facts, ends, shown, UNACCOUNTED, None, most=UNACCOUNTED)
    step = f" at step {facts.last_step}" if facts.last_step is not None else ""
    return replace(
        told,
        summary=f"The time limit ended the run{step}; {left}",
        implies=(),
        actions=(
            Action("collect", "If it recurs, look whether the GPUs still work near the limit:"
                   " what stands still needs no longer one.", "py-spy dump --pid PID"),
        ),
        resubmit="unknown",
        cannot_decide=("What it did in the time no step accounts for: stand still, or start up.",
                       *told.cannot_decide),
    )  # fmt: skip


def _cap(text: str) -> str:
    return text[:1].upper() + text[1:]


def _record(facts: Facts) -> tuple[Cite, ...]:
    return () if facts.job is None else (facts.job.cite,)


def _by_bar(facts: Facts, ends: list[Cite]) -> Finding | None:
    """A bar that says nothing of itself, but stood halfway and had moved, is weak progress."""
    bars = [m for m in facts.markers_of("bar") if m.attempt == facts.last.n]
    if not bars:
        return None
    last = bars[-1]
    step, planned = last.progress.step, last.progress.planned
    if step is None or planned is None or step >= planned:
        return None
    text = f"A bar without a label stood at {step} of {planned}"
    if len(bars) > 1:
        return _finding(facts, ends, claim(text, bars[-2].cite, last.cite), 0.5, None)
    if not _kept_its_pace(last.progress):
        return None
    shown = claim(f"{text}, its last steps as fast as all of them were", last.cite)
    told = _finding(facts, ends, shown, ONE_BAR, None, most=ONE_BAR)
    went = f"a bar had gone steadily to {step} of {planned} when it was last drawn"
    return replace(told, summary=f"The time limit ended the run; {went}", implies=())


def _by_epochs(facts: Facts, ends: list[Cite]) -> Finding | None:
    """What is told of epochs alone, one after the other, is weak progress."""
    told: dict[float, Cite] = {}
    for marker in facts.markers_of("eval"):
        epoch = marker.progress.epoch
        if marker.attempt == facts.last.n and epoch is not None:
            told.setdefault(epoch, marker.cite)
    if len(told) < EPOCHS or list(told) != sorted(told):
        return None
    first, *_, last = told.values()
    text = f"Evaluations were printed of {len(told)} epochs, up to epoch {max(told):g}"
    return _finding(facts, ends, claim(text, first, last), BY_EPOCHS, None, most=UNDATED)


def _kept_its_pace(bar: Progress) -> bool:
    """Whether the one bar that is left shows that it had moved all along: the rate that tqdm draws
    is of the last steps, and the time beside it, of all of them, comes to the same."""
    if bar.step is None or bar.step < MANY or not bar.step_s or not bar.since_s:
        return False
    return abs(bar.since_s / (bar.step * bar.step_s) - 1) <= ALIKE


def _diverged(facts: Facts) -> bool:
    """Whether the steps it made had long been in vain, beyond doubt: the limit cut no training
    short then."""
    seen = curve(facts)
    return (
        seen is not None
        and seen.shape in LOST
        and seen.count >= SHAPE_POINTS
        and seen.track.format != LEARNED
        and seen.track.loss_name != PRINTED
    )


def _finding(
    facts: Facts,
    ends: list[Cite],
    shown: Claim,
    strength: float,
    seen: Pace | None,
    most: float = 1.0,
) -> Finding:
    step = f" at step {facts.last_step}" if facts.last_step is not None else ""
    plan = f" of {facts.planned_steps}" if facts.planned_steps and step else ""
    cannot = ["Whether the work was slower than it should be: that needs a run to compare with."]
    if seen is None:
        cannot.insert(0, "Whether the last step was near the limit: the steps carry no time.")
    return Finding(
        code=CODE,
        summary=f"The time limit ended the run{step}{plan} while it was making progress",
        fault_class=DIVERGED if _diverged(facts) else None,
        attribution="job",
        strength=strength,
        most=most,
        shows=(claim("The time limit ended the run", *ends), shown),
        implies=(
            claim("The run was advancing: it needed more time, it was not stuck.", *shown.cites),
        ),
        scope="none",
        onset=seen.at if seen else None,
        onset_step=facts.last_step,
        attempt=facts.last.n,
        cannot_decide=tuple(cannot),
        actions=(
            Action("raise_limit", "Ask for a longer limit, or chain jobs from checkpoints.",
                   "sbatch --time=D-HH:MM:SS" if scheduler(facts) == "slurm" else None),
        ),
        resubmit="fix_first",
    )  # fmt: skip


def _cleared(facts: Facts) -> Cleared | None:
    job = facts.job
    if job is None or job.disposition in ("unknown", "running", "pending"):
        return None
    return Cleared(CODE, f"the record says {job.state}, not TIMEOUT", (job.cite,))
