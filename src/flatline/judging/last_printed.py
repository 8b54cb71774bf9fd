"""When a run last printed anything that is dated."""

from __future__ import annotations

import re
from datetime import datetime
from math import isfinite

from flatline.facts import Facts
from flatline.judging.pace import pace
from flatline.logs.clock import Clock
from flatline.model import LogCite

LINES_ABOVE = 200
BEHIND = 4
"""Lines of a loop behind a step, of which one may be dated; more of them may be of any time."""
_STAMP = re.compile(r"\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d")
SLURMS = ("srun:", "slurmstepd")
"""How its own lines begin, which tell when it ended the run, not when that last printed."""
ENDED_BY = ("cancelled", "time-limit")


def heard(facts: Facts) -> dict[str, datetime]:
    """When each log of the run was last dated: a host's kernel goes on when the run does not."""
    return {log: at for log, at in facts.last_seen.items() if log not in facts.kernel_files}


def last_printed(facts: Facts) -> float | None:
    """When the run last printed anything that is dated; None where it never did."""
    seen = pace(facts)
    times = [moment.timestamp() - before
             for source, moment in heard(facts).items()
             if not _steps_undated_behind(facts, source)
             and (before := _cancelled_s(facts, source)) is not None]  # fmt: skip
    if seen is not None:
        times.append(seen.at.timestamp())
    return max(times, default=None)


def _steps_undated_behind(facts: Facts, source: str) -> bool:
    """Whether the log dates none of its steps, with which it ends: what it dated stands above."""
    track, last = facts.main_track(facts.last.n), facts.last_lines.get(source)
    if track is None or track.source != source or last is None:
        return False
    span = track.of_attempt(facts.last.n)
    step = track.lines[span[-1]]
    own = not last.text.startswith(SLURMS)
    dated = own and last.at is not None and not last.at_assumed and last.line > step
    if not dated and step < last.line <= step + BEHIND:
        clock = Clock()
        behind = facts.lines(source, step + 1, last.line - step)
        dated = any(clock.read(text) for text in behind if not text.startswith(SLURMS))
    return not dated and not any(isfinite(track.at[i]) for i in span)


def _cancelled_s(facts: Facts, source: str) -> float | None:
    """How long before the scheduler's line of its cancel, or of its limit, the program had dated
    one in this log; 0 where no such line is the last, None where the program dated none."""
    last = facts.last_lines.get(source)
    ended = (m for tag in ENDED_BY for m in facts.tagged(tag) if m.cite.source == source)
    told = max(ended, key=lambda m: m.cite.line, default=None)  # of the job, and of its step
    if last is None or told is None or not _slurms_to_the_end(facts, told.cite, last):
        return 0.0
    first = max(1, told.cite.line - LINES_ABOVE)
    above = facts.lines(source, first, told.cite.line - first)
    said = [text for text in above if text.strip() and not text.startswith(SLURMS)]
    own = _STAMP.search(said[-1]) if said else None  # lines without a time may be of any time
    at = _STAMP.search(told.cite.text)
    if not any(map(_STAMP.search, said)) and (said or first == 1):
        return None  # or it says nothing there: standard error of its own
    if own is None or at is None:
        return 0.0
    before, cancelled = datetime.fromisoformat(own[0]), datetime.fromisoformat(at[0])
    return max(0.0, (cancelled - before).total_seconds())


def _slurms_to_the_end(facts: Facts, told: LogCite, last: LogCite) -> bool:
    """Whether nothing but what Slurm prints stands behind the line that tells of its end."""
    behind = last.line - told.line
    if behind > LINES_ABOVE:
        return False
    texts = facts.lines(told.source, told.line + 1, behind) if behind > 0 else ()
    return all(text.startswith(SLURMS) for text in texts if text.strip())
