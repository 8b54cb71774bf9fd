"""From what was asked to the listing: jobs selected, diagnosed, sorted, and grouped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from flatline.triage import Ask, Ended, Line, Listing, OnProgress, Selected, Told
from flatline.triage.judging import judged
from flatline.triage.select import select, shown
from flatline.triage.shared import own_doing, shared

Judging = Callable[[Selected, Sequence[Ended], OnProgress | None], tuple[Told, ...]]


def _judging(
    selected: Selected, ended: Sequence[Ended], on_progress: OnProgress | None
) -> tuple[Told, ...]:
    return judged(ended, selected.events, selected.now, on_progress)


def listing(
    ask: Ask,
    on_progress: OnProgress | None = None,
    selecting: Callable[[Ask], Selected] = select,
    judging: Judging = _judging,
) -> Listing:
    """
    Every job of the window: those that did not complete diagnosed, as many as the limit allows,
    the latest first; the completed counted.

    What failures share is worked out before `--state` narrows what is shown, so that it has its
    controls.
    """
    selected = selecting(ask)
    doubtful = [e for e in selected.ended if e.job.disposition != "completed"]
    first, beyond = doubtful[: ask.limit], doubtful[ask.limit :]
    if selected.find is not None:
        first = [selected.find(one) for one in first]
    told = judging(selected, first, on_progress)
    lines = [Line(ended, say) for ended, say in zip(first, told, strict=True)]
    completed = [Line(e, None) for e in selected.ended if e.job.disposition == "completed"]
    failed = [line for line in lines if _failed(line)]
    open_ = [line for line in lines if _open(line)]
    sound = [line for line in lines if line.told and line.told.state == "healthy"]
    made = Listing(
        failed=tuple(sorted(failed, key=_costliest)),
        undetermined=tuple(line for line in open_ if line.disposition != "cancelled"),
        healthy=tuple(sound),
        completed=tuple(completed),
        cancelled=tuple(line for line in open_ if line.disposition == "cancelled"),
        unread=tuple(Line(ended, None) for ended in beyond),
        groups=shared(
            [*failed, *(line for line in open_ if line.disposition != "cancelled")],
            completed,
            selected.leaves,
        ),
        since=selected.since,
        until=selected.until,
        gaps=selected.gaps,
        left_out=sum(map(own_doing, failed)),
    )
    return _narrowed(made, ask.states) if ask.states else made


def _failed(line: Line) -> bool:
    return line.told is not None and line.told.state == "found"


def _open(line: Line) -> bool:
    return line.told is not None and line.told.state == "undetermined"


def _costliest(line: Line) -> tuple[float, float]:
    """The most GPU-hours lost first, then the latest."""
    lost = line.told.gpu_hours_lost if line.told is not None else None
    ended = line.ended.job.ended_at
    return -(lost or 0.0), -(ended.timestamp() if ended else 0.0)


def _narrowed(made: Listing, states: Sequence[str]) -> Listing:
    def kept(lines: Sequence[Line]) -> tuple[Line, ...]:
        return tuple(line for line in lines if shown(line.ended.job, states))

    return replace(
        made,
        failed=kept(made.failed),
        undetermined=kept(made.undetermined),
        healthy=kept(made.healthy),
        completed=kept(made.completed),
        cancelled=kept(made.cancelled),
        unread=kept(made.unread),
    )
