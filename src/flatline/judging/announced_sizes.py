"""Sizes that a program says it raises, between two steps that it prints."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

from flatline.facts import Facts, Track
from flatline.model import LogCite

TAG = "size-change"
_OF_OTHER = re.compile(
    r"(?i)\b(?:eval\w*|val|valid\w*|test\w*|vllm|rollout\w*|generat\w*|sampl\w*|infer\w*|serv\w*"
    r"|preview\w*|wandb|source|resized?|tokeniz\w*|preproc\w*|max_model_len|shard)\b"
)
"""What a step does not work on."""


@dataclass(frozen=True, slots=True)
class Announced:
    """What is raised, from and to what, by which line, and the first step printed behind it."""

    name: str
    before: float
    after: float
    cite: LogCite
    index: int


def announced(facts: Facts, track: Track) -> list[Announced]:
    """Those of the last attempt that stand in the log of its steps, in order; where each rank says
    it, the first."""
    span = track.of_attempt(facts.last.n)
    lines = [track.lines[i] for i in span]
    found: dict[int, Announced] = {}
    for match in facts.tagged(TAG):
        at = bisect_right(lines, match.cite.line)
        if match.cite.source != track.source or not 0 < at < len(lines):
            continue
        if _OF_OTHER.search(match.cite.text):
            continue
        before, after = (
            float(match.groups.get(one) or match.groups[other])
            for one, other in (("before", "size_asked"), ("after", "size_total"))
        )
        name = (match.groups.get("size") or match.groups["what"]).lower().replace("_", " ")
        if before < after:
            found.setdefault(at, Announced(f"the {name}", before, after, match.cite, span[at]))
    return [*found.values()]
