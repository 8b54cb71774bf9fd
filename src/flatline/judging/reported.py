"""Ranks that the program's own detection reports as stragglers, again and again."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from flatline.facts import Facts
from flatline.judging.claims import claim, name_places
from flatline.model import Claim, Match, Place

REPORT, SCORE = "resiliency-straggler", "resiliency-score"
LEAST, OFTEN, FEW = 3, 0.8, 0.25
"""Reports, the share of them that must name a rank, and of all ranks the share that may be slow:
one report is a passing one, and many ranks are a stage of a pipeline.  A judgement."""
_RANK = re.compile(r"(?:rank=|(?<![\w.'-]))(\d{1,6})(?![\w.'-])")


@dataclass(frozen=True, slots=True)
class Reported:
    """The ranks with their hosts, slowest first, the score of the slowest, and what shows it."""

    places: tuple[Place, ...]
    score: float | None
    shows: Claim


def reported(facts: Facts) -> Reported | None:
    """None where reports are few, or name now these and now those."""
    told = [m for m in facts.matches if m.signature.id == REPORT and m.attempt == facts.last.n]
    counts = Counter(rank for m in told for rank in {*_ranks(m)})
    slow = [rank for rank, count in counts.items() if count >= OFTEN * len(told)]
    world = facts.world_size or len(facts.ranks)
    if len(told) < LEAST or not slow or (world and len(slow) > FEW * world):
        return None
    scores = {rank: [m for m in facts.matches if m.signature.id == SCORE
                     and m.attempt == facts.last.n and m.groups["rank"] == str(rank)]
              for rank in slow}  # fmt: skip
    slow.sort(key=lambda rank: (min((_score(m) for m in scores[rank]), default=1.0), rank))
    places = tuple(_place(facts, rank, scores[rank]) for rank in slow)
    lowest = min(scores[slow[0]], key=_score, default=None)
    text = f"In {counts[slow[0]]} of {len(told)} reports {name_places(places)} was slower than the"
    text += " others by the program's own timing of its kernels"
    if lowest is not None:
        text += f", down to {_score(lowest):.2f} of the fastest"
    cites = [told[0].cite, told[-1].cite, *([lowest.cite] if lowest else ())]
    return Reported(places, None if lowest is None else _score(lowest), claim(text, *cites))


def _ranks(match: Match) -> list[int]:
    return [int(rank) for rank in _RANK.findall(match.groups["key"])]


def _score(match: Match) -> float:
    return float(match.groups["score"])


def _place(facts: Facts, rank: int, scores: list[Match]) -> Place:
    nodes = {facts.node_of(match.groups["node"]) for match in scores}
    host = nodes.pop() if len(nodes) == 1 else None
    return facts.on_host(Place(rank=rank, host=host))
