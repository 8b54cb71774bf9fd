"""Whether a log tells of nothing but a save between the steps that stand around one."""

from __future__ import annotations

import re
from bisect import bisect_left

from flatline.facts import Facts

LOOKED, MOST_LINES = 6, 200
"""Saves that are looked at, and lines behind each."""
_OF_A_SAVE = re.compile(
    r"(?i)\b(?:sav(?:e[ds]?|ing)|checkpoint\w*|ckpt|writ(?:e|ing|ten)|wrote|stor(?:ed|ing)|flush\w*"
    r"|upload\w*|serializ\w*|finaliz\w*|commit\w*|snapshot)\b"
    r"|\.(?:pth?|ckpt|bin|safetensors|json|distcp)\b"
)
_OF_MORE = re.compile(
    r"(?i)eval|valid|generat|sampl|test|infer|predict|fid\b|bleu|metric|compil|load|data|epoch"
)


def nothing_else(facts: Facts) -> bool:
    """What costs the time beside a save may be told in a line of its own: an evaluation, samples,
    data.  Lines of the steps of other ranks count for nothing."""
    track = facts.main_track(facts.last.n)
    if track is None:
        return False
    span = track.of_attempt(facts.last.n)
    lines = [track.lines[i] for i in span]
    saved = [m.cite.line for m in facts.markers_of("checkpoint_saved")
             if m.cite.source == track.source and m.attempt == facts.last.n]  # fmt: skip
    for line in saved[-LOOKED:]:
        at = bisect_left(lines, line)
        if not 0 < at < len(lines):
            continue
        first = lines[at - 1] + 1
        texts = facts.lines(track.source, first, min(MOST_LINES, lines[at] - first))
        if any(_OF_MORE.search(t) and not (_OF_A_SAVE.search(t) or _is_step(t)) for t in texts):
            return False
    return True


def _is_step(text: str) -> bool:
    return re.search(r"(?i)\b(?:step|iter(?:ation)?)\b.{0,80}\d.{0,300}\bloss\b", text) is not None
