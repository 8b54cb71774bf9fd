"""Models that are good by a measure of their own, where the losses that were read show no fall."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

from flatline.facts import Facts
from flatline.judging.level_kept import MOST_ALIKE
from flatline.judging.loss import Curve
from flatline.judging.shapes import RISE_Z, SHAPE_POINTS, trend
from flatline.model import Cite, LogCite

OVERLAPS = 0.5
"""Of the regions, in the mean over classes: a model that knows nothing overlaps by less."""
KNOWS, BEHIND = 0.05, 40
"""Of ImageNet's thousand classes, of which guessing finds a thousandth; lines behind the last
loss, in which the last evaluation is told."""
_ZERO_SHOT = re.compile(r"\bimagenet-zeroshot-val(?:-\w{1,20})?-top1: ([01]\.\d{1,12})")


@dataclass(frozen=True, slots=True)
class Good:
    """What shows it, in words, and the lines."""

    text: str
    cites: tuple[Cite, ...]


def good_already(facts: Facts, seen: Curve | None) -> Good | None:
    """None where the loss tells by itself, rises or stands, or nothing else is measured."""
    if seen is None or seen.shape != "unclear" or seen.tail is None:
        return None
    track = seen.track
    losses = [track.loss[i] for i in track.of_attempt(facts.last.n) if track.has_loss[i]]
    if len(losses) < SHAPE_POINTS or not _moves(losses):
        return None
    ends = tuple(point.cite for point in seen.points)
    if track.format == "nnunet":
        text = (
            f"the loss, a cross-entropy less the overlap, came to {seen.tail:.3g}: what was found"
            f" overlaps with what was to be found by {-seen.tail:.0%} or more"
        )
        return Good(text, ends) if seen.tail <= -OVERLAPS else None
    return (
        _zero_shot(facts, track.source, track.lines[-1]) if track.format == "open_clip" else None
    )


def _moves(losses: Sequence[float]) -> bool:
    alike = max(Counter(losses).values()) > MOST_ALIKE * len(losses)
    return all(map(isfinite, losses)) and not alike and trend(losses) <= RISE_Z


def _zero_shot(facts: Facts, source: str, last: int) -> Good | None:
    """By the accuracy of the evaluation behind the last epoch, in classes it was not taught."""
    for n, text in enumerate(facts.lines(source, last + 1, BEHIND), last + 1):
        if (found := _ZERO_SHOT.search(text)) and float(found[1]) >= KNOWS:
            said = f"the loss did not rise, and {float(found[1]):.1%} of ImageNet is told apart"
            return Good(said, (LogCite(source, n, facts.text(source, n)),))
    return None
