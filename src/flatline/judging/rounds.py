"""
Folds, seeds or trials that one process trains one after the other, each from its first step.

A program that looks for a checkpoint as it begins each says every time that there is none, and
what the round before had saved was never to be gone on from.
"""

from __future__ import annotations

import re
from itertools import pairwise

from flatline.facts import Facts, Track

LEAST, GAP_LINES, HEAD_LINES, WHOLE_HEAD = 3, 400, 60, 3
"""Rounds that end alike, the lines read between two and above the first, and how many of those
again tell of another process.  A judgement."""
_NUMBERED = re.compile(
    r"(?i)\b(?P<what>(?:cv |k-?)?folds?|(?:cv |data )?splits?|seed|trial|repeat"
    r"|repetition|replicate)"
    r"(?:[ _:=#-]{1,3}|_?id[ :=]{1,2}|no\. ?)(?P<number>\d{1,6})\b"
)
_MEASURED = re.compile(
    r"(?i)\b(?:eval\w*|validat\w*|val|test(?:ing|ed)?|acc\w*|auc|auroc|f1|dice|miou|best)\b[ _:=]"
)
_DIGITS = re.compile(r"\d+")


def in_rounds(facts: Facts) -> bool:
    """Whether each try but the last came to an end of its own: of one log in which nothing ended
    any of them, the tries bear rising numbers, or they end at one step, measured, and are not
    begun as a process is."""
    last, track = facts.last.n, facts.main_track(facts.last.n)
    if track is None or last < 1 or len(facts.jobs) > 1 or _ended_badly(facts):
        return False
    spans = [track.of_attempt(n) for n in range(last + 1)]
    if any(len(span) == 0 for span in spans):
        return False
    lines = [[facts.point(track, at).cite.line for at in (s[0], s[-1])] for s in spans]
    first = max(1, lines[0][0] - HEAD_LINES)
    head = _read(facts, track, first, lines[0][0])
    gaps = [_read(facts, track, before + 1, after)
            for (_, before), (after, _) in pairwise(lines)]  # fmt: skip
    if not all(gaps):
        return False
    return _numbered([head, *gaps]) or (_alike(track, spans) and _measured_each(head, gaps))


def _ended_badly(facts: Facts) -> bool:
    last = facts.last.n
    told = (
        *(crash.attempt for crash in facts.crashes),
        *(m.attempt for m in facts.matches if m.signature.role in ("root", "cascade")),
    )
    restarted = facts.job is not None and bool(facts.job.restarts)
    return restarted or bool(facts.exits) or any(n < last for n in told)


def _read(facts: Facts, track: Track, first: int, until: int) -> list[str]:
    """The lines between two; none where there are too many."""
    count = until - first
    return list(facts.lines(track.source, first, count, 400)) if 0 < count <= GAP_LINES else []


def _numbered(above: list[list[str]]) -> bool:
    """Whether a line above each bears the number of a round, the next one each time."""
    told: list[dict[str, int]] = []
    for lines in above:
        found = [one for text in lines if (one := _NUMBERED.search(text)) is not None]
        told.append({one["what"].lower(): int(one["number"]) for one in found})
    for what in told[-1]:
        numbers = [said[what] for said in told if what in said]
        steps = {b - a for a, b in pairwise(numbers)}
        if len(numbers) == len(told) and steps == {1}:
            return True
    return False


def _alike(track: Track, spans: list[range]) -> bool:
    """Whether three or more begin at one step and end at one, the last no further."""
    ends = {int(track.steps[span[-1]]) for span in spans[:-1]}
    begun = {int(track.steps[span[0]]) for span in spans}
    if len(spans) < LEAST or len(ends) != 1 or len(begun) != 1:
        return False
    return int(track.steps[spans[-1][-1]]) <= ends.pop()


def _measured_each(head: list[str], gaps: list[list[str]]) -> bool:
    """Whether each was measured as it ended, and the lines above the first do not come anew."""
    if not all(any(map(_MEASURED.search, gap)) for gap in gaps):
        return False
    first = {_DIGITS.sub("#", text.strip()) for text in head if text.strip()}
    again = set.intersection(*({_DIGITS.sub("#", text.strip()) for text in gap} for gap in gaps))
    return len(first) < WHOLE_HEAD or not first <= again
