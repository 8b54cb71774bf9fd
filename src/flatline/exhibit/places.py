"""What each rank, task or host last did, those that did the same as one row."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from flatline.exhibit.model import Places, Row, Span
from flatline.facts import Facts
from flatline.model import NodeEvent, Place, ProcessExit, Verdict
from flatline.model.dumps import Dump

ROWS = 24
"""Rows shown; with more, places are grouped by less, and what is then left is counted."""

Word = Literal["rank", "task"]
_EPOCH = datetime.fromtimestamp(0, UTC)


@dataclass(slots=True)
class _One:
    """What one rank or task last did."""

    hosts: list[str] = field(default_factory=list)
    culprit: bool = False
    read: bool = False
    step: int | None = None
    stepped: datetime | None = None
    heard: datetime | None = None
    waits_in: str | None = None
    said: str | None = None
    said_at: datetime | None = None
    ended: dict[str, None] = field(default_factory=dict)
    ended_at: datetime | None = None
    line: tuple[str, int, str] | None = None

    def hear(self, at: datetime | None) -> None:
        if at is not None and (self.heard is None or at > self.heard):
            self.heard = at


def places_of(facts: Facts, verdict: Verdict, attempt: int) -> tuple[Places, ...]:
    """Ranks or tasks where at least two are known of; hosts where a record speaks of them or the
    verdict blames one as a whole."""
    made = []
    word: Word = "rank" if any(p.rank is not None for p in _places(facts)) else "task"
    ranks = _ranks(facts, verdict, word, attempt)
    if len(ranks) > 1:
        rows, left_out, folded = _grouped(ranks)
        made.append(Places(word, rows, *_window(facts, verdict, rows), left_out, folded))
    rows = _hosts(facts, verdict)
    if rows:
        left = rows[ROWS:]
        folded = sum(len(row.hosts) for row in left)
        window = _window(facts, verdict, rows)
        made.append(Places("host", rows[:ROWS], *window, len(left), folded))
    return tuple(made)


def _places(facts: Facts) -> Iterable[Place]:
    yield from (track.place for track in facts.tracks)
    yield from (event.place for event in facts.exits)
    yield from (crash.cite.place for crash in facts.crashes)
    yield from (match.cite.place for match in facts.matches)
    yield from (read.place for read in facts.files)


def _window(
    facts: Facts, verdict: Verdict, rows: Sequence[Row]
) -> tuple[datetime | None, datetime | None]:
    """From the run's start, else the first instant known, to the last; what a record dates
    before the start lies before it."""
    run = verdict.run
    spans = [s for row in rows for s in (row.stepped, row.heard, row.said_at, row.ended_at) if s]
    known = [at for span in spans for at in span]
    known += [at for at in (run.started_at, run.ended_at, run.now, verdict.onset) if at]
    for track in facts.tracks:
        first = track.time(0) if len(track) else None
        known += [first] if first else []
    if len(set(known)) < 2:
        return None, None
    first = min(known) if run.started_at is None else run.started_at
    return (first, max(known)) if first < max(known) else (min(known), max(known))


# --- ranks and tasks --------------------------------------------------------------------------


def _ranks(facts: Facts, verdict: Verdict, word: Word, attempt: int) -> dict[int, _One]:
    found: dict[int, _One] = {}

    def one(place: Place) -> _One | None:
        number = place.rank if word == "rank" else place.task
        if number is None:
            return None
        item = found.setdefault(number, _One())
        if place.host is not None and place.host not in item.hosts:
            item.hosts.append(place.host)
        return item

    _from_logs(facts, one)
    _from_tracks(facts, one, attempt)
    _from_failures(facts, one, attempt)
    for dump in facts.dumps:
        item = one(Place(rank=dump.rank)) if dump.rank is not None else None
        if item is not None:
            item.read, item.waits_in = True, _waits_in(dump)
    for place in verdict.culprits:
        item = one(place)
        if item is not None:
            item.culprit = True
    size = verdict.run.world_size or 0
    if word == "rank" and len(found) > 1:
        for number in range(size):
            found.setdefault(number, _One())
    return found


One = Callable[[Place], _One | None]


def _from_logs(facts: Facts, one: One) -> None:
    for read in facts.files:
        item = one(read.place)
        if item is None:
            continue
        item.read = True
        seen, last = facts.last_seen.get(read.source), facts.last_lines.get(read.source)
        newer = item.line is None or (seen is not None and (item.heard or seen) <= seen)
        item.hear(seen)
        if last is not None and newer:
            item.line = last.source, last.line, last.text
    for match in facts.matches:
        item = one(match.cite.place)
        if item is not None:
            item.read = True
            item.hear(None if match.cite.at_assumed else match.cite.at)


def _from_tracks(facts: Facts, one: One, attempt: int) -> None:
    for track in facts.tracks:
        span = track.of_attempt(attempt)
        item = one(track.place) if span else None
        if item is None:
            continue
        item.read = True
        at, step = track.time(span[-1]), track.steps[span[-1]]
        item.hear(at)
        if step >= 0 and (item.step is None or step >= item.step):
            item.step, item.stepped = step, at or item.stepped


def _from_failures(facts: Facts, one: One, attempt: int) -> None:
    for crash in facts.crashes:
        item = one(crash.cite.place) if crash.attempt == attempt and not crash.caught else None
        if item is None:
            continue
        item.read = True
        at = None if crash.cite.at_assumed else crash.cite.at
        item.hear(at)
        name = crash.exception.rpartition(".")[2]
        item.said, item.said_at = f"raised {name}", at or item.said_at
        item.line = crash.cite.source, crash.cite.line, crash.cite.text
    for event in facts.exits:
        item = one(event.place) if event.attempt == attempt else None
        if item is not None:
            item.ended.setdefault(_ended(event))
            item.ended_at = event.at or item.ended_at


def _ended(event: ProcessExit) -> str:
    if event.signal is not None:
        return f"ended by signal {event.signal}"
    return f"exit status {event.exit_code}" if event.exit_code is not None else "ended"


def _waits_in(dump: Dump) -> str | None:
    """The oldest collective a rank has not left, else the last it completed."""
    pending = [entry for entry in dump.entries if entry.pending and not entry.is_p2p]
    if pending:
        entry = min(pending, key=lambda e: (e.seq, e.record_id))
        return f"waits in {entry.op} {entry.seq:,} of {entry.group}"
    done = [group.last_completed for group in dump.groups if group.last_completed is not None]
    return f"completed collective {max(done):,}" if done else None


# --- the same as one --------------------------------------------------------------------------


_KEYS: tuple[Callable[[_One], Hashable], ...] = (
    lambda o: (o.culprit, o.read, o.step, o.waits_in, o.said, tuple(o.ended)),
    lambda o: (o.culprit, o.read, o.step is None, o.waits_in, o.said, tuple(o.ended)),
    lambda o: (o.culprit, o.read, o.step is None, o.said, tuple(o.ended)),
    lambda o: (o.culprit, o.read, o.said is None, not o.ended),
)
"""From fine to coarse: what makes two places the same."""


def _grouped(ranks: dict[int, _One]) -> tuple[tuple[Row, ...], int, int]:
    """Rows, culprits first and then the rarest, how many rows are left out, with how many
    places."""
    groups: dict[Hashable, list[int]] = {}
    for key in _KEYS:
        groups = {}
        for number in sorted(ranks):
            groups.setdefault(key(ranks[number]), []).append(number)
        if len(groups) <= ROWS:
            break
    rows = [_row([ranks[n] for n in members], members) for members in groups.values()]
    rows.sort(key=lambda row: (not row.culprit, not row.read, len(row.numbers), row.numbers))
    left = rows[ROWS:]
    return tuple(rows[:ROWS]), len(left), sum(len(row.numbers) for row in left)


def _row(members: Sequence[_One], numbers: Sequence[int]) -> Row:
    steps = [one.step for one in members if one.step is not None]
    hosts = dict.fromkeys(host for one in members for host in one.hosts)
    endings = dict.fromkeys(word for one in members for word in one.ended)
    first = members[0]
    return Row(
        numbers=tuple(numbers),
        hosts=tuple(hosts),
        culprit=first.culprit,
        read=first.read,
        steps=(min(steps), max(steps)) if steps else None,
        stepped=_span(one.stepped for one in members),
        heard=_span(one.heard for one in members),
        waits_in=first.waits_in if len({one.waits_in for one in members}) == 1 else None,
        said=first.said if len({one.said for one in members}) == 1 else None,
        said_at=_span(one.said_at for one in members),
        ended=", ".join(list(endings)[:3]) or None,
        ended_at=_span(one.ended_at for one in members),
        line=first.line,
    )


def _span(instants: Iterable[datetime | None]) -> Span | None:
    known = [at for at in instants if at is not None]
    return (min(known), max(known)) if known else None


# --- hosts ------------------------------------------------------------------------------------


def _hosts(facts: Facts, verdict: Verdict) -> tuple[Row, ...]:
    """Hosts by the last that is recorded of them, the others of the run in one row."""
    culprits = {place.host for place in verdict.culprits if place.host and place.rank is None}
    last: dict[str, NodeEvent] = {}
    for event in facts.node_events:
        known = last.get(event.host)
        if known is None or (known.at or _EPOCH) <= (event.at or _EPOCH):
            last[event.host] = event
    if not last and not culprits:
        return ()
    groups: dict[tuple[bool, str | None], list[str]] = {}
    for host in dict.fromkeys([*facts.hosts, *last, *culprits]):
        groups.setdefault((host in culprits, _recorded(last.get(host))), []).append(host)
    rows = [
        Row(
            (),
            tuple(hosts),
            guilty,
            read=words is not None or guilty,
            said=words,
            said_at=_span(last[host].at for host in hosts if host in last),
        )
        for (guilty, words), hosts in groups.items()
    ]
    return tuple(sorted(rows, key=lambda row: (not row.culprit, row.said is None, len(row.hosts))))


def _recorded(event: NodeEvent | None) -> str | None:
    if event is None:
        return None
    return "+".join(event.states) + (f": {event.reason}" if event.reason else "")
