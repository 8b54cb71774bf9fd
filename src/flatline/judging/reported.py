"""Ranks that the program's own detection reports as stragglers, again and again."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from flatline.facts import Facts
from flatline.judging.claims import claim, name_places
from flatline.judging.throughput import course, course_in_order
from flatline.model import Claim, Match, Place

REPORT, SCORE, STOPPED = "resiliency-straggler", "resiliency-score", "resiliency-stopped"
ROW = "resiliency-row"
"""A table in one line."""
LEAST, OFTEN, FEW = 3, 0.8, 0.1
"""Reports, the share of them that must name a rank, and of all ranks the share that may be slow:
one report is a passing one, and many ranks are a stage of a pipeline.  A judgement."""
EARLY, LATE = 0.5, 0.7
"""Of the run's steps, before which the first and behind which the last report must come."""
HEADED = 12
"""Lines below the heading of its table, at most."""
FAR, NEXT = 0.9, 0.06
"""Of the fastest rank's score, at or below which a table alone tells a straggler, and how far
above it the next one stands.  Cards of one sort scatter by some hundredths (0.94 to 0.99 of 512
ranks in Megatron Bridge's guide); the detection itself warns below 0.7."""
_OF_STRAGGLER = re.compile(r"\b[Rr]ank=(\d{1,6})\b")
_ASIDE = re.compile(r"\s*\([^()]{1,40}\)")
"""What stands behind a rank in such a list, as its score."""
_LIST = re.compile(r"\s*\d{1,6}(?:\s*,\s*\d{1,6})*\s*$")
_RELATIVE, _BEST = "GPU relative performance", "Best performing"
_OF = re.compile(r"\bperforming \d{1,4}/(\d{1,6}) ranks:")
_IN_ROW = re.compile(
    r"\b[Rr]ank=(?P<rank>\d{1,6})(?: \(|[ ,]{1,2}[Nn]ode=)"
    r"(?:(?P<host>\d{0,20}[A-Za-z][\w.-]{0,63})|\d{1,9})\)?,? [Ss]core=(?P<score>\d\.\d{2,6})\b"
)


@dataclass(frozen=True, slots=True)
class Reported:
    """The rank with its host, its score, and what shows it."""

    places: tuple[Place, ...]
    score: float | None
    shows: Claim
    stopped: bool = False
    """Whether the program ended the run for it."""


def reported(facts: Facts) -> Reported | None:
    """None where reports name now these ranks and now those; where they are few or do not reach
    over most of the run, and the program did not end it for them, too."""
    reports = _reports(facts) or ([] if _became_slower(facts) else _tables(facts))
    told = [match for match, _ in reports]
    stop = _stopped(facts, told)
    counts = Counter(rank for _, ranks in reports for rank in ranks)
    slow = sorted(rank for rank, count in counts.items() if count >= OFTEN * len(told))
    # where nobody tells the size, it is one that holds the ranks that are named
    world = facts.world_size or max(len(facts.ranks), _tabled(facts), max(counts, default=-1) + 1)
    if not slow or not world or len(slow) > FEW * world:
        return None
    if stop is None and (len(told) < LEAST or not _throughout(facts, told)):
        return None
    scores = {rank: _scores(facts, rank) for rank in slow}
    slow.sort(key=lambda rank: (min((_score(m) for m in scores[rank]), default=1.0), rank))
    places = tuple(_place(facts, rank, scores[rank]) for rank in slow)
    lowest = min(scores[slow[0]], key=_score, default=None)
    text = f"In {counts[slow[0]]} of {len(told)} reports {name_places(places)} was slower than the"
    text += " others by the program's own timing of its kernels"
    if lowest is not None:
        text += f", down to {_score(lowest):.2f} of the fastest"
    if stop is not None:
        text += "; the program ended the run for it"
    cites = [m.cite for m in (told[0], told[-1], lowest, stop) if m is not None]
    score = None if lowest is None else _score(lowest)
    return Reported(places, score, claim(text, *dict.fromkeys(cites)), stop is not None)


def _stopped(facts: Facts, told: list[Match]) -> Match | None:
    """Where the program says that it ends the run for what it reported last."""
    n = facts.last.n
    for match in facts.matches:
        if match.signature.id != STOPPED or match.attempt != n or facts.went_on(match.cite, n):
            continue
        made = facts.steps_before(match.cite, n)
        if told and made is not None and made == facts.steps_before(told[-1].cite, n):
            return match
    return None


def _reports(facts: Facts) -> list[tuple[Match, set[int]]]:
    """One for each report, of the log that holds most of them: several ranks may say the same."""
    by_steps = {
        facts.steps_before(m.cite, facts.last.n): m for m in reversed(_most(facts, REPORT))
    }
    return [(m, {*_ranks(m)}) for m in sorted(by_steps.values(), key=lambda m: m.cite.line)]


def _most(facts: Facts, which: str) -> list[Match]:
    logs: dict[str, list[Match]] = {}
    for match in facts.matches:
        if match.signature.id == which and match.attempt == facts.last.n:
            logs.setdefault(match.cite.source, []).append(match)
    return max(logs.values(), key=len, default=[])


def _became_slower(facts: Facts) -> bool:
    """Then a rank that has always been behind is not what made it so."""
    run = course(facts) or course_in_order(facts)
    return run is not None and bool(run.slow)


def _tables(facts: Facts) -> list[tuple[Match, set[int]]]:
    """The same by the tables of scores, where none is so low that the program warns: the ranks
    that stand apart at the head of each, which is the worst; none where it has no gap."""
    tables: list[list[Match]] = []
    for match in _most(facts, SCORE):
        if tables and match.cite.line - tables[-1][-1].cite.line == 1:
            tables[-1].append(match)
        else:
            tables.append([match])
    whole = [table for table in tables if _of_the_worst(facts, table[0])]
    whole += [_in_row(match) for match in _most(facts, ROW)]
    told = []
    for table in filter(None, whole):
        scores = [_score(match) for match in table]
        gap = next((at for at, (low, more) in enumerate(pairwise(scores), 1)
                    if low <= FAR and more - low >= NEXT), 0)  # fmt: skip
        told.append((table[0], {int(match.groups["rank"]) for match in table[:gap]}))
    return told


def _of_the_worst(facts: Facts, first: Match) -> bool:
    above = facts.lines(first.cite.source, max(1, first.cite.line - 1), 1)
    return not any(_BEST in text for text in above) and among_all(facts, first)


def _in_row(row: Match) -> list[Match]:
    """The scores of a table in one line, as if each stood on its own."""
    return [replace(row, groups={key: said for key, said in found.groupdict().items() if said})
            for found in _IN_ROW.finditer(row.groups["key"])]  # fmt: skip


def _throughout(facts: Facts, told: list[Match]) -> bool:
    """Whether the reports reach over most of the run's steps, or to where the next is not due."""
    track = facts.main_track(facts.last.n)
    steps = 0 if track is None else len(track.of_attempt(facts.last.n))
    at = [made for m in told if (made := facts.steps_before(m.cite, facts.last.n)) is not None]
    if not steps or len(at) < len(told):
        return False
    due = median(b - a for a, b in pairwise(at))
    late = at[-1] >= LATE * steps or steps - at[-1] <= due
    return 0 < at[0] <= EARLY * steps and late


def _tabled(facts: Facts) -> int:
    """Of how many ranks a table of scores shows the first and the last."""
    scores = [m for m in facts.matches if m.signature.id == SCORE and m.attempt == facts.last.n]
    if not scores:
        return 0
    first = max(1, scores[0].cite.line - HEADED)
    above = facts.lines(scores[0].cite.source, first, scores[0].cite.line - first)
    return max((int(found[1]) for text in above if (found := _OF.search(text))), default=0)


def _ranks(match: Match) -> list[int]:
    listed = match.groups["key"]
    if _OF_STRAGGLER.search(listed):
        return [int(rank) for rank in _OF_STRAGGLER.findall(listed)]
    listed = _ASIDE.sub("", listed)
    return [int(rank) for rank in listed.split(",")] if _LIST.match(listed) else []


def _scores(facts: Facts, rank: int) -> list[Match]:
    """A rank's scores beside the others', which are not those beside its own best."""
    found = []
    for match in facts.matches:
        if match.signature.id != SCORE or match.groups["rank"] != str(rank):
            continue
        if match.attempt == facts.last.n and among_all(facts, match):
            found.append(match)
    rows = (one for match in _most(facts, ROW) for one in _in_row(match))
    return [*found, *(one for one in rows if one.groups["rank"] == str(rank))]


def among_all(facts: Facts, match: Match) -> bool:
    """Whether a score stands in a table of ranks beside one another."""
    first = max(1, match.cite.line - HEADED)
    above = facts.lines(match.cite.source, first, match.cite.line - first)
    headings = [text for text in above if "performance:" in text]
    return bool(headings) and _RELATIVE in headings[-1]


def _score(match: Match) -> float:
    return float(match.groups["score"])


def _place(facts: Facts, rank: int, scores: list[Match]) -> Place:
    nodes = {facts.node_of(host) for match in scores if (host := match.groups.get("host"))}
    host = nodes.pop() if len(nodes) == 1 else None
    return facts.on_host(Place(rank=rank, host=host))
