"""
What a program says on the lines below a step that it waited for its batches.

A callback may print `batch_time=5.604s data_time=4.554s` beside a bar that another draws.
Megatron's `--timing-log-level 2` prints each timer in milliseconds an iteration, the least and the
most of all ranks, or in older versions the last rank's.  The device is synchronised where a timer
begins and ends, so this one holds no other work.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import isfinite

from flatline.facts import Facts
from flatline.model import LogCite
from flatline.tracks import Track

FORMAT = "megatron"
BEHIND, SOME, FEW = 40, 200, 10
"""Lines below a step on which its timers stand, steps of a run that are looked at, and those that
show whether there are any."""
_TIMER = re.compile(
    r"^(?:.{0,40}[ :])?\s{2,8}batch-generator \.{5,80}: \((\d{1,9}\.\d{1,6}), (\d{1,9}\.\d{1,6})\)"
    r"|\btime \(ms\) .{0,2000}\| batch-generator: (\d{1,9}\.\d{1,6})"
)
_CALLED = re.compile(
    r"(?i)(?<![\w.-])(?:(?:t_)?data[_ -]?(?:load(?:ing|er)?[_ -]?)?(?:time|wait)s?"
    r"|(?:avg_)?(?:reader|data)_cost)[\"']?[=:] ?(\d{1,6}(?:\.\d{1,9})?) ?(ms|s)(?:ec\w*)?\b"
)
"""What a callback prints on a line of its own, or where a terminal broke the line, with its
unit."""
_WHOLE = re.compile(
    r"(?i)(?<![\w.-])(?:avg_)?(?:batch|step|iter)_(?:cost|time)[\"']?[=:] ?"
    r"(\d{1,6}(?:\.\d{1,9})?) ?(ms|s)(?:ec\w*)?\b"
)


def batch_waits(facts: Facts, track: Track) -> Mapping[int, tuple[float, LogCite]]:
    """Seconds by point of a track, and the line that says so; of the least, for which all ranks
    waited: a stage amid a pipeline needs no batch, and then nothing is known of the others."""
    if track.format != FORMAT and any(map(isfinite, track.data_s)):
        return {}
    span = track.of_attempt(facts.last.n)
    some = () if track.format == FORMAT else span[:: max(1, len(span) // FEW)]
    if some and not any(_said(facts, track, i) for i in some):
        return {}
    kept = _of_those_that_say(facts, track, span)
    told = {i: _said(facts, track, i) for i in kept[:: max(1, len(kept) // SOME)]}
    return {i: one for i, one in told.items() if one is not None}


def _of_those_that_say(facts: Facts, track: Track, span: Sequence[int]) -> Sequence[int]:
    """The points at the distance at which the first of them have it: a program may print its
    timers below every tenth step."""
    have = [n for n, i in enumerate(span[:SOME]) if _said(facts, track, i) is not None]
    if len(have) < 2:
        return span[have[0] :] if have else span
    apart = Counter(b - a for a, b in pairwise(have)).most_common(1)[0][0]
    return span[have[0] :: apart]


def batch_lengths(track: Track, waits: Mapping[int, tuple[float, LogCite]]) -> Mapping[int, float]:
    """Seconds of a step where the line that tells of its wait alone tells them as well."""
    whole = {i: _WHOLE.search(cite.text) for i, (_, cite) in waits.items()}
    return {i: float(found[1]) / (1e3 if found[2].lower() == "ms" else 1.0)
            for i, found in whole.items() if found is not None
            and not isfinite(track.step_s[i])}  # fmt: skip


def _said(facts: Facts, track: Track, i: int) -> tuple[float, LogCite] | None:
    """By the lines between a step's and the next one's."""
    first = track.lines[i] + 1
    after = track.lines[i + 1] if i + 1 < len(track) else first + BEHIND
    lines = facts.lines(track.source, first, max(0, min(after - first, BEHIND)))
    for line, text in enumerate(lines, first):
        if (wait_s := _wait_s(text, track.format)) is not None:
            return wait_s, LogCite(track.source, line, text, track.place, track.time(i))
    return None


def _wait_s(text: str, form: str) -> float | None:
    if form == FORMAT:
        timer = _TIMER.search(text)
        return None if timer is None else float(timer[1] or timer[3]) / 1e3
    called = _CALLED.search(text)
    return None if called is None else float(called[1]) / (1e3 if called[2] == "ms" else 1.0)
