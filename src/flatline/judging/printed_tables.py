"""
Which rank the others wait for, where one line tells a part of the steps of every rank.

A loop may gather the times of all ranks on one and print them side by side.  Of waits the last one
has the shortest, of work the longest; either must cost a part of a step, line after line.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from statistics import median

from flatline.facts import Facts
from flatline.judging.claims import claim
from flatline.judging.named_logs import known_hosts
from flatline.judging.printed_waits import HALF, LEAST_PART, MOST_SHARE, OFTEN, Waits, by_clock
from flatline.judging.rank_lists import listed_place
from flatline.model import LogCite, Place

TOLD, ROWS = "per-rank-times", "per-rank-rows"
MOST_TABLES, MOST_RANKS, ROWS_READ, ABOVE = 48, 16_384, 64, 1
LEAST_LINES, LEAST_RANKS, MOST_CHARS, HEAD_LINES = 4, 4, 16_384, 60
STARTS = 8
"""Beginnings that are tried: a rank may have become slow in any of so many parts."""
PER_HOST = (4, 8, 16)
"""Ranks that a host has, one a card, where a block of them stands for it."""
ALIKE = 0.5
"""Of what the one is apart, no other rank may be as far from the middle."""
_PAIR = re.compile(
    r"(?<![\w.:])r?(\d{1,5}) ?[=:] ?(\d{1,9}(?:\.\d{1,9})?)(?: ?(?:ms|s))?(?![\w.:])"
)
_NAMED = re.compile(r"([a-z][\w/+-]{0,30})[ =](-?\d{1,6}(?:\.\d{1,9})?)(ms|s)?,? ?")
_GROUP = re.compile(
    r"(?:^|: |\| ?)r(\d{1,5}):? "
    r"((?:[a-z][\w/+-]{0,30}[ =]-?\d{1,6}(?:\.\d{1,9})?(?:ms|s)?,? ?){2,12})"
)
"""A rank's parts side by side, and the ranks behind one another."""
_SLASHED = re.compile(
    r"(?<![\w.:/])r?(\d{1,5}) ?[=:] ?(\d{1,9}(?:\.\d{1,6})?(?:/\d{1,9}(?:\.\d{1,6})?){1,5})"
    r"(?![\w./:])"
)
_NAMES = re.compile(
    r"(?i)(?<![\w/.:])([a-z][a-z_0-9+-]{0,30}(?:/[a-z][a-z_0-9+-]{0,30}){1,5})(?![\w/.:])"
)
_OF_RANK = re.compile(r"\brank {0,4}(\d{1,5})\s{0,2}:?\s{1,4}(\d{1,9}\.\d{1,6})(?=\s|$)")
_ROW = re.compile(
    r"\brank {0,4}(\d{1,5})\b:?(?P<where>(?: {1,4}[A-Za-z][\w.-]{0,80}){0,3})[ |]{1,6}"
    r"(?P<values>\d{1,9}\.\d{1,6}(?:(?: {0,3}[|,] {0,3}| {1,6})\d{1,9}\.\d{1,6}){1,7})\s*$"
)
"""A rank, perhaps where it runs, and the parts of its steps side by side."""
_COLUMNS = re.compile(r"\(([a-z][\w+-]{0,30}(?: ?[|,/] ?[a-z][\w+-]{0,30}){1,7})\)", re.IGNORECASE)
"""What the line above calls these parts."""
_CARD = re.compile(r"(?i)\b(?:gpu|cuda|dev(?:ice)?)[:_-]?(\d{1,2})\b")
_TASK = re.compile(r"^\s{0,6}\d{1,6}:(?= )")
"""What `srun -l` puts before each line."""
_TIMER = re.compile(r"\s{1,8}([a-z][a-z0-9-]{2,60}):")
_UNIT_WORD = re.compile(r"(?i)\b(ms|us|seconds|sec)\b")
_LAYOUT = re.compile(
    r"(?<![\w.])r?(\d{1,5}) ?[=:] ?([A-Za-z][\w.-]{1,120})(?:[/:](\d{1,2}))?(?!\w)"
)
_LAID = re.compile(r"(?i)\branks?\b.{0,24}\b(?:layout|map|mapping|placement|hosts?|nodes?)\b")
_WAIT = re.compile(r"(?i)wait|idle|all[-_ ]?reduce|sync|halo|barrier|comm")
_FOR_DATA = re.compile(
    r"(?i)(?:data|load|input|batch|fetch)\w*[ _-]wait|wait\w*[ _-](?:(?:for|on)[ _-])?(?:the )?"
    r"(?:next )?(?:data|load|input|batch)"
)
"""A wait that the others share no part of: it makes a rank late."""
_WORK = re.compile(
    r"(?i)comput|forward|backward|fwd|bwd|work|h2d|copy|load|data|input|batch|fetch|step|time"
)
_UP_TO = re.compile(
    r"(?i)\b(?:before|until|up to|excl(?:\.|uding)|without|w/o)(?=[ (]).*", re.DOTALL
)
"""What is no part of the time that is told."""
_CLOCK = re.compile(r"\d\d:\d\d:\d\d\S*\s")
_OF_EACH, _LETTER = re.compile(r"(?i)per[- ]rank"), re.compile(r"[A-Za-z]")
_LIST = re.compile(
    r"(?i)\b(?:per|by|across|over|all)[- ]ranks?\b([^|\n:=]{0,60})[:=] ?"
    r"\[?((?:\d{1,9}(?:\.\d{1,9})?,? {1,2}){3,}\d{1,9}(?:\.\d{1,9})?)\]?\s*(?:$|\|)"
)
"""The ranks' times in their order, without their numbers."""
_NAME_ENDS = re.compile(r"[\]|:]|\d(?=\s)")
"""What stands before a list's name: a stamp, a source, a step."""
_UNIT = re.compile(r"(?i)(?:[\[(_ ]|(?<=[0-9]))(ms|us|µs|s|sec(?:onds)?)(?:[\])]|\s*:?\s*$)")
_UNIT_ABOVE = re.compile(r"[\[(](ms|us|s|sec)(?:/step|/iter|/it)?\b[^\])]{0,40}[\])]:")
_SCALES = {"ms": 1e-3, "us": 1e-6, "µs": 1e-6, "s": 1.0, "sec": 1.0, "seconds": 1.0}
_NO_PART = re.compile(
    r"(?i)norm|loss|grad\b|mem|gi?b\b|util|ratio|throughput|flop|offset|skew|drift|uptime|avg|checkpoint"
    r"|ckpt|sav(?:e|ing)|writ|eval|valid|init|start-?up|volume|epoch|token|shard|since|total|sum\b"
    r"|last\b(?! \d{1,6} (?:step|iter))|per_s(?:ec(?:ond)?)?\b"
)
"""What is no part of a step, one of many steps together, or a rate."""


@dataclass(frozen=True, slots=True)
class _Row:
    """Seconds of each rank, by one line."""

    cite: LogCite
    by: Mapping[int, float]


def tabled_waits(facts: Facts) -> Waits | None:
    """None where no such lines stand, or no rank is apart in nearly all of them."""
    tables: dict[tuple[bool, str], list[_Row]] = defaultdict(list)
    for match in facts.tagged(TOLD):
        if match.attempt == facts.last.n:
            for waits, label, row in _parts(facts, match.cite):
                tables[waits, label].append(row)
    told = [m.cite for m in facts.tagged(ROWS) if m.attempt == facts.last.n]
    for cite in told[:: 1 + len(told) // MOST_TABLES]:
        for waits, label, row in (*_rows(facts, cite), *_columns(facts, cite)):
            tables[waits, label].append(row)
    step_s = _step_s(facts)
    found = (
        _apart(facts, rows[begin:], step_s, label, waits=waits)
        for (waits, label), rows in sorted(tables.items(), key=lambda item: not item[0][0])
        for begin in dict.fromkeys(len(rows) * n // STARTS for n in range(STARTS))
    )
    return next(filter(None, found), None)


def _parts(facts: Facts, cite: LogCite) -> Iterator[tuple[bool, str, _Row]]:
    """Whether it is a wait, what it is called, and the times of a line's parts."""
    text = "".join(facts.lines(cite.source, cite.line, 1, MOST_CHARS))
    told = (*_by_part(text), *_by_rank(text), *_by_list(text, facts.world_size), *_by_slash(text))
    for label, unit, by in told:
        if len(by) < LEAST_RANKS or sorted(by) != [*range(len(by))]:
            continue
        if _NO_PART.search(_UP_TO.sub("", label)):
            continue
        named = " ".join(re.findall(r"[A-Za-z][\w/-]*", label)[-6:]).lower()
        scale = _SCALES[unit.lower()]
        waits = _waits(label)
        if waits or _WORK.search(label):
            yield waits, named, _Row(cite, {rank: scale * took for rank, took in by.items()})


def _rows(facts: Facts, cite: LogCite) -> Iterator[tuple[bool, str, _Row]]:
    """The same of a table, one rank or some on a line, under the line that says of what."""
    by: dict[int, float] = {}
    first = cite.line
    while len(by) < MOST_RANKS:
        lines = facts.lines(cite.source, first, ROWS_READ)
        for text in (_TASK.sub("", line, count=1) for line in lines):
            pairs = _OF_RANK.findall(text)
            if not pairs or _OF_RANK.sub("", text).strip():
                break
            by.update((int(rank), float(took)) for rank, took in pairs)
        else:
            if len(lines) == ROWS_READ:
                first += ROWS_READ
                continue
        break
    above = facts.lines(cite.source, max(1, cite.line - ABOVE), min(ABOVE, cite.line - 1))
    label = _TASK.sub("", above[-1], count=1) if above else ""
    unit = _UNIT.search(label) or _UNIT_WORD.search(label)
    own = _TIMER.fullmatch(label.rstrip())
    if len(by) < LEAST_RANKS or sorted(by) != [*range(len(by))] or not (unit or own):
        return
    scale = _SCALES[unit[1].lower()] if unit else 1e-3  # Megatron's are milliseconds, told once
    waits = _waits(label)
    if not _NO_PART.search(label) and (waits or _WORK.search(label)):
        name = own[1] if own else " ".join(re.findall(r"[A-Za-z][\w/+-]*", label)[:6]).lower()
        yield waits, name, _Row(cite, {rank: scale * took for rank, took in by.items()})


def _columns(facts: Facts, cite: LogCite) -> Iterator[tuple[bool, str, _Row]]:
    """The same of a table with the parts of a step in its columns."""
    above = "".join(facts.lines(cite.source, max(1, cite.line - ABOVE), min(ABOVE, cite.line - 1)))
    named, unit = _COLUMNS.search(above), _UNIT.search(above) or _UNIT_WORD.search(above)
    if named is None or unit is None or _NO_PART.search(_COLUMNS.sub("", above)):
        return
    names = re.split(r" ?[|,/] ?", named[1])
    rows: dict[int, list[float]] = {}
    first = cite.line
    while len(rows) < MOST_RANKS:
        found = [_ROW.search(text) for text in facts.lines(cite.source, first, ROWS_READ)]
        read = [one for one in found[: found.index(None) if None in found else None] if one]
        rows |= {int(one[1]): [float(v) for v in re.findall(r"[\d.]+", one["values"])]
                 for one in read}  # fmt: skip
        if len(read) < ROWS_READ:
            break
        first += ROWS_READ
    if len(rows) < LEAST_RANKS or sorted(rows) != [*range(len(rows))]:
        return
    if any(len(values) != len(names) for values in rows.values()):
        return
    scale = _SCALES[unit[1].lower()]
    for at, name in enumerate(names):
        waits = _WAIT.search(name) is not None
        if not _NO_PART.search(name) and (waits or _WORK.search(name)):
            by = {rank: scale * values[at] for rank, values in rows.items()}
            yield waits, name.lower(), _Row(cite, by)


def _in_its_row(facts: Facts, cite: LogCite, place: Place) -> Place:
    """With the host and the card that stand beside a rank in such a table."""
    line = cite.line + (place.rank or 0)
    row = _ROW.search("".join(facts.lines(cite.source, line, 1)))
    if row is None or int(row[1]) != place.rank:
        return place
    named = [facts.node_of(word) for word in row["where"].split()]
    hosts, card = [host for host in named if host in facts.hosts], _CARD.search(row["where"])
    if len(hosts) != 1 or place.host not in (None, hosts[0]):
        return place
    return replace(place, host=hosts[0], gpu=card[1] if card else place.gpu)


def _by_part(text: str) -> Iterator[tuple[str, str, dict[int, float]]]:
    """Of each part its name, its unit and the ranks' times: `wait [s]: r0=0.9 r1=0.1`."""
    for part in text.split("|"):
        pairs = list(_PAIR.finditer(part))
        by = {int(pair[1]): float(pair[2]) for pair in pairs}
        if not by or len(pairs) > len(by):
            continue
        said = _OF_EACH.split(part[: pairs[0].start()])
        label = next((text for text in said[:0:-1] if _LETTER.search(text)), said[0])
        label = _CLOCK.split(label)[-1]
        unit = _UNIT.search(label) or _UNIT.search(pairs[0][0])
        if unit is not None:
            yield label, unit[1], by


def _by_rank(text: str) -> Iterator[tuple[str, str, dict[int, float]]]:
    """The same by rank: `(s/step): r0 h2d 0.1 wait 0.9 | r1 h2d 0.9 wait 0.1`."""
    groups = list(_GROUP.finditer(text))
    if not groups:
        return
    above = _UNIT_ABOVE.search(text, max(0, groups[0].start() - 60), groups[0].start() + 1)
    table: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for group in groups:
        for name, took, own in _NAMED.findall(group[2]):
            if unit := own or (above[1] if above else ""):
                table[name, unit].setdefault(int(group[1]), float(took))
    for (name, unit), by in table.items():
        if len(by) == len(groups):
            yield name, unit, by


def _by_slash(text: str) -> Iterator[tuple[str, str, dict[int, float]]]:
    """The same with a rank's parts as one: `compute/sync ms per rank: 0:330/124 1:453/14`."""
    found = list(_SLASHED.finditer(text))
    parts = [tuple(map(float, one[2].split("/"))) for one in found]
    label = text[: found[0].start()] if found else ""
    names, unit = _NAMES.findall(label), _UNIT.search(label) or _UNIT_WORD.search(label)
    if not names or unit is None or len({*map(len, parts)}) != 1:
        return
    called = names[-1].split("/")
    if len(called) != len(parts[0]):
        return
    for n, name in enumerate(called):
        yield name, unit[1], {int(one[1]): row[n] for one, row in zip(found, parts, strict=True)}


def _by_list(text: str, ranks: int | None) -> Iterator[tuple[str, str, dict[int, float]]]:
    """The same of all ranks in their order: `loader wait per rank [ms]: 9 8 640 9`, the unit as
    well in the name, `fwd_ms per rank: 9 8 14 9`."""
    for found in _LIST.finditer(text):
        before = _NAME_ENDS.split(text[: found.start()])[-1]
        by = dict(enumerate(map(float, found[2].replace(",", " ").split())))
        told = (f"{found[1].rstrip()} ", found[1], before.rstrip())
        unit = next(filter(None, map(_UNIT.search, told)), None)
        if unit is not None and len(by) == (ranks or len(by)):
            yield f"{before}{found[1]}", unit[1], by


def _waits(label: str) -> bool:
    """Whether it is a wait for other ranks."""
    label = _UP_TO.sub("", label)
    return _WAIT.search(label) is not None and _FOR_DATA.search(label) is None


def _step_s(facts: Facts) -> float | None:
    track = facts.main_track(facts.last.n)
    if track is None:
        return None
    span = [i for i in track.of_attempt(facts.last.n) if track.steps[i] >= 0]
    told = [track.step_s[i] for i in span if isfinite(track.step_s[i])]
    length = median(told) if told else by_clock(track, span)
    return length if isfinite(length) and length > 0 else None


def _apart(
    facts: Facts, rows: Sequence[_Row], step_s: float | None, label: str, *, waits: bool
) -> Waits | None:
    ranks = set(rows[0].by) if rows else set()
    if len(rows) < LEAST_LINES or step_s is None or any(set(row.by) != ranks for row in rows):
        return None
    typical = {rank: median(row.by[rank] for row in rows) for rank in ranks}
    usual = median(typical.values())
    sign = -1.0 if waits else 1.0
    far = {rank: sign * (took - usual) for rank, took in typical.items()}
    late = _late(far, LEAST_PART * step_s)
    if not late or max(typical.values()) > step_s or len(ranks) * MOST_SHARE < len(late):
        return None
    mine = [typical[rank] for rank in late]
    if waits and max(mine) > HALF * usual:
        return None
    often = sum(set(_firsts(row.by, sign, len(late))) == set(late) for row in rows)
    if often < OFTEN * len(rows):
        return None
    source = rows[0].cite.source
    places = tuple(_in_its_row(facts, rows[0].cite, _placed(facts, source, rank))
                   for rank in late)  # fmt: skip
    who = f"{places[0]}" if len(late) == 1 else f"ranks {late[0]} to {late[-1]}"
    text = (
        f"By {len(rows)} lines that tell it of {len(ranks)} ranks, {who} took"
        f" {median(mine):.3g} s of {step_s:.3g} ({label}, median), the median rank {usual:.3g}"
        " s: the others wait"
    )
    shown = claim(text, *(row.cite for row in _shown(rows)))
    return Waits(places, median(far[rank] for rank in late) / step_s, (shown,), doubted=True)


def _late(far: Mapping[int, float], least: float) -> list[int]:
    """The one rank that is far enough from the middle, or a block of them as long as a host has
    ranks, where no other is near."""
    late = sorted(rank for rank, away in far.items() if away >= least)
    if not late:
        return []
    count, others = len(late), [abs(away) for rank, away in far.items() if rank not in late]
    block = late == [*range(late[0], late[0] + count)]
    whole = block and late[0] % count == 0 and len(far) % count == 0
    if count > 1 and not (whole and count in PER_HOST):
        late = [max(late, key=lambda rank: (far[rank], -rank))]
        others = [abs(away) for rank, away in far.items() if rank not in late]
    return late if max(others, default=0.0) <= ALIKE * min(far[rank] for rank in late) else []


def _firsts(by: Mapping[int, float], sign: float, count: int) -> list[int]:
    return sorted(by, key=lambda rank: -sign * by[rank])[:count]


def _shown(rows: Sequence[_Row]) -> list[_Row]:
    return [rows[0], rows[len(rows) // 2], rows[-1]]


def _placed(facts: Facts, source: str, rank: int) -> Place:
    """With the host, and the card, that the log's own list of its ranks gives it."""
    place = facts.on_host(Place(rank=rank))
    hosts = {host.partition(".")[0]: host for host in known_hosts(facts)}
    for text in facts.lines(source, 1, HEAD_LINES, MOST_CHARS):
        listed = {int(n): (host, gpu) for n, host, gpu in _LAYOUT.findall(text)}
        if _LAID.search(text) and rank in listed and sorted(listed) == [*range(len(listed))]:
            host, gpu = listed[rank]
            known = hosts.get(host.partition(".")[0])
            if known is not None and place.host in (None, known):
                return Place(host=known, gpu=gpu or None, rank=rank)
    return listed_place(facts, place)
