"""Losses that show no fall where none is to be expected: of a late resume, of a policy."""

from __future__ import annotations

from math import isfinite

from flatline.facts import Facts, Point
from flatline.judging.loss import Curve
from flatline.judging.shapes import LATE_STEP, SHAPE_POINTS

RISEN = 1.02
"""Times the level it began at: repeats of one run differ by as much."""


def kept_level(facts: Facts, seen: Curve | None) -> tuple[Point, Point] | None:
    """The first and the last loss of a run that went on from a checkpoint, late, whose losses stay
    at the level it went on at while its gradients move; None elsewhere."""
    if seen is None or seen.shape != "unclear" or seen.count < SHAPE_POINTS:
        return None
    if seen.head is None or seen.tail is None or not 0 < seen.tail <= RISEN * seen.head:
        return None
    track, span = seen.track, seen.track.of_attempt(facts.last.n)
    went_on = any(m.attempt == facts.last.n
                  for m in facts.markers_of("checkpoint_loaded", "resume"))  # fmt: skip
    moved = any(track.has_grad[i] and isfinite(track.grad_norm[i]) and track.grad_norm[i] > 0
                for i in span[len(span) // 2 :])  # fmt: skip
    if not went_on or not moved or track.steps[span[0]] < LATE_STEP:
        return None
    return seen.points[0], seen.points[-1]


def finite_policy(facts: Facts) -> tuple[Point, Point] | None:
    """The first and the last of many numbers, all finite, that are not meant to fall, where the
    gradients are printed too; None elsewhere."""
    track = facts.main_track(facts.last.n)
    if track is None or track.falling:
        return None
    points = [i for i in track.of_attempt(facts.last.n) if track.has_loss[i]]
    graded = [i for i in points if track.has_grad[i] and track.grad_norm[i] > 0]
    if len(points) < SHAPE_POINTS or len(graded) < len(points) / 2:
        return None
    if not all(isfinite(track.loss[i]) for i in points):
        return None
    return facts.point(track, points[0]), facts.point(track, points[-1])
