"""
Undated steps laid on the clock by the dated lines between them and what each step says it took.

Trainers print a step and what it took, and their library dates a save or an evaluation between
two of them.  From one such line to the next the steps take what they say; what is left over was
spent at those lines, for that is where a loop does something else.  Before the first of them it
was spent in front of the first step: compiling, loading.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import pairwise

from flatline.facts import Facts, Track
from flatline.judging.by_dates import COARSE_S, dated_lines
from flatline.judging.by_steps import BY_SUM, MOST_SLACK, OVERRUN, Laid, Spent, spent

BY_ANCHORS = f"{BY_SUM} from one dated line to the next"
Anchors = list[tuple[int, float, float]]
"""How many steps were made by then, and the first and last date told before the next of them."""


def laid_by_anchors(facts: Facts) -> Laid | None:
    """None where steps are dated or do not say what they took, or their sums and the dates do not
    agree."""
    return facts.memo("laid by anchors", _laid)


def _laid(facts: Facts) -> Laid | None:
    track = facts.main_track(facts.last.n)
    span = range(0) if track is None else track.of_attempt(facts.last.n)
    if track is None or any(track.at[i] == track.at[i] for i in span):
        return None
    known = spent(track, span)
    anchors = [] if known is None else _anchors(facts, track, known)
    if known is None or not known.seconds or known.clocked or len(anchors) < 2:
        return None
    took_s = known.by[-1] - known.by[0]
    off_s = _left_over(known, anchors)
    if off_s is None or off_s > MOST_SLACK * took_s:
        return None
    return Laid(track, known.indexes, _times(known, anchors), took_s, took_s + off_s, BY_ANCHORS)


def _anchors(facts: Facts, track: Track, known: Spent) -> Anchors:
    """Nothing where the dates run backwards: the lines are of several processes."""
    lines = [track.lines[i] for i in known.indexes]
    found: Anchors = []
    for cite in sorted(dated_lines(facts, track), key=lambda one: one.line):
        at = cite.at.timestamp() if cite.at is not None else 0.0
        made = bisect_left(lines, cite.line)
        if found and at < found[-1][2] - COARSE_S:
            return []
        if found and found[-1][0] == made:
            found[-1] = (made, found[-1][1], max(at, found[-1][2]))
        else:
            found.append((made, at, at))
    return found


def _left_over(known: Spent, anchors: Anchors) -> float | None:
    """The most that the time between two dated lines is longer than the steps between them say;
    None where it is shorter.  In front of the first step it is no matter."""
    most = 0.0
    for (made, _, begins), (by_then, ends, _) in pairwise(anchors):
        took_s = _until(known, by_then) - _until(known, made)
        if took_s > (1.0 + OVERRUN) * (ends - begins) + COARSE_S:
            return None
        most = max(most, ends - begins - took_s if made else 0.0)
    return most


def _times(known: Spent, anchors: Anchors) -> tuple[float, ...]:
    """Each by the last dated line before it, those before the first such by the one behind."""
    times = []
    after = [one for one in anchors if one[0]]
    ends = [made for made, *_ in after]
    for at, spent_s in enumerate(known.by):
        passed = bisect_right(ends, at)
        made, first, last = after[max(passed - 1, 0)]
        times.append((last if passed else first) + spent_s - _until(known, made))
    return tuple(times)


def _until(known: Spent, made: int) -> float:
    """What was spent on so many steps."""
    return known.by[made - 1] if made else 0.0
