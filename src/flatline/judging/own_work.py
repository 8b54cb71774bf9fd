"""
Which of a few ranks is slow in work of its own, by the times that each prints of its steps.

Three ranks have no usual value that a fourth stands apart from (`printed_waits`).  But where each
prints what it does by itself (forward, compute, data), the one that takes longest step after step
is no chance, and one that took no longer than the others before, or whom these wait for in the
collective, has not just more to do by design.  Backward passes and whole steps are left out: they
hold the wait for the others.  Both passes in one number are own work where the wait is told apart
and makes up for it.  All ranks of one host may be the slow ones, if the others wait for them.

Read from lines that carry a rank, from rows of JSON that do, from tables with a column of ranks,
and from Megatron's `--timing-log-option all`.  There the passes are timed apart: what a rank's
forward takes longer the others spend in their backward, where the gradients are reduced.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, log
from statistics import median

from flatline.facts import LOG, Facts, FileRead
from flatline.judging.claims import claim
from flatline.judging.throughput import pace
from flatline.model import Claim, LogCite, Place

CHANCE = 0.01
"""How often one of so many ranks may be the longest every time without being slow."""
LONGER = 1.25
"""Times what the others take: own work scatters by a tenth or two between ranks."""
LITTLE, ALIKE = 1.08, 1.03
"""The same of one that the others wait for since, and that took as long as they before: then it
needs not be far apart, as long as what it costs is."""
LEAST_PART = 0.05
"""Of the step that it must cost (`printed_waits.LEAST_PART`)."""
OFTEN = 0.9
STARTS = 8
"""Beginnings that are tried: a rank may have become slow in any of so many parts."""
MOST_RANKS = 64
LINES, CHUNK, LINE_CHARS, MOST_LOGS = 20_000, 500, 1_000, 64
"""A log for each host of a run, or for each rank: of more ranks enough tell what is usual."""
LOOKED_AT = 1_000
"""Last lines of a log that show whether the others need to be read: a loop prints all the time."""
_OWN = (
    r"fwd|forward|comput(?:e|ation)|data(?:[ _-]?load(?:er|ing)?)?|load(?:ing)?|batch[ _-]gen"
    r"(?:erator)?|(?:h2d|d2h)(?:[_/+-](?:h2d|d2h))?(?:[ _-]cop(?:y|ies))?|offload(?:ing)?|own|work"
)
_COLLECTIVE = (
    r"(?:sync(?:hroni[sz]ation)?|wait(?:ing)?|all[ _-]?reduce|barrier|comm(?:unication)?"
    r"|reduce[ _-]scatter|all[ _-]?gather|a2a|all[ _-]?to[ _-]?all|collectives?)"
)
_WAIT = (
    rf"(?:(?:grad(?:ient)?s?|d?dp|nccl)[ _-])?{_COLLECTIVE}(?:[/+]{_COLLECTIVE})?"
    r"(?:[ _-]wait(?:ing)?)?"
)
_BOTH = r"(?:fwd|forward) ?(?:[+&/_-]|and)? ?(?:bwd|backward)"
_PART = rf"(?:(?P<both>{_BOTH})|(?P<own>{_OWN})|(?P<wait>{_WAIT}))(?:[ _-]?(?:time|pass|step))?"
_UNIT = r"(?:[ _-]?[(\[]?(?P<unit>ms|msecs?|s|secs?|seconds)[)\]]?)?"
_COLUMN = re.compile(rf"(?i)(?:t_|time[_/])?{_PART}{_UNIT}")
_TIMED = re.compile(
    rf"(?i)(?<![\w/.])(?:t_|time[_/])?{_PART}{_UNIT}[\"']?(?: ?[:=] ?| {{1,4}})"
    r"(?P<value>\d{1,9}(?:\.\d{1,9})?)(?: ?(?P<after>ms|s(?:ecs?|econds)?)\b|(?=[\s,;|)\]}]|$))"
)
_RANK = re.compile(
    r"(?i)(?<![\w.])(?:(?:global[_ ])?rank[\"']?[ :=#\[]{1,3}(?=\d{1,5}\b)|\[r(?=\d{1,5}\]))"
    r"(?P<rank>\d{1,5})"
)
_BRACKETED = re.compile(
    r"^\[(?:[^\[\]]{0,60} )?(?P<host>[a-z][a-z0-9-]{0,60}):(?P<rank>\d{1,4})\] "
)
"""A host and a number of one of its processes, before what that says."""
_STEP = re.compile(
    r"(?i)(?<![a-z])(?:global[_ ])?(?:step|iter(?:ation)?|batch)[\"']?[ :=#\[]{1,6}(?P<n>\d{1,12})"
)


_TIMERS, _FORWARD, _BACKWARD = "times across ranks (ms):", "forward-compute", "backward-compute"
_TIMER = re.compile(
    r"(?:\d{1,5}: ?)?\s{1,8}(?:(?P<name>[a-z][\w-]{1,60}):|rank +(?P<rank>\d{1,5}): "
    r"(?P<ms>\d{1,9}(?:\.\d{1,9})?))\s*$"
)
"""`_get_all_ranks_time_string` of megatron/core/timers.py."""


@dataclass(slots=True)
class _Spent:
    """What one rank spent in one step, in seconds, and the line that says so."""

    cite: tuple[str, int]
    own_s: float | None = None
    wait_s: float | None = None
    both_s: float | None = None
    """Both passes."""

    def add(self, found: re.Match[str], value: float, unit: str | None) -> None:
        value = value / 1000 if (unit or "").lower().startswith("ms") else value
        if found["own"]:
            self.own_s = (self.own_s or 0.0) + value
        elif found["both"]:
            self.both_s = (self.both_s or 0.0) + value
        else:
            self.wait_s = (self.wait_s or 0.0) + value


@dataclass(slots=True)
class _Steps:
    """Of each step what its ranks spent; a table is a step, by its number, and what names none is
    of the last that was printed."""

    tables: int = 0
    last: int | None = None
    rows: dict[int, dict[Place, _Spent]] = field(default_factory=dict)

    def add(self, step: int, rank: Place, spent: _Spent) -> None:
        if spent.own_s is not None or spent.both_s is not None:
            self.rows.setdefault(step, {}).setdefault(rank, spent)

    def whole(self) -> tuple[list[Place], list[dict[Place, _Spent]]]:
        """The ranks, and the steps of which all of them told, in order."""
        ranks = sorted({rank for row in self.rows.values() for rank in row}, key=str)
        if not 2 <= len(ranks) <= MOST_RANKS:
            return [], []
        return ranks, [row for _, row in sorted(self.rows.items()) if len(row) == len(ranks)]


Rows = Sequence[Mapping[Place, _Spent]]


@dataclass(frozen=True, slots=True)
class Slow:
    """The rank, or those of one host, how many times longer they work than the others, what part
    of the steps that costs and what shows it; `became` is whether it was not so before, `waited`
    whether the others wait."""

    places: tuple[Place, ...]
    times: float
    part: float
    ranks: int
    became: bool
    waited: bool
    shows: Claim


def own_work(facts: Facts) -> Slow | None:
    """None where no rank takes longest nearly every time, or it may only have more to do."""
    ranks, rows = facts.memo("own work", _read).whole()
    found = (_slow_in(facts, ranks, told, passes)
             for told, passes in ((rows, False), (_with_passes(rows), True)))  # fmt: skip
    return next(filter(None, found), None)


def _with_passes(rows: Rows) -> Rows:
    """With both passes as own work, where each rank told of them."""
    return [
        {rank: replace(one, own_s=(one.own_s or 0.0) + (one.both_s or 0.0), both_s=0.0)
         for rank, one in row.items()}
        for row in rows if all(one.both_s is not None for one in row.values())
    ]  # fmt: skip


def _slow_in(facts: Facts, ranks: Sequence[Place], rows: Rows, passes: bool) -> Slow | None:
    step_s = _step_s(facts)
    least = 1 + ceil(log(1 / CHANCE) / log(len(ranks))) if ranks else 0
    if not ranks or len(rows) < least:
        return None
    for begin in dict.fromkeys(len(rows) * n // STARTS for n in range(STARTS)):
        since, before = rows[begin:], rows[:begin]
        if len(since) < least:
            return None
        lone = _longest(since, step_s)
        late = (lone,) if lone is not None else _of_a_host(facts, since, step_s)
        if not late:
            continue
        others = [other for other in ranks if other not in late]
        became = len(before) >= least and _ratio(before, late, others) < LONGER
        waited = _waited(since, late, others)
        if waited or (became and lone is not None and not passes):
            part = _part(since, late, others, step_s)
            return _slow(facts, since, late, part, became, waited)
    return _by_little(facts, ranks, rows, step_s, least)


def _by_little(
    facts: Facts, ranks: Sequence[Place], rows: Rows, step_s: float, least: int
) -> Slow | None:
    """One rank that takes little longer since some step, and for which the others wait since."""
    for begin in dict.fromkeys(len(rows) * n // STARTS for n in range(1, STARTS)):
        since, before = rows[begin:], rows[:begin]
        late = _longest(since, step_s, LITTLE) if min(len(since), len(before)) >= least else None
        if late is None:
            continue
        others = [other for other in ranks if other != late]
        if _ratio(before, [late], others) < ALIKE and _waited(since, [late], others):
            part = _part(since, [late], others, step_s)
            return _slow(facts, since, [late], part, became=True, waited=True)
    return None


def _step_s(facts: Facts) -> float:
    """How long a step takes, as far as it is known: not all that is in one need be told of."""
    known, track = pace(facts), facts.main_track(facts.last.n)
    if known is not None and known.unit == "steps/s":
        return 1 / median(known.values)
    said = [] if track is None else [track.step_s[i] for i in track.of_attempt(facts.last.n)
                                     if track.step_s[i] > 0]  # fmt: skip
    return median(said) if said else 0.0


def longest(facts: Facts) -> bool:
    """Whether one rank works longest on what it does by itself nearly every time, by however
    little, and the steps are longer for it; it may only have more to do."""
    ranks, rows = facts.memo("own work", _read).whole()
    enough = bool(ranks) and len(rows) > log(1 / CHANCE) / log(len(ranks))
    lone = enough and _longest(rows, _step_s(facts), 1.0) is not None
    return lone or own_work(facts) is not None


def _longest(rows: Rows, step_s: float, longer: float = LONGER) -> Place | None:
    """The rank whose own work is the longest nearly every time, by far and at a cost."""
    first = [
        max((one.own_s or 0.0, n, rank) for n, (rank, one) in enumerate(row.items()))[2]
        for row in rows
    ]
    rank = max(set(first), key=first.count)
    others = [other for other in rows[0] if other != rank]
    often = first.count(rank) >= OFTEN * len(rows)
    return rank if often and _ratio(rows, [rank], others) >= longer and (
        _part(rows, [rank], others, step_s) >= LEAST_PART
    ) else None  # fmt: skip


def _of_a_host(facts: Facts, rows: Rows, step_s: float) -> tuple[Place, ...]:
    """All ranks of one host, where each of them works longer than every other nearly every time,
    by far and at a cost."""
    on: dict[str, list[Place]] = {}
    for rank in rows[0]:
        on.setdefault(_placed_in_order(facts, rank, len(rows[0])).host or "", []).append(rank)
    for host, late in on.items():
        others = [rank for rank in rows[0] if rank not in late]
        if not host or len(late) < 2 or len(late) > len(others):
            continue
        often = sum(
            min(row[rank].own_s or 0.0 for rank in late)
            > max(row[other].own_s or 0.0 for other in others)
            for row in rows
        )
        if often >= OFTEN * len(rows) and _ratio(rows, late, others) >= LONGER and (
            _part(rows, late, others, step_s) >= LEAST_PART
        ):  # fmt: skip
            return tuple(sorted(late, key=lambda rank: (rank.rank or 0, str(rank))))
    return ()


def _placed_in_order(facts: Facts, place: Place, world: int) -> Place:
    """With the host that is known, or the one that has it in the order of the job's nodes."""
    known = facts.on_host(place)
    laid = facts.memo(f"{world} ranks in order", lambda facts: _in_order(facts, world))
    if known.host is not None or place.rank is None or place.rank >= len(laid):
        return known
    return replace(place, host=laid[place.rank])


def _in_order(facts: Facts, world: int) -> Sequence[str]:
    """The host of each rank, as many on each of the job's nodes in their order, where those of
    some host are known and all that are known lie so; nothing elsewhere."""
    nodes = facts.job.nodes if facts.job is not None else ()
    if not nodes or world % len(nodes):
        return ()
    laid = [nodes[rank // (world // len(nodes))] for rank in range(world)]
    told = [facts.on_host(Place(rank=rank)).host for rank in range(world)]
    agree = [host == one for host, one in zip(told, laid, strict=True) if host is not None]
    return laid if agree and all(agree) else ()


def _own(rows: Rows, ranks: Sequence[Place]) -> float:
    return median(row[rank].own_s or 0.0 for row in rows for rank in ranks)


def _ratio(rows: Rows, late: Sequence[Place], others: Sequence[Place]) -> float:
    """Against the longest of the others: a few ranks have no usual one."""
    usual = max(_own(rows, [other]) for other in others)
    return min(_own(rows, [rank]) for rank in late) / usual if usual > 0 else 0.0


def _part(rows: Rows, late: Sequence[Place], others: Sequence[Place], step_s: float) -> float:
    usual = _own(rows, others)
    length = median(max((one.own_s or 0.0) + (one.both_s or 0.0) + (one.wait_s or 0.0)
                        for one in row.values()) for row in rows)  # fmt: skip
    length = max(length, step_s)
    return (_own(rows, late) - usual) / length if length > 0 else 0.0


def _waited(rows: Rows, late: Sequence[Place], others: Sequence[Place]) -> bool:
    """Whether they wait least of all nearly every time, and the others for most of what they take
    longer."""
    told = [row for row in rows if all(one.wait_s is not None for one in row.values())]
    if len(told) < OFTEN * len(rows):
        return False
    least = sum(
        max((row[rank].wait_s or 0.0) for rank in late)
        <= min((row[other].wait_s or 0.0) for other in others)
        for row in told
    )
    waits = median((row[other].wait_s or 0.0) for row in told for other in others)
    own = median((row[rank].wait_s or 0.0) for row in told for rank in late)
    more = _own(told, late) - _own(told, others)
    return least >= OFTEN * len(told) and waits - own >= more / 2


def _slow(
    facts: Facts, rows: Rows, late: Sequence[Place], part: float, became: bool, waited: bool
) -> Slow:
    others = [other for other in rows[0] if other not in late]
    own, usual = _own(rows, late), _own(rows, others)
    places = tuple(facts.on_host(late[0]) if len(late) == 1 else
                   _placed_in_order(facts, one, len(rows[0])) for one in late)  # fmt: skip
    if late[0].rank is None and len(rows[0]) == facts.world_size:  # each task is one of the ranks
        places = tuple(replace(place, rank=place.task, task=None) for place in places)
    middle = sorted(rows, key=lambda row: row[late[0]].own_s or 0.0)[len(rows) // 2]
    shown = [middle[late[0]], *[middle[other] for other in others][:1]]
    cites = [LogCite(*one.cite, facts.text(*one.cite)) for one in shown]
    who = str(places[0]) if len(places) == 1 else f"each of the {len(places)} on {places[0].host}"
    text = (
        f"In {len(rows)} steps that all {len(rows[0])} ranks told of, {who} spent {own:.3g} s"
        f" on work of its own (median), the others {usual:.3g} s"
    )
    return Slow(places, own / usual if usual else 0.0, part, len(rows[0]), became, waited,
                claim(text, *cites))  # fmt: skip


# --- reading ------------------------------------------------------------------------------------


def _read(facts: Facts) -> _Steps:
    found = _Steps()
    logs = [one for one in facts.files if one.kind == LOG and one.lines]
    if len(logs) > MOST_LOGS:
        return found
    for read in logs:
        found.last = None
        if read.lines <= LOOKED_AT or _taken(facts, read, _Steps(), LOOKED_AT).rows:
            _taken(facts, read, found, LINES)
    return found


def _taken(facts: Facts, read: FileRead, found: _Steps, most: int) -> _Steps:
    """What the last lines of a log say, so many at most."""
    known = _placed(facts, read.source)
    columns: list[re.Match[str] | None] = []
    timers = _Timers(found, read.source)
    for line, text in _lines(facts, read.source, max(1, read.lines + 2 - most)):
        if timers.read(line, text):
            continue
        header = _header(text)
        if header:
            columns, found.tables = header, found.tables + 1
            continue
        if columns and (row := _row(text, columns, (read.source, line))) is not None:
            found.add(found.tables, *row)
            continue
        columns = []
        _line(found, text, (read.source, line), *known.get(line, (read.place, None)))
    return found


@dataclass(slots=True)
class _Timers:
    """Megatron's times across ranks: a timer's name, and below it a line for each rank."""

    found: _Steps
    source: str
    timer: str | None = None
    """The one whose lines follow; "" where none has begun yet."""

    def read(self, line: int, text: str) -> bool:
        """Whether the line is one of them."""
        if _TIMERS in text:
            self.found.tables, self.timer = self.found.tables + 1, ""
            return True
        told = None if self.timer is None else _TIMER.match(text)
        if told is None:
            self.timer = None
            return False
        if told["name"]:
            self.timer = told["name"]
        elif self.timer in (_FORWARD, _BACKWARD):
            row = self.found.rows.setdefault(self.found.tables, {})
            spent = row.setdefault(Place(rank=int(told["rank"])), _Spent((self.source, line)))
            value = float(told["ms"]) / 1e3
            if self.timer == _FORWARD:
                spent.own_s = value
            else:
                spent.wait_s = value
        return True


def _placed(facts: Facts, source: str) -> dict[int, tuple[Place, int | None]]:
    """Place and step of the lines of a log that a format of progress took."""
    out: dict[int, tuple[Place, int | None]] = {}
    for track in facts.tracks:
        if track.source != source:
            continue
        for i in track.of_attempt(facts.last.n)[-LINES:]:
            out[track.lines[i]] = track.place, track.steps[i] if track.steps[i] >= 0 else None
    return out


def _lines(facts: Facts, source: str, first: int) -> Iterator[tuple[int, str]]:
    """The lines of a log from one on, numbered."""
    while said := facts.lines(source, first, CHUNK, LINE_CHARS):
        yield from enumerate(said, first)
        first += len(said)


def _line(found: _Steps, text: str, cite: tuple[str, int], place: Place, step: int | None) -> None:
    """What a line with a rank and a step says of one rank's times."""
    spent = _Spent(cite)
    rank = Place(place.host, rank=place.rank, task=place.task)
    if text.startswith("{"):
        said = _json(text)
        own, at = (
            _first(said, ("rank", "global_rank")),
            _first(said, ("step", "iteration", "iter")),
        )
        rank, step = rank if own is None else Place(rank=own), step if at is None else at
        for name, value in said.items():
            if column := _COLUMN.fullmatch(name.rpartition("/")[2]):
                spent.add(column, value, column["unit"])
    else:
        if rank.rank is None and rank.task is None:
            rank = speaker(text)
        if step is None and (counted := _STEP.search(text)):
            step = int(counted["n"])
        found.last = step = found.last if step is None else step
        for timed in _TIMED.finditer(text) if step is not None else ():
            spent.add(timed, float(timed["value"]), timed["after"] or timed["unit"])
    if step is not None and (rank.rank is not None or rank.task is not None):
        found.add(step, rank, spent)


def speaker(text: str) -> Place:
    """The rank that a line names as its own."""
    if told := _RANK.search(text):
        return Place(rank=int(told["rank"]))
    if told := _BRACKETED.match(text):
        return Place(host=told["host"], rank=int(told["rank"]))
    return Place()


def _json(text: str) -> dict[str, float]:
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return {
        name.lower(): float(value)
        for name, value in (said.items() if isinstance(said, dict) else ())
        if isinstance(value, int | float) and abs(value) < 1e15
    }


def _first(said: Mapping[str, float], names: Sequence[str]) -> int | None:
    return next((int(said[name]) for name in names if name in said), None)


def _header(text: str) -> list[re.Match[str] | None]:
    """Columns of a table whose first is a rank; none where no column is of own work."""
    words = re.split(r"[\s|,]+", text.strip(" |\t"))
    if len(words) < 2 or words[0].lower().strip("#") not in ("rank", "global_rank"):
        return []
    columns = [_COLUMN.fullmatch(word) for word in words[1:]]
    return columns if any(one is not None and not one["wait"] for one in columns) else []


def _row(
    text: str, columns: Sequence[re.Match[str] | None], cite: tuple[str, int]
) -> tuple[Place, _Spent] | None:
    words = re.split(r"[\s|,]+", text.strip(" |\t"))
    if len(words) != len(columns) + 1 or not words[0].isdecimal() or len(words[0]) > 5:
        return None
    spent = _Spent(cite)
    for column, word in zip(columns, words[1:], strict=True):
        if column is not None:
            if not re.fullmatch(r"\d{1,9}(?:\.\d{1,9})?", word):
                return None
            spent.add(column, float(word), column["unit"])
    return Place(rank=int(words[0])), spent
