"""
A training loss that stepped up while that of held-out cases kept falling: other batches, not
another model.

A curriculum that admits longer samples, stronger augmentation or a loss summed over a batch raise
the loss of every step from one on.  A model that diverged is worse on held-out cases as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from statistics import median

from flatline.facts import Facts
from flatline.judging.loss import Curve
from flatline.judging.shapes import HEAD, SPIKE_RATIO
from flatline.model import Cite

ROSE = ("spiked", "stepped-up", "stuck", "rising-at-end")
SINCE = 2
"""Evaluations with the losses before each as high: of one alone the training may not show yet."""


@dataclass(frozen=True, slots=True)
class HeldOut:
    """The held-out loss before the rise and at the end, and the lines that tell them."""

    before: float
    last: float
    cites: tuple[Cite, ...]


def held_out_fell(facts: Facts, seen: Curve | None) -> HeldOut | None:
    """None where the loss did not rise, or the last evaluations are not the best of all."""
    if seen is None or seen.shape not in ROSE or seen.best is None:
        return None
    track, n = seen.track, facts.last.n
    told = [m for m in facts.markers_of("eval")
            if m.attempt == n and m.cite.source == track.source and m.progress.falling
            and m.progress.loss is not None and isfinite(m.progress.loss)]  # fmt: skip
    name = told[-1].progress.loss_name if told else ""
    told = [m for m in told if m.progress.loss_name == name]
    if len(told) < SINCE + 2:
        return None
    values = [m.progress.loss or 0.0 for m in told]
    before, since = values[:-SINCE], values[-SINCE:]
    if any(b > a for a, b in pairwise([min(before), *since])) or since[-1] >= min(before):
        return None
    for above, below in pairwise(told[-SINCE - 1 :]):
        losses = [track.loss[i] for i in track.of_attempt(n) if track.has_loss[i]
                  and above.cite.line < track.lines[i] < below.cite.line]  # fmt: skip
        if len(losses) < HEAD or not median(losses) >= SPIKE_RATIO * seen.best > 0:
            return None
    return HeldOut(before[-1], since[-1], (told[-SINCE - 1].cite, told[-1].cite))
