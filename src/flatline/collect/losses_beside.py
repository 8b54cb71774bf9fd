"""
Losses in one file and the steps they are of in another, as where a job's standard output and its
standard error go apart: the transformers Trainer prints the ones to the first, and draws its bar,
which counts the steps, to the second.

It logs every so many steps from the first on.  How many is told where the losses come up to the
last step that was drawn, to less than one such distance, at a distance that people set; the epochs
that stand with them rise as evenly, and to what the bar says of the plan.  Standard output may be
held back by the block: losses that end before the bar does fit no such number.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from flatline.collect.events import LogEvents
from flatline.collect.files import Found
from flatline.collect.setting import Setting
from flatline.tracks import Track

LEAST = 5
"""Losses; fewer fit many counts."""
ROUNDED = 0.02
"""Epochs that are told to two decimals, and what a last one is off for batches left over."""
USUAL = frozenset(m * 10**n for m in (1, 2, 5) for n in range(5)) | {4, 8, 16, 25, 32, 64, 250}
"""Steps from one line to the next that people set (`logging_steps`)."""
COLUMNS = ("loss", "grad_norm", "lr", "epoch", "has_loss", "has_grad", "skipped")


def joined(logs: Sequence[tuple[Found, Setting, LogEvents]]) -> None:
    """Puts such losses to the steps of the one bar there is, where one file alone holds some."""
    held = [(events, key, track) for *_, events in logs for key, track in events.tracks.items()
            if len(track) and track.attempts[0] == track.attempts[-1]]  # fmt: skip
    losses = [one for one in held if _losses_alone(one[2])]
    bars = [one for one in held if _steps_alone(one[2])]
    if len(losses) != 1 or len(bars) != 1 or len(held) != 2:
        return
    (events, key, told), (drawn, _, bar) = losses[0], bars[0]
    if told.source == bar.source or told.format != bar.format:
        return
    planned = [m.progress.epochs for m in drawn.markers if m.progress.epochs]
    every = _every(told, bar, max(planned, default=None))
    if every is None or not _evenly(told) or not _put(told, bar, every):
        return
    bar.loss_name, bar.epochs = told.loss_name, bar.epochs or told.epochs
    del events.tracks[key]


def _losses_alone(track: Track) -> bool:
    timed = any(isfinite(at) for at in (*track.at, *track.since_s))
    return len(track) >= LEAST and all(track.has_loss) and max(track.steps) < 0 and not timed


def _steps_alone(track: Track) -> bool:
    rises = all(a < b for a, b in zip(track.steps, track.steps[1:], strict=False))
    return len(track) >= LEAST and not any(track.has_loss) and track.steps[0] >= 0 and rises


def _every(told: Track, bar: Track, epochs: float | None) -> int | None:
    """Steps from one loss to the next; None where they do not come up to the last one drawn, or
    lie elsewhere in the plan by the epochs told."""
    every, rest = divmod(bar.steps[-1], len(told))
    if every not in USUAL or rest >= every:
        return None
    if bar.planned and epochs:
        meant = every * len(told) / bar.planned * epochs
        if abs(meant - told.epoch[-1]) > max(ROUNDED, ROUNDED * meant):
            return None
    return every


def _evenly(told: Track) -> bool:
    """Whether the epochs rise by the same from one loss to the next, as far as they are told."""
    last, count = told.epoch[-1], len(told)
    return isfinite(last) and all(
        abs(epoch - (n + 1) / count * last) <= max(ROUNDED, ROUNDED * last)
        for n, epoch in enumerate(told.epoch)
    )


def _put(told: Track, bar: Track, every: int) -> bool:
    """Whether each has its step among those that were drawn; then all of them are put there."""
    at = {step: index for index, step in enumerate(bar.steps)}
    places = [at.get(every * (n + 1)) for n in range(len(told))]
    if None in places:
        return False
    for n, index in enumerate(places):
        assert index is not None
        for name in COLUMNS:
            getattr(bar, name)[index] = getattr(told, name)[n]
        bar.elsewhere[index] = (told.source, told.lines[n])
    return True
