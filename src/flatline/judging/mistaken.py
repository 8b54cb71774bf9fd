"""
A node that Ray gave up while it was at work, by what its own raylet wrote, or its workers.

A raylet that finds itself given up says so and leaves; so does one whose host stood still for a
minute.  What it wrote between, by its own clock, tells the two apart, and where that is little
what the node's GPUs drew, never surely.  Steps that a log named after the node dates behind the
moment at which it was given up leave no doubt.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from math import isfinite
from statistics import median

from flatline.facts import LOG, Facts, FileRead
from flatline.judging.claims import claim
from flatline.judging.kept_power import kept_working
from flatline.judging.named_logs import host_of_log
from flatline.logs.clock import Clock
from flatline.model import Claim, LogCite, Match, Place
from flatline.rank_hosts import named_after

TAG, GIVEN_UP, BY_HEAD = "ray-mistaken", "ray-node-lost", "ray-given-up-at"
WINDOW_S = 30.0
"""`num_heartbeats_timeout` of 300 in tenths of a second (Ray 1.x); five health checks three
seconds apart, of ten seconds at most each (Ray 2.x, ray_config_def.h)."""
OFF_S = 30.0
"""Ranks print a step within seconds of one another.  A judgement."""
STEPS = 4
"""Steps behind it, more than are under way when a process dies."""
BACK, LEAST = 400, 2
"""Lines looked at above its leave, and those that show that it was at work."""
BELOW = 40
"""Lines below one that bears no time in which the next that does is looked for."""
_NODE_NAME = re.compile(r"\bnode name: ([\w.-]{1,120}?)\.? has been marked dead\b")
_LABEL = re.compile(r"\(\w{1,80} pid=\d{1,9}, ip=([\w.:-]{1,64})\)")
THROUGHOUT = 0.5
"""Of the window: a host that stood still and woke makes short steps at its end alone."""
TOGETHER_S, UNDER_WAY = 5.0, 2.0
"""By which workers date one step apart, and step times that the last lies back: what had begun
when a node went still completes."""
GAPS, LATE_S = 8, 10.0
"""Steps that tell how long one takes, and by how much one is late at most: a third of the window,
for which a host stood still that was given up for it."""
_STEP = re.compile(r"(?i)\b(?:global_?step|step|iter(?:ation)?)\b[\s:=#]{1,3}(\d{1,12})\b")
_MEASURED = re.compile(r"\d{1,4}(?:[-:]\d{1,2}){2}(?:[.,]\d{1,9})?|\d+[.,]\d+")
"""Dates, times and numbers with a fraction."""
_UNANSWERED = re.compile(
    r"Health check failed for node ([0-9a-f]{16,64}), remaining checks (\d{1,4})\b"
)
_STAMP = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d{3} \w ")


@dataclass(frozen=True, slots=True)
class Mistaken:
    """The line a raylet left with, what it wrote in the time in which it was not heard, and the
    lines by which its node was given up."""

    left: Match
    wrote: Claim
    given_up: tuple[Match, ...]
    host: str | None = None
    """The node whose workers made steps behind it."""
    slack: bool = False
    """Whether no more shows it than that none of its lines was late: it may have waited before."""

    @property
    def places(self) -> tuple[Place, ...]:
        """The node, where it is named."""
        if self.host is not None:
            return (Place(host=self.host),)
        hosts = {m.groups["host"] for m in self.given_up if m.groups.get("host")}
        if len(hosts) == 1:
            return (Place(host=hosts.pop()),)
        return (self.left.cite.place,) if self.left.cite.place else ()


@dataclass(frozen=True, slots=True)
class _Step:
    """A step that a worker dates."""

    host: str
    step: int
    at: float
    cite: LogCite


def mistaken(facts: Facts) -> Mistaken | None:
    """The first node that was given up while its raylet was at work."""
    for left in facts.standing(TAG):
        wrote = _wrote(facts, left.cite)
        if len(wrote) >= LEAST:
            text = "The raylet of the node wrote lines of its own inside the window"
            shown = claim(text, wrote[0], wrote[-1])
            return Mistaken(left, shown, facts.standing(GIVEN_UP))
        if (stepped := _left_at_work(facts, left)) is not None:
            return stepped
    lost = [m for m in facts.tagged(GIVEN_UP) if m.attempt == facts.last.n]
    looks = (_stepped_on, _kept_step, _not_late)
    found = (look(facts, match) for look in looks for match in lost)
    return next(filter(None, found), None)


def _stepped_on(facts: Facts, match: Match) -> Mistaken | None:
    """By the steps of a log that is named after the node."""
    named = _NODE_NAME.search(facts.text(match.cite.source, match.cite.line))
    since = _given_up_by(facts, match)
    if named is None or since is None or named[1] == match.groups.get("host"):
        return None
    return _went_on(facts, match, facts.node_of(named[1]), since)


def _left_at_work(facts: Facts, left: Match) -> Mistaken | None:
    """The same of a raylet that leaves: its node was given up before."""
    host = left.cite.place.host or host_of_log(facts, left.cite.source)
    since = _given_up_by(facts, left)
    if host is None or since is None:
        return None
    head = _told_by_head(facts, since)
    since = head.cite.at.timestamp() if head and head.cite.at else since
    node = facts.node_of(host)
    looks = (_went_on, _spoke_on, _in_time)
    found = next(filter(None, (look(facts, left, node, since) for look in looks)), None)
    if found is None:
        found = _drew_power(facts, left, node, since, max(WINDOW_S, _unanswered_s(facts, head)))
    return replace(found, given_up=(head, *found.given_up)) if found and head else found


def _spoke_on(facts: Facts, left: Match, host: str, since: float) -> Mistaken | None:
    """The same by what its workers wrote throughout the window, of whatever: a host that stood
    still for it wrote nothing, and its raylet was heard again to be told so."""
    for read in facts.log_files(LOG):
        if read.source == left.cite.source or not _of_host(facts, read, host):
            continue
        clock, first = Clock(), max(1, read.lines - BACK + 1)
        stamps = (clock.either(text, text) for text in facts.lines(read.source, first, BACK))
        told = [(n, stamp.at.timestamp()) for n, stamp in enumerate(stamps, first) if stamp]
        told = [(n, at) for n, at in told if since - WINDOW_S <= at <= since]
        times = [at for _, at in told]
        if not _up_to(since, times) or max(times) - min(times) < THROUGHOUT * WINDOW_S:
            continue
        if max(b - a for a, b in pairwise(sorted(times))) > WINDOW_S / 3:
            continue
        cites = (LogCite(read.source, n, facts.text(read.source, n), read.place)
                 for n in (told[0][0], told[-1][0]))  # fmt: skip
        text = f"A log of {host} was written to all through the {WINDOW_S:.0f} s before that"
        return Mistaken(left, claim(text, *cites), (left,), host)
    return None


def _in_time(facts: Facts, left: Match, host: str, since: float) -> Mistaken | None:
    """The same by what its workers write at each step, where few lines of the window tell: each
    came behind the one before it as it does in other steps, up to then.  A host that had stood
    still for the window would have been late with one of them."""
    for read in facts.log_files(LOG):
        told = _written(facts, read, since) if _of_host(facts, read, host) else []
        gaps = [(b[1], b[2], b[1] - a[1]) for a, b in pairwise(told)]
        inside = [one for one in told if one[1] > since - WINDOW_S]
        if len(inside) < LEAST or since - inside[-1][1] > LATE_S:
            continue
        usual = {what: [gap for at, said, gap in gaps if said == what and at <= since - WINDOW_S]
                 for *_, what in inside}  # fmt: skip
        if min(map(len, usual.values())) < GAPS:
            continue
        took = {what: median(before) for what, before in usual.items()}
        late = any(gap > took[what] + LATE_S for at, what, gap in gaps if at > since - WINDOW_S)
        if late or max(took.values()) < WINDOW_S:  # else there would be more of them
            continue
        cites = (LogCite(read.source, n, facts.text(read.source, n), read.place)
                 for n, *_ in (inside[0], inside[-1]))  # fmt: skip
        text = (f"Workers on {host} wrote {len(inside)} lines in the {WINDOW_S:.0f} s before that,"
                " none later behind the one before it than at other steps")  # fmt: skip
        return Mistaken(left, claim(text, *cites), (left,), host, slack=True)
    return None


def _drew_power(
    facts: Facts, left: Match, host: str, since: float, window_s: float
) -> Mistaken | None:
    """The same by what its GPUs drew up to then, where its workers write nothing.  Readings lie up
    to a window apart: each half of the two windows before has one."""
    shown = kept_working(facts, since, 2 * window_s, [host])
    return None if shown is None else Mistaken(left, shown, (left,), host, slack=True)


def _written(facts: Facts, read: FileRead, since: float) -> list[tuple[int, float, str]]:
    """The dated lines of a log's end up to a moment that tell of a step, with what they say but
    for which step it is and for what was measured; none of Ray's own."""
    clock, first = Clock(), max(1, read.lines - BACK + 1)
    found = []
    for n, text in enumerate(facts.lines(read.source, first, BACK), first):
        stamp, step = clock.either(text, text), _STEP.search(text)
        if stamp is not None and step is not None and "(raylet)" not in text:
            said = _MEASURED.sub("~", f"{text[: step.start(1)]}#{text[step.end(1) :]}")
            found.append((n, stamp.at.timestamp(), said))
    return [one for one in found if one[1] <= since]


def _of_host(facts: Facts, read: FileRead, host: str) -> bool:
    return named_after(read.source, [host]) is not None or host_of_log(facts, read.source) == host


def _went_on(facts: Facts, match: Match, host: str, since: float) -> Mistaken | None:
    """Steps of the node behind the moment by which it was given up, or those of the window before
    it, up to then: a node that was gone made none of either."""
    for read in facts.log_files(LOG):
        if read.source == match.cite.source or not _of_host(facts, read, host):
            continue
        made = steps_since(facts, read, since - WINDOW_S)
        told = {step: one for step, one in made.items() if one[0] > since}
        text = f"Workers on {host} made {len(told)} steps more behind that"
        if len(told) < STEPS:
            told = {step: one for step, one in made.items() if one[0] <= since}
            times = [at for at, _ in told.values()]
            if not _up_to(since, times) or max(times) - min(times) < THROUGHOUT * WINDOW_S:
                continue
            text = (f"Workers on {host} made {len(told)} steps in the {WINDOW_S:.0f} s before"
                    " that, and went on up to it")  # fmt: skip
        lines = sorted(line for _, line in told.values())
        cites = (LogCite(read.source, line, facts.text(read.source, line), read.place)
                 for line in (lines[0], lines[-1]))  # fmt: skip
        return Mistaken(match, claim(text, *cites), (match,), host)
    return None


def _up_to(since: float, times: list[float]) -> bool:
    """Whether steps go on up to a moment: what had begun when a node went still completes."""
    if len(times) < STEPS:
        return False
    each_s = (max(times) - min(times)) / (len(times) - 1)
    return since - max(times) <= min(max(UNDER_WAY * each_s, TOGETHER_S), WINDOW_S / 3)


def _kept_step(facts: Facts, match: Match) -> Mistaken | None:
    """By the steps that its workers, which Ray labels with their node, date in the window, up to
    the last that any worker made: a node that was gone makes none in it."""
    host, since = match.groups.get("host"), _given_up_by(facts, match)
    if not host or since is None:
        return None
    own, others = _labelled(facts, match.cite, host, since)
    shared = [at - others[step] for step, (at, _) in own.items() if step in others]
    if len(own) < STEPS or len(shared) < STEPS or max(map(abs, shared)) > TOGETHER_S:
        return None
    last = max(own)
    if last < max(others) or not _up_to(since, [at for at, _ in own.values()]):
        return None
    text = (f"Workers on {host} made {len(own)} steps in the last {WINDOW_S:.0f} s before that, in"
            " step with the others")  # fmt: skip
    cites = (own[min(own)][1], own[last][1])
    return Mistaken(match, claim(text, *cites), (match,), facts.node_of(host))


def _not_late(facts: Facts, match: Match) -> Mistaken | None:
    """By the step behind it of a worker that Ray labels with its node, where its raylet lived to
    say so: a host that had stood still for the window would have been late with it by as much."""
    host, since = match.groups.get("host"), _given_up_by(facts, match)
    if not host or since is None or not facts.standing(TAG):
        return None
    made = sorted(_of_workers(facts, match.cite, BELOW), key=lambda one: one.at)
    behind = next((n for n, one in enumerate(made) if one.host == host and one.at > since), None)
    if behind is None:
        return _just_made(facts, match, [one for one in made if one.at <= since], since)
    gaps = [b.at - a.at for a, b in pairwise(made[: behind + 1]) if b.step > a.step]
    if len(gaps) < GAPS:
        return None
    usual, inside = median(gaps), [one.at for one in made if one.at <= since - WINDOW_S][-1:]
    spans = [*inside, *(one.at for one in made[: behind + 1] if one.at > since - WINDOW_S)]
    if not inside or max(b - a for a, b in pairwise(spans)) > usual + min(usual / 4, LATE_S):
        return None
    text = f"A worker on {host} made a step behind that, no later than steps are made"
    return Mistaken(match, claim(text, made[behind].cite), (match,), facts.node_of(host))


def _just_made(facts: Facts, match: Match, made: list[_Step], since: float) -> Mistaken | None:
    """By its steps of the window where few fall into that, none late: a host that stood still for
    the rest did so for less than half of it, which nobody is given up for."""
    host = match.groups["host"]
    own = [one for one in made if one.host == host]
    gaps = [b.at - a.at for a, b in pairwise(own)]
    late = [gap for gap, one in zip(gaps, own[1:], strict=True) if one.at > since - WINDOW_S]
    others = {one.step: one.at for one in made if one.host != host}
    if len(gaps) < GAPS or not late or own[-1].step < max(others, default=own[-1].step + 1):
        return None
    if abs(others.get(own[-1].step, since) - own[-1].at) > TOGETHER_S:
        return None
    usual = median(gaps)
    slack = min(usual / 4, LATE_S)
    if max(late) > usual + slack or since - own[-1].at > min(usual + slack, WINDOW_S / 2):
        return None
    text = (
        f"A worker on {host} made its steps in their time, up to {since - own[-1].at:.0f} s before"
    )
    return Mistaken(match, claim(text, own[-1].cite), (match,), facts.node_of(host))


def _labelled(
    facts: Facts, given_up: LogCite, host: str, since: float
) -> tuple[dict[int, tuple[float, LogCite]], dict[int, float]]:
    """When its workers made each step of the window, and when the others did."""
    made = [one for one in _of_workers(facts, given_up) if since - WINDOW_S <= one.at <= since]
    own = {one.step: (one.at, one.cite) for one in made if one.host == host}
    return own, {one.step: one.at for one in made if one.host != host}


def _of_workers(facts: Facts, given_up: LogCite, below: int = 0) -> list[_Step]:
    """Steps that workers date whom Ray labels with their node, above a line and so far below."""
    clock, first = Clock(), max(1, given_up.line - BACK)
    found = []
    lines = facts.lines(given_up.source, first, given_up.line - first + below)
    for number, text in enumerate(lines, first):
        label = _LABEL.search(text)
        said = text[label.start() :] if label else ""
        stamp, step = (clock.either(said, said), _STEP.search(said)) if label else (None, None)
        if label is not None and stamp is not None and step is not None:
            cite = LogCite(given_up.source, number, text)
            found.append(_Step(label[1], int(step[1]), stamp.at.timestamp(), cite))
    return found


def steps_since(facts: Facts, read: FileRead, since: float) -> dict[int, tuple[float, int]]:
    """When each step was first dated that a log dates behind a moment, and on which line, looked
    for at its end; none where its clock differs from that of others which date the same steps."""
    clock, first = Clock(), max(1, read.lines - BACK + 1)
    found: dict[int, tuple[float, int]] = {}
    others = {track.steps[i]: track.at[i] for track in facts.tracks if track.source != read.source
              for i in track.of_attempt(facts.last.n) if isfinite(track.at[i])}  # fmt: skip
    apart: list[float] = []
    for number, text in enumerate(facts.lines(read.source, first, BACK), first):
        stamp, step = clock.either(text, text), _STEP.search(text)
        if stamp is None or step is None:
            continue
        made = stamp.at.timestamp()
        if (at := others.get(int(step[1]))) is not None:
            apart.append(abs(made - at))
        if made > since:
            found.setdefault(int(step[1]), (made, number))
    return found if median(apart or [0.0]) <= OFF_S else {}


def _given_up_by(facts: Facts, match: Match) -> float | None:
    """By when at the latest: its own time, or that of the next step or dated line in its log
    (POSIX seconds)."""
    source, line = match.cite.source, match.cite.line
    if match.cite.at is not None and not match.cite.at_assumed:
        return match.cite.at.timestamp()
    later = [track.at[i] for track in facts.tracks if track.source == source
             for i in track.of_attempt(facts.last.n)
             if track.lines[i] > line and isfinite(track.at[i])]  # fmt: skip
    clock = Clock()
    stamps = (clock.either(text, text) for text in facts.lines(source, line + 1, BELOW))
    later += [stamp.at.timestamp() for stamp in stamps if stamp is not None][:1]
    return min(later, default=None)


def _told_by_head(facts: Facts, until: float) -> Match | None:
    """The line in the head's own log by which it had given up the one node that it did."""
    told = [m for m in facts.tagged(BY_HEAD) if m.attempt == facts.last.n]
    if len({m.groups["key"] for m in told}) != 1:
        return None
    first = told[0]
    dated = first.cite.at is not None and not first.cite.at_assumed
    return first if dated and first.cite.at and first.cite.at.timestamp() <= until else None


def _unanswered_s(facts: Facts, head: Match | None) -> float:
    """For how long no check of the node was answered by the head's own log, which counts them
    down: of those whose timeouts were raised longer than the window."""
    if head is None:
        return 0.0
    first, left, began = max(1, head.cite.line - BACK), -1, _time(head.cite.text)
    given_up = began
    for text in reversed(facts.lines(head.cite.source, first, head.cite.line - first)):
        found = _UNANSWERED.search(text)
        if found is None or found[1] != head.groups["key"]:
            continue
        if int(found[2]) <= left:
            break  # of an earlier silence, which ended
        left, began = int(found[2]), _time(text) or began
    return (given_up - began).total_seconds() if given_up and began else 0.0


def _wrote(facts: Facts, leave: LogCite) -> list[LogCite]:
    """Its lines of the window before it left, oldest first."""
    end = _time(leave.text)
    if end is None:
        return []
    first = max(1, leave.line - BACK)
    found = []
    for number, text in enumerate(facts.lines(leave.source, first, leave.line - first), first):
        at = _time(text)
        if at is not None and timedelta() <= end - at <= timedelta(seconds=WINDOW_S):
            found.append(LogCite(leave.source, number, facts.text(leave.source, number),
                                 leave.place))  # fmt: skip
    return found


def _time(text: str) -> datetime | None:
    stamp = _STAMP.search(text)
    try:
        return datetime.fromisoformat(stamp[1]) if stamp else None
    except ValueError:
        return None
