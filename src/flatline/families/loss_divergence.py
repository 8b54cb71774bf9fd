"""
The run trained and the model did not learn.

Symptom:
    The loss became NaN or infinite and stayed so; or it rose far above the best level it had
    reached and never came back, or climbs away from it to the very end; or it leapt to one number
    and prints only that; or it is flat while every gradient is zero.  Where no loss tells, an
    accuracy is the same to its last digit in epoch after epoch, at what one class in so many
    would give.  The job itself may end well.

Mechanism:
    A learning rate too high or warmed up too fast, an overflow in half precision, bad labels or
    a bad batch, parameters that receive no gradient.  Once weights hold a NaN, nothing after it
    can recover.

Told apart from:
    A loss scaler that skips single overflowing steps: the loss is finite again on the next.
    A run that prints no loss and measures its own quality (MLPerf) is judged by that.
    Spikes that recover; rewards, KL terms and adversarial losses, which are not meant to fall.
    A loss that nears 0.0000 step by step; a display that repeats the last number.
    An accuracy of few digits or few cases, and one that was high from the start.
    A loss above a baseline's from the first step on, or of another learning rate: not the same
    experiment.  One that parts from it upwards at a step of a run set alike is named.
    B2 gpu-hardware-fault: silent corruption shows on one rank first.
    D6 training-dynamics-slowdown: the loss is fine, the speed is not.

Do:
    Go back to the last checkpoint before the onset; lower the learning rate or lengthen the
    warm-up, check the batch at the onset, use bf16 instead of fp16 or clip gradients.

References:
    PyTorch automatic mixed precision (GradScaler); transformers logging_nan_inf_filter.
"""

from __future__ import annotations

from math import exp, isfinite

from flatline.facts import Facts
from flatline.judging.claims import claim
from flatline.judging.good_already import good_already
from flatline.judging.held_out_fell import held_out_fell
from flatline.judging.leads import Lead, lead, raised, shows
from flatline.judging.level_kept import denoised, kept_level, never_rewarded, policy_rewarded
from flatline.judging.loss import Curve, curve
from flatline.judging.measured import better
from flatline.judging.shapes import CHANCES, SHAPE_POINTS, beyond_chance
from flatline.judging.standing import (
    Standing,
    both_at_chance,
    fell_to_chance,
    fell_to_nought,
    standing_still,
)
from flatline.judging.uniform import apart_in_loss
from flatline.model import PRINTED, Action, Cleared, Finding, Judgement
from flatline.tracks import LEARNED

CODE = "E1"
NAME = "loss-divergence"
NEEDS = ("training progress with a loss",)
DECIDED_BY = (
    "the loss or gradient norm of more steps than were read; reward and KL where the loss is not"
    " meant to fall (the log, TensorBoard events)"
)
EXPLAINS = {
    "A3/code": "a non-finite loss or gradient makes the program stop itself",
    "A1/config": "a non-finite loss or gradient makes the program stop itself",
    "A3/data": "a non-finite loss or gradient makes the program stop itself",
    "E3": "a run that diverged was stopped before its plan",
    "F3/diverged": "the limit ended a run whose steps had been in vain since its loss was lost",
}
FEW = {"non-finite": 3, "dead-plateau": SHAPE_POINTS, "spiked": SHAPE_POINTS}
"""Points below which these shapes are believed less."""
_STRENGTH = {
    "non-finite": 0.93,
    "spiked": 0.82,
    "stepped-up": 0.5,
    "stuck": 0.7,
    "rising-at-end": 0.7,
    "never-fell": 0.5,
    "risen": 0.5,
    "unbounded": 0.75,
    "dead-plateau": 0.8,
    "undecided": 0.6,
    "frozen": 0.6,
    "flat-from-start": 0.45,
    "zero-throughout": 0.5,
    "flat-no-gradient": 0.8,
    "flat-no-rate": 0.7,
}


DOUBTED = 0.79
AT_CHANCE, STANDS, BOTH, FELL = 0.55, 0.45, 0.7, 0.65
"""An accuracy alone never makes it sure; one of held-out cases may be its evaluation's fault. A
loss at chance beside it is no evaluation's, nor is one that it once found good."""
MEAN_CLEARLY_ABOVE, MEAN_ABOVE = 1.05, 1.25
"""A loss that stayed at one level has its mean there; a quarter above is no chance, nor is less
where the last losses scatter little."""


def judge(facts: Facts) -> Judgement:
    """The shape decides, not the presence of a NaN; what is not meant to fall is left alone."""
    said = lead(facts, CODE)
    if said is not None:
        return _said(facts, said)
    seen = curve(facts)
    parted = apart_in_loss(facts, CODE)
    if parted is not None and (seen is None or seen.shape in ("falling", "unclear")):
        return parted
    if seen is None or seen.shape in ("falling", "unclear"):
        met = [m for m in facts.tagged("target-reached") if m.attempt == facts.last.n]
        if met:
            text = "the program measured that the quality it was to reach was reached"
            return Cleared(CODE, text, (met[-1].cite,), decisive=True)
        if seen is not None and (lost := _held_out(facts, seen)) is not None:
            return lost
        if (still := both_at_chance(facts)) is not None:
            return _still(facts, still)
    if seen is None or seen.shape == "unclear":
        return _untold(facts, seen)
    if seen.shape == "falling":
        text = (
            f"the loss is finite and fell from {seen.head:.4g} to {seen.tail:.4g}"
            f" over {seen.count} points"
        )
        return Cleared(CODE, text, tuple(p.cite for p in seen.points))
    if (held := held_out_fell(facts, seen)) is not None:
        text = (
            f"the loss rose to {seen.tail:.4g}, and that of held-out cases went on falling, from"
            f" {held.before:.4g} to {held.last:.4g}: the batches are others, the model learns"
        )
        return Cleared(CODE, text, (*(p.cite for p in seen.points[:1]), *held.cites))
    return _finding(facts, seen)


def _untold(facts: Facts, seen: Curve | None) -> Judgement:
    """Where no loss shows whether anything was learnt."""
    if seen is None and (unmoved := never_rewarded(facts)) is not None:
        return _finding(facts, unmoved)
    still = fell_to_chance(facts) or fell_to_nought(facts) or standing_still(facts)
    if still is not None:
        return _still(facts, still)
    if (ends := kept_level(facts, seen)) is not None:
        text = "the loss is finite and kept the level that the run went on at"
        return Cleared(CODE, text, tuple(p.cite for p in ends))
    if (good := good_already(facts, seen)) is not None:
        return Cleared(CODE, good.text, good.cites)
    if (ends := denoised(facts, seen)) is not None:
        text = (
            "the loss, which scatters with the noise that a step draws, is finite and did not rise"
        )
        return Cleared(CODE, text, tuple(p.cite for p in ends))
    if seen is None and (ends := policy_rewarded(facts)) is not None:
        text = "the reward rose; the loss, not meant to fall, and its gradients stayed finite"
        return Cleared(CODE, text, tuple(p.cite for p in ends))
    if seen is None and (known := better(facts)) is not None:
        text = f"no loss tells, and the {known.name} went from {known.first:g} to {known.last:g}"
        return Cleared(CODE, text, known.cites, decisive=True)
    return None if seen is None else _by_its_mean(facts, seen)


def _held_out(facts: Facts, seen: Curve) -> Finding | None:
    """That the last evaluation's loss is no number, as the training's still is, while an earlier
    one's was or the training's has not come down."""
    told = [m for m in facts.markers_of("eval")
            if m.attempt == facts.last.n and m.progress.loss is not None]  # fmt: skip
    if not told or isfinite(told[-1].progress.loss or 0.0):
        return None
    last = told[-1]
    sound = next((m for m in reversed(told) if isfinite(m.progress.loss or 0.0)), None)
    first, end = (seen.points[at].loss or 0.0 for at in (0, -1))
    fell = seen.shape == "falling" or end < MEAN_ABOVE * first
    if sound is None and fell:
        return None  # from the first on: an evaluation of nothing, or one that never worked
    cites = [last.cite, *((sound.cite,) if sound else (p.cite for p in seen.points))]
    text = "The loss of the last evaluation is non-finite, that of training is not"
    return Finding(
        code=CODE,
        summary=text,
        fault_class="non-finite",
        attribution="training",
        strength=0.5,
        severity="degraded",
        shows=(claim(text, *cites),),
        implies=(claim("What was trained last gives some held-out cases no value.", last.cite),),
        scope="all",
        onset=last.cite.at,
        onset_step=last.progress.step,
        order=(last.cite.source, last.cite.line),
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=("Whether the weights or only the evaluation overflow: half precision, an"
                       " empty batch and a log of nought look alike.",),
        actions=(Action("fix", "Evaluate the last checkpoint once in full precision, and the one"
                        " before it."),),
        resubmit="unknown",
    )  # fmt: skip


def _still(facts: Facts, still: Standing) -> Finding:
    """An accuracy that did not move."""
    said = f"The {still.name} is {still.value} in all {still.count} {still.unit} read"
    alone = "" if still.best is not None else ", and no other moved"
    like = f": what one class of {still.chance} gives" if still.chance else alone
    if still.loss is not None:
        like += f"; the loss is {still.loss:.4f}, ln {still.chance}"
    if still.best is not None:
        like += f"; it had been {still.best:.4g}"
    return Finding(
        code=CODE,
        summary=said + like,
        fault_class="metric-at-chance" if still.chance else "metric-stands",
        attribution="training",
        strength=BOTH if still.loss is not None else FELL if still.best is not None
        else STANDS if still.chance is None or still.held_out else AT_CHANCE,
        severity="degraded",
        shows=(claim(said + like, *still.cites),),
        implies=(claim("Weights that move change some answers: this model gives all cases the"
                       " same one, and has "
                       + ("lost what it had learnt." if still.best else "learnt nothing."),
                       *still.cites[-1:]),),
        scope="all",
        onset=still.cites[0].at,
        order=(still.cites[0].source, still.cites[0].line),
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=("Whether the labels, the rate, frozen parameters or the device's arithmetic"
                       " keep it there.",) if still.loss is not None
        else ("What took it there: the epochs in which it fell, and the gradients' norms of them,"
              " would tell.",) if still.best is not None
        else ("Whether the loss moved: none was read that shows it. Labels, learning rate"
              " and frozen parameters are to be looked at.",),
        actions=(Action("fix", _advice(facts, None)),),
        resubmit="fix_first",
    )  # fmt: skip


def _by_its_mean(facts: Facts, seen: Curve) -> Cleared | None:
    """Of a log that holds only the end of a run: the mean loss of all its steps, which a trainer
    prints when it is done, far above the last ones. (After a resume transformers divides the sum
    since then by all steps, which makes it too small and never too large.)"""
    ends = [m for m in facts.markers_of("finished") if m.attempt == facts.last.n]
    mean = ends[-1].progress.loss if ends else None
    if mean is None or not isfinite(mean) or seen.tail is None:
        return None
    if not 0 < seen.tail * MEAN_CLEARLY_ABOVE < mean:
        return None
    if mean < MEAN_ABOVE * seen.tail and not beyond_chance(mean, seen.last):
        return None
    text = (
        f"the mean loss of the whole run, {mean:.4g}, stands above the last ones, {seen.tail:.4g}"
    )
    return Cleared(CODE, text, (ends[-1].cite, *(p.cite for p in seen.points)))


def _said(facts: Facts, said: Lead) -> Finding:
    """The program itself reported it: a loss scaler at its end, a NaN check that stopped it."""
    first = said.first
    return Finding(
        code=CODE,
        summary=raised(said),
        fault_class=first.fault_class or "non-finite",
        attribution="training",
        strength=first.strength,
        severity="degraded",
        shows=(shows(said),),
        implies=(claim(first.what, first.cite),),
        scope="all",
        onset=first.cite.at,
        onset_step=facts.last_step,
        order=(first.cite.source, first.cite.line),
        attempt=first.attempt,
        ended_run=first.crash is not None,
        cannot_decide=("Why it diverged (learning rate, precision, data) is not in the log.",),
        actions=(Action("fix", "Resume from a checkpoint before it with a lower learning rate."),),
        resubmit="fix_first",
    )


def _told(seen: Curve, where: str) -> str:
    """The shape in words."""
    name = seen.track.loss_name
    if seen.skipped and seen.count == 1:
        return f"More than half of all steps were skipped, counted{where}: no gradient is finite"
    if seen.skipped:
        return f"Every step was skipped{where} and since: the gradients are non-finite"
    if seen.throughout:
        lines = f"every line read ({seen.count})" if seen.count > 1 else "the one line read of it"
        return f"The {name} or its gradient is non-finite in {lines}"
    if seen.shape == "non-finite" and seen.count == 1:
        return f"The last {name} that was read{where} is non-finite"
    by = exp(seen.tail) if seen.shape == "undecided" and seen.tail is not None else 0.0
    cases = min(CHANCES, key=lambda k: abs(k - by))
    return {
        "non-finite": f"The {name} or its gradient became non-finite{where} and stayed so",
        "spiked": f"The {name} rose{where} far above what it had been and did not come back",
        "stepped-up": f"The {name} rose{where} far above its level and falls again from there",
        "stuck": f"The {name} leapt{where} from its best level and has not fallen since",
        "rising-at-end": f"The {name} has climbed steadily{where} from its best level to the end",
        "dead-plateau": f"The {name} stopped dead{where}: every value since is the very same",
        "undecided": f"The {name} is ln {cases} from the first lines on: each of {cases} cases is"
        " called as likely as the next",
        "frozen": f"The {name} is one and the same number, epoch after epoch",
        "flat-from-start": f"The {name} has stood at one level since the run began",
        "zero-throughout": f"The {name} is exactly 0 in every line",
        "never-fell": f"The {name} only rose from its start and never fell",
        "risen": f"The {name} climbs throughout what was read and never fell",
        "unbounded": f"The {name} sank without bound{where}: what it measures has no lower end",
        "flat-no-gradient": f"The {name} is flat and every gradient is zero",
        "flat-no-rate": f"The {name} is flat and the learning rate is 0 in every line",
    }[seen.shape]


def _finding(facts: Facts, seen: Curve) -> Finding:
    onset = seen.onset.step if seen.onset else None
    text = _told(seen, f" at step {onset}" if onset is not None else "")
    cites = [p.cite for p in seen.points]
    levels = [
        f"{label} {value:.4g}"
        for label, value in (("start", seen.head), ("best", seen.best), ("end", seen.tail))
        if value is not None
    ]
    shows = [claim(text + (f" ({', '.join(levels)})" if levels else ""), *cites)]
    strength = _STRENGTH[seen.shape]
    if seen.count < FEW.get(seen.shape, 0):
        strength = 0.7
    if seen.shape == "non-finite" and seen.count == 1 and not (seen.throughout or seen.skipped):
        strength = 0.55
    learned = seen.track.format == LEARNED and seen.shape != "non-finite"
    idle = seen.shape in ("flat-no-gradient", "flat-no-rate") and not any(seen.track.lr)
    if seen.track.loss_name == PRINTED or learned or idle:
        strength = min(strength, 0.6)
    return Finding(
        code=CODE,
        summary=text,
        fault_class=seen.shape,
        attribution="training",
        strength=strength,
        most=DOUBTED if learned or idle else 1.0,
        severity="degraded",
        shows=tuple(shows),
        implies=(
            claim(f"Every step {'read' if seen.throughout else 'after the onset'} was spent on a"
                  " model that is not learning, whatever the exit status says.", *cites[:1]),
        ),
        scope="all",
        onset=seen.onset.cite.at if seen.onset else None,
        onset_step=onset,
        order=(seen.onset.cite.source, seen.onset.cite.line) if seen.onset else None,
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=(
            "Why it diverged (learning rate, precision, data): the configuration behind the curve"
            " is not in the log.",
            *(("Whether this number is a loss that is to fall: what the line's numbers are was"
               " learned from the log.",) if learned else ()),
            *(("Whether it trains at all: with a rate of 0 a model is evaluated as well.",)
              if idle else ()),
            *(("Whether the data was changed there on purpose.",)
              if seen.shape in ("stepped-up", "stuck") else ()),
            *(("Whether the model began trained: its loss may then have little to fall.",)
              if seen.shape == "flat-from-start" else ()),
            *((f"The shape rests on {seen.count} point{'s' * (seen.count > 1)}.",)
              if seen.count < SHAPE_POINTS else ()),
        ),
        actions=(Action("fix", _advice(facts, onset)),),
        resubmit="fix_first",
    )  # fmt: skip


def _advice(facts: Facts, onset: int | None) -> str:
    """What to go back to, as far as checkpoints were told of; nothing without an onset."""
    if onset is None:
        return (
            "Find what keeps the model from learning (labels and their mask, frozen parameters,"
            " learning rate) before it runs again."
        )
    told = [m.progress.step for m in facts.markers_of("checkpoint_saved")]
    before = [step for step in told if step is not None and step < onset]
    back = "Resume from a checkpoint before the onset, if there is one,"
    if before:
        back = f"Resume from the checkpoint at step {max(before)}, before the onset,"
    elif told:
        back = "No checkpoint before the onset is told of: start again"
    return f"{back} with a lower learning rate, or find the batch at the onset."
