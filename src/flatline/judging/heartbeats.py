"""
Who was declared dead for missed heartbeats, and who of them was at work all the while.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import isfinite
from statistics import median

from flatline.facts import LOG, Facts, Track
from flatline.judging.claims import claim, number
from flatline.judging.kept_power import kept_working
from flatline.judging.mistaken import steps_since
from flatline.judging.named_logs import host_of_log, known_hosts
from flatline.judging.pace import pace
from flatline.judging.waiting import accused
from flatline.model import Claim, LogCite, Match, Place
from flatline.rank_hosts import named_after

DEFAULT_TIMEOUT_S = 100.0
"""JAX's heartbeat timeout where the log states none (jax.distributed.initialize, 0.4 to 0.10)."""
SAID_BEHIND = 3
"""Lines: the accused stand on those behind the first, and then for how long they were silent."""
_SILENT = re.compile(
    r"\b(?:sent a heartbeat for|[Ll]ast heartbeat received|stopped sending heartbeats for)"
    r" (\d{1,6}) ?s\b"
)
_OF_THE_YEAR = re.compile(r"[IWEF](\d\d)(\d\d) (\d\d):(\d\d):(\d\d\.\d{1,6}) ")
"""How glog dates a line: by month and day, and no year."""
LOOKED_AT = 400
"""Steps before the end of a log; more than a window holds."""
_LAST_NUMBER = re.compile(r"(.*?)(\d{1,6})(\D*)")
LEAP = 2000
STEPS_BEHIND = 4
"""Steps that are dispatched ahead complete as well: two, at most, in JAX programs that print them.
A judgement: twice as many are none of those."""
STEPS_NEEDED = 2
"""One dated step in the window could be the last before the silence; two show work going on."""
UP_TO_THE_END_STEPS, UP_TO_THE_END_PART = 3.0, 0.5
"""The last step must lie within so many step times of the declaration, and so late a part of the
window, else it had stopped: what was under way when a process dies still completes."""
STEPS_ENOUGH = 4
"""Steps in the stated window of one whose log goes on behind it: what silenced its heartbeats did
not stop it, though its last step may lie some step times back."""
OFF_S = 30.0
"""By so much a log's clock may be off and still tell when a step was made: ranks print a step
within seconds of one another.  A judgement."""
TOGETHER_S = 5.0
"""By which tasks date one step apart that is shorter than that.  A judgement."""
SOON_PART = 0.5
"""Of the timeout: whoever died with the line that dates another is declared dead later."""


@dataclass(frozen=True, slots=True)
class Declared:
    """Lines that declare tasks dead, when that was, and what shows that a task was at work then:
    its `own` steps, by task, or for all of them what shows it less directly."""

    lines: tuple[Match, ...]
    tasks: tuple[int, ...]
    at: datetime | None
    own: dict[int, Claim]
    otherwise: Claim | None
    by_order: bool = False
    """Whether no more than the order of the log's lines shows it."""

    @property
    def at_work(self) -> set[int]:
        """The accused that were at work."""
        return set(self.tasks) if self.otherwise is not None else set(self.own)


def declared_dead(facts: Facts) -> Declared:
    """What was declared, and what speaks against it."""
    return facts.memo("heartbeats.declared", _read)


def _read(facts: Facts) -> Declared:
    lines = [m for m in facts.tagged("heartbeat") if accused(facts, m)]
    tasks = sorted({task for m in lines for task in accused(facts, m)})
    timeout_s = _timeout_s(facts)
    at = _declared(facts, lines, timeout_s)
    if at is None:
        undated = _without_a_year(facts, lines, tasks)
        return Declared(tuple(lines), tuple(tasks), None, undated, None)
    if _killed_for_memory(facts, tasks, lines, at, timeout_s):
        return Declared(tuple(lines), tuple(tasks), at, {}, None)
    stated = _stated_s(facts, lines) == timeout_s
    steps = {task: _steps(facts, task, at, timeout_s, stated=stated) for task in tasks}
    own = {task: shown for task, shown in steps.items() if shown is not None}
    otherwise = None
    if len(own) < len(tasks):
        otherwise = _with_all(facts, lines, tasks, at, timeout_s)
        if otherwise is None and not _had_stopped(facts, at, timeout_s):
            hosts = [facts.on_host(Place(task=task)).host or host_by_log(facts, task)
                     for task in tasks]  # fmt: skip
            last = max(m.cite.at for m in lines if m.cite.at).timestamp()
            otherwise = kept_working(facts, at.timestamp(), timeout_s, hosts, last)
    open_ = otherwise is None and len(own) < len(tasks) and not _lost(facts)
    behind = _behind(facts, lines) if open_ else None
    return Declared(tuple(lines), tuple(tasks), at, own, otherwise or behind, behind is not None)


def _killed_for_memory(
    facts: Facts, tasks: Sequence[int], lines: Sequence[Match], at: datetime, timeout_s: float
) -> bool:
    """Whether a kernel killed a process for memory on a host of the accused within the last two
    timeouts before they were declared dead, or the log says so above that."""
    hosts = {facts.on_host(Place(task=task)).host or host_by_log(facts, task) for task in tasks}
    first = min(lines, key=lambda match: match.cite.line).cite
    for match in facts.standing("oom-kill"):
        cite, host = match.cite, facts.on_host(match.cite.place).host
        if host is not None and hosts - {None} and host not in hosts:
            continue
        if cite.at is not None and not cite.at_assumed:
            if at - timedelta(seconds=2 * timeout_s) <= cite.at <= at:
                return True
        elif cite.source == first.source and cite.line < first.line:
            return True
    return False


def _without_a_year(
    facts: Facts, lines: Sequence[Match], tasks: Sequence[int]
) -> dict[int, Claim]:
    """Steps of the accused up to then, where all that dates the accusation and them is a month,
    a day and a time: how far apart they are needs no year."""
    told = [s for m in lines if (s := _of_the_year_s(m.cite.text)) is not None]
    if not told or any(m.cite.at is not None for m in lines):
        return {}
    at, window_s = min(told), _stated_s(facts, lines) or _timeout_s(facts)
    made = {track.source: _made_in_the_year(facts, track) for track in facts.tracks}
    own: dict[int, Claim] = {}
    for task in tasks:
        called = _numbered(facts, task)
        for track in facts.tracks:
            if number(track.place) != task and track.source not in called:
                continue
            steps = made[track.source]
            others = [o for source, o in made.items() if source != track.source]
            apart = [abs(steps[n][0] - o[n][0]) for o in others for n in steps if n in o]
            inside = sorted(i for s, i in steps.values() if at - window_s <= s <= at)
            last_s = max((s for s, _ in steps.values() if s <= at), default=0.0)
            made_in = track.steps[inside[-1]] - track.steps[inside[0]] + 1 if inside else 0
            if made_in < STEPS_ENOUGH or median(apart or [0.0]) > OFF_S:
                continue
            most_s = UP_TO_THE_END_STEPS * max(window_s / len(inside), 1.0)
            if at - last_s <= min(most_s, UP_TO_THE_END_PART * window_s):
                cites = (facts.point(track, inside[end]).cite for end in (0, -1))
                text = f"Task {task} made steps inside the window of that accusation"
                own[task] = claim(text, *cites)
    return own


def _made_in_the_year(facts: Facts, track: Track) -> dict[int, tuple[float, int]]:
    """When the last steps of a log were made, and which points of it they are."""
    points = track.of_attempt(facts.last.n)[-LOOKED_AT:]
    dated = ((i, _of_the_year_s(facts.text(track.source, track.lines[i]))) for i in points)
    return {track.steps[i]: (s, i) for i, s in dated if s is not None}


def _of_the_year_s(text: str) -> float | None:
    """Seconds of a year, a leap one, at which a line was written."""
    found = _OF_THE_YEAR.match(text)
    if found is None:
        return None
    month, day, hour, minute = (int(part) for part in found.groups()[:4])
    try:
        began = datetime(LEAP, month, day, hour, minute, tzinfo=UTC)
    except ValueError:
        return None
    return (began - datetime(LEAP, 1, 1, tzinfo=UTC)).total_seconds() + float(found[5])


def host_by_log(facts: Facts, task: int) -> str | None:
    """The host that its log is named after, or where the pod runs that it is named after."""
    logs = [track.source for track in facts.tracks if number(track.place) == task]
    return next(filter(None, (host_of_log(facts, log) for log in logs or _numbered(facts, task))),
                None)  # fmt: skip


def _numbered(facts: Facts, task: int) -> list[str]:
    """The log of that task by its name, of its host where it was alone there, or of its number
    where logs of one name are numbered from nought; none where one says itself which it is."""
    logs = {track.source for track in facts.tracks}
    if any(number(track.place) is not None for track in facts.tracks):
        return []
    own = re.compile(rf"(?i)(?<![a-z0-9])(?:task|proc(?:ess)?)[_-]?0*{task}(?![0-9])")
    if called := [log for log in logs if own.search(log)] or _of_its_host(facts, task, logs):
        return called
    named = {log: found for log in logs
             if (found := _LAST_NUMBER.fullmatch(_unhosted(facts, log))) is not None}  # fmt: skip
    stems = {(found[1], found[3]) for found in named.values()}
    numbers = {int(found[2]): log for log, found in named.items()}
    whole = len(stems) == 1 and len(named) == len(logs) and numbers.keys() == {*range(len(logs))}
    return [numbers[task]] if whole and task in numbers else []


def _of_its_host(facts: Facts, task: int, logs: set[str]) -> list[str]:
    """The one log of the host that a launcher says this task, and no other, was on."""
    on = {(facts.node_of(e.place.host), e.place.task) for e in facts.exits
          if e.place.host and e.place.task is not None}  # fmt: skip
    hosts = {host for host, number in on if number == task}
    if len(hosts) != 1 or len([one for one in on if one[0] in hosts]) > 1:
        return []
    found = [log for log in sorted(logs) if host_of_log(facts, log) in hosts]
    return found if len(found) == 1 else []


def _unhosted(facts: Facts, log: str) -> str:
    """Its name without the host that it is named after, which has numbers of its own."""
    host = named_after(log, known_hosts(facts))
    return log if host is None else log.replace(host, "", 1)


def _declared(facts: Facts, accusations: list[Match], timeout_s: float) -> datetime | None:
    """When it was declared.  A line without a time of its own has that of one before it, which may
    be a dying task's last step: it counts where the job's record ends soon after."""
    dated = [m.cite.at for m in accusations if m.cite.at and not m.cite.at_assumed]
    assumed = min((m.cite.at for m in accusations if m.cite.at), default=None)
    if dated:
        return min(dated)
    ended = None if facts.job is None else facts.job.ended_at
    if assumed is None or ended is None:
        return None
    return assumed if 0 <= (ended - assumed).total_seconds() <= SOON_PART * timeout_s else None


def _timeout_s(facts: Facts) -> float:
    stated = [
        m.groups["timeout_ms"] for m in facts.tagged("heartbeat") if "timeout_ms" in m.groups
    ]
    return float(stated[0]) / 1000 if stated and stated[0].isdecimal() else DEFAULT_TIMEOUT_S


def _stated_s(facts: Facts, lines: Sequence[Match]) -> float | None:
    """For how long no heartbeat came, where the coordinator says so on that line or behind it."""
    for match in lines[:1]:
        behind = facts.lines(match.cite.source, match.cite.line, 1 + SAID_BEHIND)
        for found in filter(None, map(_SILENT.search, behind)):
            return float(found[1])
    return None


def _steps(
    facts: Facts, task: int, declared: datetime, timeout_s: float, *, stated: bool
) -> Claim | None:
    """The accused's own steps between its last heartbeat and the declaration.  Where it is
    `stated` for how long none came, and its log goes on behind that, they need not go on to it."""
    called = _numbered(facts, task)
    for track in facts.tracks:
        seen = facts.last_seen.get(track.source)
        enough = STEPS_ENOUGH if stated and seen is not None and seen >= declared else 0
        own = number(track.place) == task or track.source in called
        made = made_until(facts, track, declared, timeout_s, enough) if own else None
        if made is not None and _off_s(facts, track) <= OFF_S:
            return claim(f"Task {task} made steps inside the window of that accusation", *made)
    own_logs = [track for track in facts.tracks
                if number(track.place) == task or track.source in called]  # fmt: skip
    if own_logs:
        return _same_steps(facts, task, own_logs, declared, timeout_s)
    return _in_step(facts, task, declared, timeout_s)


def _in_step(facts: Facts, task: int, declared: datetime, timeout_s: float) -> Claim | None:
    """That its log, in which no progress line was recognised, dates each step which another
    completed in that time, as that one does: it may print what it dispatches and no loss."""
    track = facts.main_track(facts.last.n)
    if track is None or made_until(facts, track, declared, timeout_s) is None:
        return None
    inside = _inside(track, declared - timedelta(seconds=timeout_s), declared)
    made = {track.steps[i]: track.at[i] for i in inside}
    for read in facts.log_files(LOG):
        if number(read.place) != task or read.source == track.source or len(made) < STEPS_ENOUGH:
            continue
        own = steps_since(facts, read, declared.timestamp() - timeout_s - OFF_S)
        each_s = (max(made.values()) - min(made.values())) / (len(made) - 1)
        if not made.keys() <= own.keys() or any(
            abs(own[step][0] - at) > max(each_s, TOGETHER_S) for step, at in made.items()
        ):
            continue
        cites = (LogCite(read.source, own[step][1], facts.text(read.source, own[step][1]),
                         read.place) for step in (min(made), max(made)))  # fmt: skip
        text = (f"Task {task} dates steps {min(made)} to {max(made)}, made inside the window of"
                " that accusation, as the others do")  # fmt: skip
        return claim(text, *cites)
    return None


def _off_s(facts: Facts, own: Track) -> float:
    """By how many seconds its clock differs from that of the first other log that dates the same
    steps; 0 where none does."""
    mine = {own.steps[i]: own.at[i] for i in own.of_attempt(facts.last.n) if isfinite(own.at[i])}
    for track in facts.tracks:
        if track is own or track.source == own.source:
            continue
        apart = [abs(mine[step] - at) for i in track.of_attempt(facts.last.n)
                 if (step := track.steps[i]) in mine and isfinite(at := track.at[i])]  # fmt: skip
        if apart:
            return median(apart)
    return 0.0


def _same_steps(
    facts: Facts, task: int, own: Sequence[Track], declared: datetime, timeout_s: float
) -> Claim | None:
    """That it printed the steps which others made in that time: its own clock may be off."""
    for other in facts.tracks if own else ():
        made = (
            made_until(facts, other, declared, timeout_s)
            if not any(other is one for one in own)
            else None
        )
        if made is None:
            continue
        inside = _inside(other, declared - timedelta(seconds=timeout_s), declared)
        wanted = [other.steps[inside[at]] for at in (0, -1)]
        for track in own:
            at = {track.steps[i]: i for i in track.of_attempt(facts.last.n)}
            if all(step in at for step in wanted):
                mine = (facts.point(track, at[step]).cite for step in wanted)
                text = (f"Task {task} made steps {wanted[0]} to {wanted[1]} as well, which others"
                        " date inside the window of that accusation")  # fmt: skip
                return claim(text, *made, *mine)
    return None


def _lost(facts: Facts) -> bool:
    """Whether anything read says that a process or a node was lost: it may be the accused."""
    down = facts.disposition == "node_fail" or any(event.reason for event in facts.node_events)
    killed = any(event.signal for event in facts.exits)
    told = any(facts.tagged(tag) for tag in ("oom-kill", "node-failure", "process-gone"))
    return down or killed or told


def _behind(facts: Facts, accusations: list[Match]) -> Claim | None:
    """Steps that the coordinator's own log has behind its first word on it: none that was under
    way as a task died, but so many."""
    for line in accusations[:1]:
        for track in facts.tracks:
            span = track.of_attempt(line.attempt) if track.source == line.cite.source else ()
            behind = [i for i in span if track.lines[i] > line.cite.line]
            made = {track.steps[i] for i in behind}
            if len(made) >= STEPS_BEHIND:
                cites = (facts.point(track, behind[at]).cite for at in (0, -1))
                return claim(f"{len(made)} more steps, which complete only with every task, stand"
                             " behind that line", line.cite, *cites)  # fmt: skip
    return None


def _with_all(
    facts: Facts,
    accusations: list[Match],
    accused: list[int],
    declared: datetime,
    timeout_s: float,
) -> Claim | None:
    """Steps of another task then, where the accused lived to report the accusation themselves: a
    step completes only with every task."""
    reported = {number(m.cite.place) for m in accusations}
    track = facts.main_track(facts.last.n)
    if track is None or not set(accused) <= reported:
        return None
    made = made_until(facts, track, declared, timeout_s)
    text = "Steps, which complete only with every task, went on inside that window"
    return None if made is None else claim(text, *made)


def made_until(
    facts: Facts, track: Track, declared: datetime, timeout_s: float, enough: int = 0
) -> tuple[LogCite, ...] | None:
    """First and last dated step in the window; None where there are too few or where they stop
    well before the declaration: by half of the window or, unless there are `enough` (0: however
    many), by some step times."""
    inside = _inside(track, declared - timedelta(seconds=timeout_s), declared)
    if len(inside) < STEPS_NEEDED:
        return None
    first, last = facts.point(track, inside[0]).cite, facts.point(track, inside[-1]).cite
    if first.at is None or last.at is None:
        return None
    step_s = (last.at - first.at).total_seconds() / (len(inside) - 1)
    most_s = UP_TO_THE_END_PART * timeout_s
    if not enough or len(inside) < enough:
        most_s = min(UP_TO_THE_END_STEPS * max(step_s, 1.0), most_s)
    return (first, last) if (declared - last.at).total_seconds() <= most_s else None


def _had_stopped(facts: Facts, declared: datetime, timeout_s: float) -> bool:
    """Whether dated progress ends before the window: a hang came first."""
    seen = pace(facts)
    if seen is None:
        return False
    quiet_s = (declared - seen.at).total_seconds()
    return quiet_s > max(timeout_s, UP_TO_THE_END_STEPS * (seen.interval_s or 0.0), seen.pauses_s)


def _inside(track: Track, start: datetime, end: datetime) -> list[int]:
    times = ((i, track.time(i)) for i in range(len(track)))
    return [i for i, at in times if at is not None and start <= at <= end]
