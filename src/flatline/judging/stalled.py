"""
Whom Horovod's stall inspector waits for: the ranks that have not submitted what others have.

Rank 0 reports for all of them, itself among them where it is missing.  Since 0.19 the message ends
with `Missing ranks:` and a line a rank, `2!: [tensor, ...]`; before that with `Stalled ops:` and a
line a tensor, `tensor [missing ranks: 1, 3]` (horovod common/stall_inspector.cc and, up to 0.16,
operations.cc).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from flatline.facts import Facts
from flatline.judging.claims import claim, name_places
from flatline.model import Claim, LogCite, Match, Place

REPORT, HEADING = "mpi-horovod-stall", "Missing ranks:"
LINES, APART, CITES = 64, 3, 3
"""Lines of a report that are read, lines of others that may stand between two, lines cited."""
_RANK = re.compile(r"(?<![\d.])(?P<ranks>\d{1,6})!?: \[[^\]]")
_OPERATION = re.compile(
    r"(?P<names>[^\s:]{0,400}) \[missing ranks:(?P<ranks>(?:,? ?\d{1,6}){1,4096})\]"
)
_RANK_OPERATIONS = re.compile(r"\d!?: \[(?P<names>[^\]]{1,4000})\]?")
_BROADCAST = re.compile(r"(?:^|/)HorovodBroadcast_|^broadcast\.")
"""Names that Horovod gives broadcasts: of TensorFlow's variables (tensorflow/mpi_ops.py), of
torch's parameters and optimizer state (torch/functions.py)."""


@dataclass(frozen=True, slots=True)
class Stalled:
    """The ranks a report lists. `odd` where they are few enough to be whom the others wait for."""

    places: tuple[Place, ...]
    odd: bool
    why: Claim
    operations: tuple[str, ...] = ()
    """What was submitted and never came from all, by the names in the report."""

    @property
    def opens(self) -> bool:
        """Whether all of it are broadcasts: of variables and parameters, before the first step."""
        return bool(self.operations) and all(map(_BROADCAST.search, self.operations))


def stalled(facts: Facts, attempt: int) -> Stalled | None:
    """The last report of an attempt, which tells what never came; None where none lists ranks."""
    reports = [m for m in facts.tagged("timeout")
               if m.signature.id == REPORT and m.attempt == attempt]  # fmt: skip
    for match in sorted(reports, key=lambda m: (m.cite.source, m.cite.line), reverse=True):
        listed, operations = _listed(facts, match)
        if listed:
            return replace(_stalled(facts, match, listed), operations=operations)
    return None


def _listed(facts: Facts, match: Match) -> tuple[dict[int, LogCite], tuple[str, ...]]:
    """Each rank that is listed as missing, with the line that does so first; and what from."""
    found: dict[int, LogCite] = {}
    names: dict[str, None] = {}
    source, first = match.cite.source, match.cite.line
    last, headed = first, False
    for line in range(first, first + LINES):
        text = facts.text(source, line)
        told = _OPERATION.search(text) or (_RANK.search(text) if headed else None)
        headed = headed or HEADING in text
        if told is None:
            if line - last > APART:
                break
            continue
        last, cite = line, LogCite(source, line, text)
        for rank in re.findall(r"\d+", told["ranks"]):
            found.setdefault(int(rank), cite)
        said = told if "names" in told.re.groupindex else _RANK_OPERATIONS.search(text)
        split = said["names"].split(", ") if said is not None else ()
        names.update(dict.fromkeys(name for name in split if name.strip(".")))
    return found, tuple(names)


def _stalled(facts: Facts, match: Match, listed: dict[int, LogCite]) -> Stalled:
    """With more than half of the ranks missing, those that went ahead may be the odd ones."""
    ranks = sorted(listed)
    world = max(facts.world_size or 0, len(facts.ranks), ranks[-1] + 1, 2)
    places = tuple((facts.places_of(rank) or (Place(rank=rank),))[0] for rank in ranks)
    odd = len(ranks) * 2 <= world
    where = name_places(places)
    text = f"Horovod lists {where} as missing: what the others submitted never came from there."
    if not odd:
        text = (
            f"Horovod lists {where} as missing, most of the ranks: one that went ahead with"
            " another collective looks alike."
        )
    cites = dict.fromkeys((match.cite, *list(dict.fromkeys(listed.values()))[:CITES]))
    return Stalled(places, odd, claim(text, *cites))
