"""The one rank whose log ends in another line than those of all others, as a run stands still."""

from __future__ import annotations

import re

from flatline.facts import LOG, Facts
from flatline.judging.claims import claim, number
from flatline.judging.waited_for import Suspect
from flatline.model import LogCite, Place

LEAST = 4
"""Ranks, of which all but one must end alike.  Rank 0 says more than the others as it is."""
ODD, MOST = 0.6, 0.79
"""A rank may have printed for another reason: never sure."""
_NUMBER = re.compile(r"[\d.,:]*\d")


def odd_ending(facts: Facts) -> Suspect | None:
    """None where several end otherwise, or a rank has no log of its own."""
    ends: dict[int, LogCite] = {}
    for read in facts.log_files(LOG):
        last = facts.last_lines.get(read.source)
        rank = number(read.place)
        if last is None or rank is None:
            continue
        if rank in ends:
            return None
        text = facts.text(read.source, last.line)
        ends[rank] = LogCite(read.source, last.line, text, read.place, last.at, last.at_assumed)
    shapes: dict[str, list[int]] = {}
    for rank, cite in ends.items():
        shapes.setdefault(" ".join(_NUMBER.sub("#", cite.text).split()), []).append(rank)
    if len(ends) < LEAST or len(shapes) != 2:
        return None
    few, many = sorted(shapes.values(), key=len)
    if len(few) != 1 or few == [0]:
        return None
    odd = ends[few[0]]
    text = f"The log of rank {few[0]} ends in another line than those of the {len(many)} others"
    place = facts.on_host(Place(rank=few[0]))
    return Suspect((place,), claim(text, odd, ends[many[0]]), ODD, most=MOST)
