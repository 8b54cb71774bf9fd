"""Losses that show no fall where none is to be expected: of a late resume, of a policy."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from math import isfinite, log
from statistics import median

from flatline.facts import Facts, Point, Track
from flatline.judging.loss import ZERO_GRADIENT, Curve
from flatline.judging.shapes import (
    CHANCES,
    LATE_STEP,
    OF_ANOTHER_SCALE,
    RISE_Z,
    SHAPE_POINTS,
    trend,
)

RISEN = 1.02
"""Times the level it began at: repeats of one run differ by as much."""
NEAR_CHANCE, VOCABULARY = 0.01, 7.0
"""A level as near to that of so many classes alike, or above that of a vocabulary of a thousand
words, is a model's that knows nothing."""
SETTLED = 100.0
"""A gradient's norm beyond it is none of a model that was trained for long: clipping is at 1."""
GROWN = 3.0
DENOISER = "step_loss"
_STEPS_BAR = re.compile(
    r"\s*(?:Steps: .{1,200}\bloss=\S{1,20}, lr=\d"
    r"|Epoch \d{1,7}/\d{1,7}: .{1,200}\bloss=\S{1,20}, update=\d{1,12}\])"
)
"""examples/*/train_*.py of huggingface/diffusers and src/f5_tts/model/trainer.py of SWivid/F5-TTS:
the postfix of their bars."""
_OF_WORDS = re.compile(
    r"(?i)(?<![a-z])(?:ppl|perplexity)(?![a-z])"
    r"|(?<![a-z])tok(?:en)?s?[_ ]?(?:/|per)[_ ]?s(?:ec(?:ond)?)?(?![a-z])"
)
"""What a step of a language model prints, and none of a classifier."""
LETTERS = 10
"""A language of fewer letters (a genome's has four) prints the same, at chance as well."""
LATE_POINTS = 12
"""Fewer losses tell no fall, but do tell a level that a run went on at.  A judgement."""
MOST_ALIKE = 0.25
"""Of the losses may be one and the same number: more is one that stands, however it is printed."""
MOST_ROUNDED, VARIED, RARE = 0.5, 4, 0.02
"""The same where so many numbers at least come each in more than a fiftieth of the steps."""
_REWARD = re.compile(
    r"(?i)\b(?:[\w/]{0,40}(?:reward|return|ep_?re[tw]|reward score|(?<=critic/)score"
    r"|score(?=: \S{1,12} agent nll:))s?"
    r"(?:[/_](?!(?:\w{1,40}_)?(?:std|max|min|var|len|clip|model|weights?|loss)(?![a-z]))"
    r"\w{1,40}){0,2})"
    r"(?:['\"]?\s{0,3}[:=]\s{0,3}|\s{1,40}\|\s{1,3}|\s{1,3})"
    r"([-+]?\d{1,12}(?:\.\d{1,24})?(?:e[-+]?\d{1,3})?)"
)
_BY_NAME = re.compile(r"(?i)rewards?(?:[/_]mean)?['\"\s:=]")
_PAIRS = re.compile(r"\brewards/accuracies['\"]?\s{0,3}[:=]\s{0,3}(\d(?:\.\d{1,24})?)")
_SKIPS = re.compile(r"skipped iterations: {1,8}[1-9]")
_NAMED = re.compile(
    r"(?i)\b([\w/@.-]{0,60}(?:loss|kl|norm|grad|clip|ratio)[\w/@.-]{0,30})['\"]?\s{0,3}[:=]\s{0,3}"
    r"['\"]?([-+]?\d{1,12}(?:\.\d{1,24})?(?:e[-+]?\d{1,3})?)"
)
_LOST = re.compile(
    r"(?i)(?:loss|kl|norm|grad)[\w/@.-]{0,30}['\"]?\s{0,3}[:=]\s{0,3}['\"]?(?:nan|inf)\b"
)
LEARNT = 0.55
"""Of pairs in the right order: by chance half of them are."""
EXPLODED = 30.0
"""Times a number of the first steps: none that is looked after grows so."""
SAMPLED, SOME, BEHIND = 6, 60, 10
"""Steps at either end, and over the run, that are looked at for a reward; lines of one step."""
MANY = 30
"""Steps without any reward: the first may have none in a run that learns.  A judgement."""
REWARDED_Z = 4.0
"""Of a rank correlation with the step: rewards scatter, and by chance one in 30,000 rises so."""
_OPTIMIZER_TOOK = re.compile(
    r"(?i)\bopt(?:im(?:izer)?)?(?:[ _.-]?(?:step|update))?(?:[ _.-]?(?:time|ms|s))?[=: ]{1,2}"
    r"\d{0,6}\.?\d*[1-9]"
)
_ADVERSARY = re.compile(r"(?i)(?:^|[_/. ])(?:[dg]|disc\w*|gen(?:erator)?)(?:$|[_/. ])")


def kept_level(facts: Facts, seen: Curve | None) -> tuple[Point, Point] | None:
    """The first and the last loss of a run that went on from a checkpoint, late (which its first
    step tells as well), whose losses stay at the level it went on at while its gradients move, or
    steps are taken where no gradient is told, none of it that of a model that knows nothing; None
    elsewhere."""
    if seen is None or seen.shape != "unclear" or seen.count < LATE_POINTS:
        return None
    if seen.head is None or seen.tail is None or not 0 < seen.tail <= RISEN * seen.head:
        return None
    track, span = seen.track, seen.track.of_attempt(facts.last.n)
    loaded = any(m.attempt == facts.last.n
                 for m in facts.markers_of("checkpoint_loaded", "resume"))  # fmt: skip
    went_on = loaded or not any(m.attempt == facts.last.n for m in facts.markers_of("fresh"))
    if not went_on or track.steps[span[0]] < LATE_STEP or any(track.skipped[i] for i in span):
        return None
    if any(_SKIPS.search(facts.text(track.source, track.lines[i])) for i in span[-SAMPLED:]):
        return None
    losses = [track.loss[i] for i in span if track.has_loss[i]]
    norms = [track.grad_norm[i] for i in span if track.has_grad[i]]
    named = any("lm" in t.loss_name.lower() for t in facts.tracks if t.source == track.source)
    told = _OF_WORDS.search(seen.points[-1].cite.text) is not None
    least = 1 if named else LETTERS if told else 0
    if _knows_nothing(facts, (seen.head, seen.tail), least) or _stands(losses):
        return None
    if trend(losses) > RISE_Z:
        return None
    if not norms:
        return (seen.points[0], seen.points[-1]) if loaded and _steps_taken(facts, track) else None
    if not _settled(norms, LATE_POINTS) or max(norms) > SETTLED:
        return None
    return seen.points[0], seen.points[-1]


def _stands(losses: Sequence[float]) -> bool:
    """Whether most are one number; where few digits are printed, as 2.02, many are by rounding."""
    often = sorted(Counter(losses).values())
    some = sum(count > RARE * len(losses) for count in often)
    return often[-1] > (MOST_ROUNDED if some >= VARIED else MOST_ALIKE) * len(losses)


def _steps_taken(facts: Facts, track: Track) -> bool:
    """Whether, where no gradient is printed, the same log gives a learning rate with many steps
    that is never nought, or where it gives none, each of the last says how long the optimizer
    took; and it tells of no step that was skipped."""
    rates: list[float] = []
    timed = False
    for beside in facts.tracks:
        span = beside.of_attempt(facts.last.n)
        if beside.source != track.source or not len(span):
            continue
        ends = [facts.text(track.source, beside.lines[i]) for i in span[-SAMPLED:]]
        if any(beside.skipped[i] for i in span) or any(map(_SKIPS.search, ends)):
            return False
        timed = timed or all(map(_OPTIMIZER_TOOK.search, ends))
        rates += [beside.lr[i] for i in span if isfinite(beside.lr[i])]
    return len(rates) >= SHAPE_POINTS and min(rates) > 0 if rates else timed


def denoised(facts: Facts, seen: Curve | None) -> tuple[Point, Point] | None:
    """The first and the last loss of a denoiser, as diffusers' scripts print it, whose losses stay
    finite and do not rise: they scatter with the noise that a step draws, by far more than what is
    learnt takes off them."""
    if seen is None or seen.shape != "unclear" or not _of_a_denoiser(facts, seen.points[0]):
        return None
    track, span = seen.track, seen.track.of_attempt(facts.last.n)
    losses = [track.loss[i] for i in span if track.has_loss[i]]
    if len(losses) < SHAPE_POINTS or not all(isfinite(v) and v > 0 for v in losses):
        return None
    if trend(losses) > RISE_Z or max(Counter(losses).values()) > MOST_ALIKE * len(losses):
        return None
    return seen.points[0], seen.points[-1]


def _of_a_denoiser(facts: Facts, point: Point) -> bool:
    """By the name of its loss, or the bar that diffusers' other scripts print it in."""
    if point.track.loss_name == DENOISER:
        return True
    return _STEPS_BAR.match(facts.text(point.cite.source, point.cite.line)) is not None


def _knows_nothing(facts: Facts, ends: Sequence[float], of_words: int) -> bool:
    """Whether the level of both ends is that of a model without any training, or one that it was
    far below, as it is no more where that is measured; a language model has more words than
    so many classes, 0 where it is none."""
    level = min(ends)
    alike = [k for k in CHANCES if all(abs(end / log(k) - 1) < NEAR_CHANCE for end in ends)]
    if level > VOCABULARY or any(k < of_words or not of_words for k in alike):
        return True
    told = [(m.attempt, m.progress.loss) for m in facts.markers_of("eval")
            if m.progress.loss is not None and "loss" in m.progress.loss_name]  # fmt: skip
    below = [(n, isfinite(loss) and 0 < 2 * loss < level) for n, loss in told]
    return any(far for _, far in below) and below[-1] != (facts.last.n, True)


def _settled(norms: Sequence[float], least: int = SHAPE_POINTS) -> bool:
    """Whether so many gradients are there and do not grow."""
    if len(norms) < least or not all(isfinite(n) and n > 0 for n in norms):
        return False
    half = len(norms) // 2
    return median(norms[half:]) <= GROWN * median(norms[:half])


def policy_rewarded(facts: Facts) -> tuple[Point, Point] | None:
    """The first and the last number of a policy that is not meant to fall, where numbers and
    gradients stayed finite and of a size, and the reward that stands beside them did not fall."""
    track = facts.main_track(facts.last.n)
    if track is None or track.falling or _ADVERSARY.search(track.loss_name):
        return None
    span = track.of_attempt(facts.last.n)
    points = [i for i in span if track.has_loss[i]]
    norms = [track.grad_norm[i] for i in span if track.has_grad[i]]
    if len(points) < 2 * SAMPLED or (norms and not _settled(norms, 2 * SAMPLED)):
        return None
    sizes = [abs(track.loss[i]) for i in points]
    if not all(map(isfinite, sizes)):
        return None
    third = len(sizes) // 3
    if max(sizes[-third:]) > OF_ANOTHER_SCALE * max(sizes[:third]):
        return None
    begun = [_said(facts, track, i) for i in points[:SAMPLED]]
    ended = _last_said(facts, track, points)
    first, last = _rewards(begun), _rewards(ended)
    if min(len(first), len(last)) < SAMPLED or median(last) <= median(first):
        return None
    if median(_rewards(ended, by_name=False)) < median(_rewards(begun, by_name=False)):
        return None
    if not norms and not _rises(facts, track, points):
        return None
    if _exploded(begun, ended):
        return None
    if any("accuracies" in text for text in begun) and (
        median(last) < LEARNT or median(sizes[-third:]) > median(sizes[:third])
    ):
        return None
    return facts.point(track, points[0]), facts.point(track, points[-1])


def never_rewarded(facts: Facts) -> Curve | None:
    """A policy's loss that is one number, with no gradient in any step and one reward throughout,
    none above nought: no answer was better than another, and no weight moved.  A reward at its
    best leaves no gradient either, and a gradient that was not measured is printed as nought."""
    track = facts.main_track(facts.last.n)
    if track is None or track.falling or _ADVERSARY.search(track.loss_name):
        return None
    points = [i for i in track.of_attempt(facts.last.n) if track.has_loss[i]]
    still = all(track.has_grad[i] and abs(track.grad_norm[i]) <= ZERO_GRADIENT for i in points)
    if len(points) < MANY or not still or len({track.loss[i] for i in points}) > 1:
        return None
    some = points[:: max(1, len(points) // SOME)]
    rewards = {tuple(map(float, _REWARD.findall(_said(facts, track, i)))) for i in some}
    if len(rewards) > 1 or not (told := rewards.pop()) or max(told) > 0:
        return None
    ends = (facts.point(track, points[0]), facts.point(track, points[-1]))
    level = track.loss[points[0]]
    return Curve("flat-no-gradient", track, ends, ends[0], level, level, level, len(points))


def _said(facts: Facts, track: Track, index: int) -> str:
    """A step's line, and those behind it that are of the same step."""
    first = track.lines[index]
    after = track.lines[index + 1] if index + 1 < len(track) else first + BEHIND
    count = max(1, min(after - first, BEHIND))
    return "\n".join(facts.lines(track.source, first, count, _LONGEST))


def _last_said(facts: Facts, track: Track, points: Sequence[int]) -> list[str]:
    """Those of the last steps.  Where the reward stands on a line of its own, the very last step
    may have none behind it: it came before, or the log was read in between."""
    texts = [_said(facts, track, i) for i in points[-SAMPLED - 1 :]]
    return texts[1:] if _rewards(texts[-1:]) else texts[:-1]


def _rewards(texts: Sequence[str], *, by_name: bool = True) -> list[float]:
    """The first reward of each, `by_name` one that is called so before a return beside it, which
    may be the critic's target or scaled to one size; of pairs, how many are in the right order,
    for the reward of the chosen ones may well fall."""
    told = (_PAIRS.search(text) or _reward(text, by_name) for text in texts)
    return [float(found[1]) for found in told if found]


def _reward(text: str, by_name: bool) -> re.Match[str] | None:
    every = _REWARD.finditer(text)
    first = next(every, None)
    if first is None or not by_name or _BY_NAME.search(first[0]):
        return first
    return next((found for found in every if _BY_NAME.search(found[0])), first)


def _rises(facts: Facts, track: Track, points: Sequence[int]) -> bool:
    """Whether the reward rises over the whole run: where no gradient is told, nothing else says
    that something is learnt."""
    some = points[:: max(1, len(points) // SOME)]
    rewards = _rewards([_said(facts, track, i) for i in some])
    return len(rewards) >= SHAPE_POINTS and trend(rewards) > REWARDED_Z


def _exploded(begun: Sequence[str], ended: Sequence[str]) -> bool:
    """Whether any of the numbers that are kept small grew beyond all bounds, or is none."""
    if any(map(_LOST.search, ended)):
        return True
    sizes: list[dict[str, float]] = [{}, {}]
    for of, texts in zip(sizes, (begun, ended), strict=True):
        for name, value in (pair for text in texts for pair in _NAMED.findall(text)):
            of[name] = max(of.get(name, 0.0), abs(float(value)))
    first, last = sizes
    return any(
        0 < EXPLODED * first[name] < value and value > 1
        for name, value in last.items()
        if name in first
    )


_LONGEST = 8_192
"""Characters of a line: those of verl have some 5,000."""
