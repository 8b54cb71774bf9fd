"""
Which GPUs were not in the collective that the others waited in: those that put their work down,
and one that computes on.

A GPU that waits in a collective runs the kernel that waits and draws far more than an idle one,
whatever its utilisation reads.  One whose process hangs on the host, or is gone, falls to what an
idle card draws.  Levels differ by card and by cluster, so they are taken from the run itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import isfinite
from statistics import median

from flatline.facts import Facts
from flatline.judging.claims import claim
from flatline.judging.gpus import whole_hosts
from flatline.judging.last_printed import heard
from flatline.judging.timeline import ByHost, by_host, instant, usual
from flatline.model import Claim, Place, QueryCite
from flatline.series.answer import Answer, by_exporter

POWER, BUSY, SMS = "gpu_power_watts", "gpu_utilization_ratio", "gpu_sm_active_ratio"
ENGINE = "gpu_engine_active_ratio"
SETTLE_S, LEAST_S = 60, 120
"""After the last step the waiting builds up; a shorter wait is two or three samples."""
MOST_S = 3600
IDLE_PART, APART_PART = 0.75, 0.85
"""Of the median GPU's power then, and of the lowest of the others.  A judgement, tried on
generated clusters: no report was found that gives an idle and a waiting level of one card."""
NO_KERNEL, NEARLY_ALL = 0.2, 0.4
"""The same of the time with a kernel running: what waits in a collective runs one all the time."""
NOUGHT = 0.05
"""A context that is made, and some exporters' rounding."""
WORKED_PART = 0.8
"""Of the median GPU's power before: it had worked like the others."""
AT_WORK_PART, FELL_PART = 0.85, 0.7
"""Of a GPU's own power before: one that computes on, and the others.  Cards that wait draw less
than 0.8 of it (`spinning`); a tenth is left for a noisy one."""
FEW_SMS_PART = 0.5
"""Of the SMs that the others kept busy before: the kernel that waits takes a few of them (one for
each of NCCL's channels, 32 at most of 132), and one that computes on as many as ever, whatever
power it draws."""
SAID = {POWER: ("drew", "{:.0f} W"), BUSY: ("ran a kernel", "{:.0%} of it"),
        ENGINE: ("kept its engine busy", "{:.0%} of it"),
        SMS: ("kept busy", "{:.0%} of its SMs")}  # fmt: skip
MOST_OF_ALL = 4
"""At most one GPU in so many: where half of them are idle, who waits for whom is not told."""
FIRST, FOR_ALL_MOST = "0", 0.79
"""Rank 0 evaluates, generates or writes while the others wait for it, in a run that is sound."""
RESTING_PART, WAITING_PART = 1.05, 1.1
"""Of a GPU's own power while no run held it: as idle as then, and surely not.  A judgement."""
BELOW_PART, ALIKE_PART = 0.95, 1.1
"""Of the least that another drew in the wait; of what the median GPU drew outside of the run."""
RESTED = "it drew no more than while no run held it, and each of the others did"
WAITED = "what waits in a collective runs its kernel and keeps its power up"
COMPUTED = "it computed on, and what waits in a collective draws less than what computes"
KEPT_SMS = "it computed on, and what waits in a collective keeps few SMs busy"

PROCS, ASLEEP_MOST = "host_procs_blocked", 0.79
BLOCKED, TIMES = 1.0, 3.0
"""Tasks in uninterruptible sleep: one all the time, three times the others' (`judging.blocked`);
and just short of confident."""
IO = (("host_io_pressure_seconds_total", "rate({}[{}s])"),
      ("host_io_pressure_ratio", "avg_over_time({}[{}s])"))  # fmt: skip
MEMORY = "rate(host_memory_pressure_seconds_total[{}s])"
PRESSED = 0.5
"""Of the time in which some task waited for storage: what a core dump, or a log, takes is shorter.
Where tasks wait for memory half as long they may wait for pages that were swapped out."""


@dataclass(frozen=True, slots=True)
class Idle:
    """Places that put their work down, or computed on, while the others waited."""

    places: tuple[Place, ...]
    why: Claim
    most: float = 1.0
    """How sure what rests on it may be: tasks of that host that cannot be woken wait for something
    that is no collective."""
    storage: Claim | None = None
    """That the something is storage, as the kernel of that one host counts its waits."""


def none_worked(facts: Facts, since: datetime, until: datetime) -> QueryCite | None:
    """The highest part of the time in which any GPU ran a kernel then, where that is nought."""
    length_s = int((until - since).total_seconds()) - SETTLE_S
    if length_s < LEAST_S or not facts.measured(BUSY):
        return None
    query = f"max_over_time({BUSY}[{length_s}s])"
    most = usual(facts, query, until.timestamp(), "highest use of any GPU", "max({})")
    return most if most is not None and most.value <= NOUGHT else None


def idle(facts: Facts, until: float | None, since: float | None = None) -> Idle | None:
    """GPUs far below the others' power from the last step on (or from `since`), until POSIX
    seconds; None where none stands apart, or nothing dates the last step or measures power."""
    held = _stood_still(facts, until, since)
    for signal, low, rest in (
        (POWER, IDLE_PART, APART_PART),
        (BUSY, NO_KERNEL, NEARLY_ALL),
        (ENGINE, NO_KERNEL, NEARLY_ALL),
    ):
        read = None if held is None else held.means(facts, signal)
        if held is None or read is None:
            continue
        now = read[0]
        levels = [_values(one) for one in read]
        for exporter, alike in by_exporter({row.place: row for row in now.rows}).items():
            level, work = ({p: one[p] for p in alike if p in one} for one in levels)
            places = _apart(level, work, low, rest)
            if places:
                asked = signal, held.length_s, held.ends
                return _told(facts, now, places, asked, exporter=exporter)
    return None if held is None else _at_rest(facts, held)


def _at_rest(facts: Facts, held: _Held) -> Idle | None:
    """GPUs that drew no more than while no run held them, and each other one drew more than that:
    there are cards that draw little more waiting than idle."""
    read, drew = held.means(facts, POWER), _resting(facts)
    if read is None:
        return None
    now, work = map(_values, read)
    resting = {place: cite.value for place, cite in drew.items()}
    part = {place: now[place] / rest for place, rest in resting.items() if rest and place in now}
    if len(part) < max(MOST_OF_ALL, len(now)):
        return None
    usual_rest, worked = median(resting.values()), median(work.values())
    low = [p for p, value in part.items() if value <= RESTING_PART and p in work]
    others = [p for p in part if p not in low]
    if (
        not low
        or len(low) > len(now) // MOST_OF_ALL
        or min(part[p] for p in others) < WAITING_PART
    ):
        return None
    # what idles draws less than what waits, and as others idle: no other job held it meanwhile
    if max(now[p] for p in low) > BELOW_PART * min(now[p] for p in others) or any(
        work[p] < WORKED_PART * worked or resting[p] > ALIKE_PART * usual_rest for p in low
    ):
        return None
    low.sort(key=lambda place: now[place])
    found = _told(facts, read[0], low, (POWER, held.length_s, held.ends), RESTED)
    if found is None:
        return None
    nearest = min(others, key=lambda place: part[place])
    outside = ", ".join(f"{place} {resting[place]:.0f} W" for place in (low[0], nearest))
    text = f"{found.why.text}; outside of the run {outside}"
    return replace(found, why=claim(text, *found.why.cites, drew[low[0]], drew[nearest]))


def _resting(facts: Facts) -> dict[Place, QueryCite]:
    """The least that each GPU drew just before the run and just after it."""
    if facts.window is None:
        return {}
    first, last = (moment.timestamp() for moment in facts.window)
    told = max((at.timestamp() for at in heard(facts).values()), default=last)
    ended = facts.last.ended_at.timestamp() if facts.last.ended_at is not None else told
    least: dict[Place, QueryCite] = {}
    for moment in (first, ended + SETTLE_S + LEAST_S):
        answer = instant(facts, _mean(POWER, LEAST_S), float(int(moment)))
        for row in () if answer is None else answer.rows:
            if len(row) and isfinite(row.last) and answer is not None:
                cite = answer.cite(row, f"mean of {row.place}, outside of the run")
                least[row.place] = min(cite, least.get(row.place, cite), key=lambda c: c.value)
    return least


def fell(facts: Facts) -> bool:
    """Whether the median GPU drew less from the last step on than what works draws."""
    held = _stood_still(facts, None, None)
    read = None if held is None else held.means(facts, POWER)
    now, before = ({}, {}) if read is None else map(_values, read)
    return bool(now and before) and median(now.values()) < WORKED_PART * median(before.values())


def computing(facts: Facts, until: float | None, since: float | None = None) -> Idle | None:
    """The one GPU that drew on what it had drawn at work, or kept as many SMs busy, while the
    others fell to what waiting takes, from the last step on (or from `since`), until POSIX
    seconds; None where there is none or there are more."""
    held = _stood_still(facts, until, since)
    for signal, fell, means in ((POWER, FELL_PART, COMPUTED), (SMS, FEW_SMS_PART, KEPT_SMS)):
        read = None if held is None else held.means(facts, signal)
        if held is None or read is None:
            continue
        now, before = map(_values, read)
        place = _kept_on(now, before, fell)
        if place is not None and not _at_work_before(facts, signal, place, before):
            return _told(facts, read[0], (place,), (signal, held.length_s, held.ends), means)
    return None


def _kept_on(
    now: Mapping[Place, float], before: Mapping[Place, float], fell: float
) -> Place | None:
    """The one place that stayed about where it was, above all others, which fell."""
    part = {place: now[place] / before[place] for place in now if before.get(place)}
    if len(part) < MOST_OF_ALL:
        return None
    first, second = sorted(part, key=lambda place: -part[place])[:2]
    stayed = part[first] >= AT_WORK_PART and part[second] <= fell
    highest = now[first] > max(value for place, value in now.items() if place != first)
    return first if stayed and highest else None


def _at_work_before(facts: Facts, signal: str, place: Place, work: Mapping[Place, float]) -> bool:
    """Whether a GPU worked while the others' program still loaded: another job's does."""
    if facts.window is None:
        return False
    began = max(filter(None, (facts.window[0], facts.last.started_at))).timestamp()
    answer = instant(facts, _mean(signal, LEAST_S), began + LEAST_S)
    first = {} if answer is None else _values(answer)
    part = {each: first[each] / work[each] for each in first if work.get(each)}
    others = [value for each, value in part.items() if each != place]
    return part.get(place, 0.0) >= AT_WORK_PART and bool(others) and median(others) <= FELL_PART


def apart(facts: Facts, until: float | None, since: float | None = None) -> Idle | None:
    """What was not in a collective that no rank reported: GPUs that fell idle, else one that
    computed on.  The first of a host may do so on behalf of all."""
    found = idle(facts, until, since)
    if found is not None:
        return found
    alone = computing(facts, until, since)
    if alone is None or alone.places[0].gpu != FIRST:
        return alone
    return replace(alone, most=FOR_ALL_MOST)


@dataclass(frozen=True, slots=True)
class _Held:
    """The time the run stood still, and as long a time of work before it or what there was."""

    length_s: int
    ends: int
    before_s: int
    worked_until: int

    def means(self, facts: Facts, signal: str) -> tuple[Answer, Answer] | None:
        """A signal's mean of every GPU then, and before."""
        if not facts.measured(signal):
            return None
        now = instant(facts, _mean(signal, self.length_s), self.ends)
        before = instant(facts, _mean(signal, self.before_s), self.worked_until)
        return None if now is None or before is None else (now, before)


def _stood_still(facts: Facts, until: float | None, since: float | None) -> _Held | None:
    track = facts.main_track(facts.last.n)
    if track is None or facts.window is None:
        return None
    dated = [track.at[i] for i in track.of_attempt(facts.last.n) if isfinite(track.at[i])]
    if since is not None:
        dated = [facts.window[0].timestamp(), since]
    if not dated:
        return None
    begins = dated[-1] + SETTLE_S
    ends = min(until or facts.window[1].timestamp(), facts.window[1].timestamp(), begins + MOST_S)
    length_s = int(ends - begins)
    before_s = int(min(length_s, dated[-1] - dated[0]))
    if length_s < LEAST_S or before_s < LEAST_S:
        return None
    return _Held(length_s, int(ends), before_s, int(dated[-1]))


def _mean(signal: str, length_s: int) -> str:
    return f"avg_over_time({signal}[{length_s}s])"


def _values(answer: Answer) -> dict[Place, float]:
    return {row.place: row.last for row in answer.rows if len(row) and isfinite(row.last)}


def _apart(
    now: Mapping[Place, float], before: Mapping[Place, float], part: float, most: float
) -> tuple[Place, ...]:
    both = [place for place in now if place in before]
    if len(both) < MOST_OF_ALL:
        return ()
    level, worked = median(now.values()), median(before.values())
    low = [
        place
        for place in both
        if now[place] <= part * level and before[place] >= WORKED_PART * worked
    ]
    rest = [now[place] for place in now.keys() - set(low)]
    if not low or len(low) > max(1, len(now) // MOST_OF_ALL):
        return ()
    if max(now[place] for place in low) > most * min(rest):
        return ()
    return tuple(sorted(low, key=lambda place: now[place]))


def _told(
    facts: Facts,
    now: Answer,
    places: Sequence[Place],
    asked: tuple[str, int, int],
    means: str = WAITED,
    exporter: str | None = None,
) -> Idle | None:
    signal, length_s, ends = asked
    rows = {row.place: row for row in now.rows}
    cites = [now.cite(rows[place], f"mean of {place}") for place in places[:3]]
    others = usual(facts, _mean(signal, length_s), ends, "the median GPU", exporter=exporter)
    if others is None:
        return None
    did, shown = SAID[signal]
    drew = ", ".join(f"{p} {did} {shown.format(c.value)}"
                     for p, c in zip(places, cites, strict=False))  # fmt: skip
    more = f" ({len(places) - len(cites)} more as little)" if len(places) > len(cites) else ""
    text = (
        f"While the run stood still {drew}{more}, the median GPU {shown.format(others.value)}:"
        f" {means}"
    )
    named = whole_hosts(places, rows)
    why, hosts = claim(text, *cites, others), {place.host or "" for place in named}
    asleep = _asleep(facts, hosts, length_s, ends)
    if asleep is None:
        return Idle(named, why)
    return Idle(named, why, ASLEEP_MOST, _for_storage(facts, asleep, hosts, length_s, ends))


def _asleep(facts: Facts, hosts: set[str], length_s: int, ends: int) -> ByHost | None:
    """The tasks in uninterruptible sleep, where those of one of these hosts stood in it, which
    ends with storage or a driver, and those of the others hardly did."""
    if not facts.measured(PROCS):
        return None
    read = by_host(instant(facts, f"avg by (host) ({_mean(PROCS, length_s)})", ends))
    now = {} if read is None else read.at(ends)
    rest = max((tasks for host, tasks in now.items() if host not in hosts), default=0.0)
    return read if any(now.get(h, 0.0) >= max(BLOCKED, TIMES * rest) for h in hosts) else None


def _for_storage(
    facts: Facts, asleep: ByHost, hosts: set[str], length_s: int, ends: int
) -> Claim | None:
    """That tasks of the one host waited for storage all the time, and none of another did."""
    signal, query = next((one for one in IO if facts.measured(one[0])), ("", ""))
    host = min(hosts)
    if not signal or len(hosts) != 1 or host not in asleep.rows:
        return None
    read = by_host(instant(facts, query.format(signal, length_s), ends))
    memory = by_host(instant(facts, MEMORY.format(length_s), ends))
    now = {} if read is None else dict(read.at(ends))
    own = now.pop(host, 0.0)
    swaps = memory is not None and (memory.value(host, ends) or 0.0) >= own / 2
    if read is None or not now or own < max(PRESSED, TIMES * max(now.values())) or swaps:
        return None
    other = max(now, key=lambda name: (now[name], name))
    tasks = asleep.cite(host, ends, f"tasks in uninterruptible sleep on {host}")
    waits = [read.cite(name, ends, f"waiting for storage on {name}") for name in (host, other)]
    text = (
        f"Meanwhile tasks of {host} waited for storage {own:.0%} of the time, of no other host"
        f" more than {now[other]:.0%}; {asleep.value(host, ends) or 0.0:.1f} of them stood in"
        " uninterruptible sleep"
    )
    return claim(text, *waits, tasks)
