"""
Files that hold nothing but which host each rank is on, and its card: `rank 12 -> n2 cuda:4`.

People and launch scripts write them beside a log.  They are looked for where a rank is to be
placed, and not as lines of any log: what begins as a rank's label would cost the scan of all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from flatline.facts import LOG, Facts
from flatline.model import Place

MOST_LINES, LEAST = 16_384, 2
_ROW = re.compile(
    r"\s*[Rr]ank[ =:]{0,2}(\d{1,6}) ?(?:->|=>|→|@|:) ?([A-Za-z][\w.-]{1,120}?)"
    r"(?:[ :/,]{1,3}(?:cuda|gpu|GPU|device)[ :=_-]{0,2}(\d{1,2}))?\s*"
)
Listed = Mapping[int, Place]


def listed_place(facts: Facts, place: Place) -> Place:
    """With the host and the card of its rank by such a file; as it is where it stands elsewhere,
    the card not given where two ranks of the host have the same, as all that see one have."""
    told: Listed = facts.memo("rank lists", _listed)
    mine = told.get(place.rank if place.rank is not None else -1)
    if mine is None or mine.host is None:
        return place
    host = facts.node_of(mine.host)
    if place.host is not None and facts.node_of(place.host) != host:
        return place
    beside = [one.gpu for one in told.values() if one.host == mine.host]
    apart = None not in beside and len(beside) == len({*beside}) > 1
    return replace(place, host=place.host or host, gpu=mine.gpu if apart else place.gpu)


def _listed(facts: Facts) -> Listed:
    """Nothing where two files differ on a rank."""
    told: dict[int, Place] = {}
    for read in facts.log_files(LOG):
        for place in _places(facts, read.source) if LEAST <= read.lines <= MOST_LINES else ():
            if told.setdefault(place.rank or 0, place) != place:
                return {}
    return told


def _places(facts: Facts, source: str) -> list[Place]:
    """Those of a file; none where a line of it is something else."""
    if _ROW.fullmatch(facts.text(source, 1)) is None:
        return []
    lines = [text for text in facts.lines(source, 1, MOST_LINES, 400) if text.strip()]
    rows = [found for text in lines if (found := _ROW.fullmatch(text)) is not None]
    whole = LEAST <= len(rows) == len(lines)
    return [Place(host=row[2], gpu=row[3], rank=int(row[1])) for row in rows] if whole else []
