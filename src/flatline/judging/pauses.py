"""
Where a run stood still between two steps, and what the kernels of its hosts said of storage then.

A pause is an interval between two points of the log in which its steps took far longer than those
around it.  By itself it says nothing: evaluations, saves and stalls look alike.  A line of a
kernel lies in it or does not, and a line that lies in a pause like the run's others proves as
little as one beside them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import exp, inf, lgamma, log, log1p
from statistics import median

from flatline.facts import KERNEL, Facts, Track
from flatline.judging.by_steps import MOST_SLACK, spent
from flatline.judging.bygone import over
from flatline.judging.claims import claim
from flatline.judging.crashes import Failure, of_family
from flatline.judging.throughput import WARM_UP_STEPS, times
from flatline.model import Claim, LogCite

FAR = 1.5
"""Times what its steps usually take. A judgement: single steps of sound runs vary by less, and a
stall of half a minute among ten steps of four seconds makes no more."""
LEAST_S = 10.0
"""Of a pause beyond its steps: less is a slow batch."""
AROUND = 10
"""Intervals before and after that say what steps usually take then: the pace of a run drifts, and
a phase in which all steps are slow is no pause."""
FASTEST = 20
"""One in so many intervals is faster than any usual one: below FAR times that nothing is far."""
SILENT_S = 30.0
"""The least that a kernel waits before it says a word: nvme_core.io_timeout is 30 s, an NFS client
over TCP waits 60 s (timeo of nfs(5)), a task is said to hang after 120 s."""
COVERED = 0.5
"""Of the time lost in a pause that the storage must be known to have stood still."""
LONGER = 2.0
"""Times the longest of the run's other pauses: evaluations and saves of one run take alike."""
CHANCE = 0.01
"""How often as many lines might lie in pauses that they have nothing to do with."""
BETWEEN_STEPS = ("eval", "checkpoint_saved")
APART_S = 60.0
"""Lines closer to one another tell of one event: kernels repeat themselves."""
COST, COST_S = 0.03, 60.0
"""Of the run's time, and seconds: repeats of one run differ by 2 % (docs/design/slow-runs.md)."""
ONCE = 0.1
"""Of the time of a run that is done.  A judgement."""
SHIFT_S, SHIFTS = 5.0, 400
"""Steps in which undated pauses are moved to where the most lines lie in them, and how many of
them are tried at most."""
LOOKED_BACK_S = 1800.0
"""Before a pause in which the line may stand that tells of it: loaders and caches serve for a
while after their server has stopped."""


@dataclass(frozen=True, slots=True)
class Pause:
    """From one point of the main track to another (POSIX seconds, and their indexes), with the
    seconds beyond what the steps between them usually take."""

    begins: float
    ends: float
    lost_s: float
    at: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Stood:
    """The pauses of the last attempt, its length by the same clock, and how far too late all of
    it may be dated (infinite where nothing dates it)."""

    track: Track
    pauses: tuple[Pause, ...]
    wall_s: float
    off_s: float

    def lines(self, pause: Pause) -> tuple[int, int]:
        """The lines of the log between which it stood still."""
        return self.track.lines[pause.at[0]], self.track.lines[pause.at[1]]


@dataclass(frozen=True, slots=True)
class Stalled:
    """Pauses in which storage is known to have stood still, and the kernels' lines in them."""

    stood: Stood
    pauses: tuple[Pause, ...]
    told: tuple[Failure, ...]

    @property
    def lost_s(self) -> float:
        return sum(pause.lost_s for pause in self.pauses)

    @property
    def share(self) -> float:
        return self.lost_s / self.stood.wall_s

    def got_over(self, facts: Facts) -> bool:
        """Whether it was one short wait of a run that is done: nothing of it is left to mend."""
        return facts.disposition == "completed" and len(self.pauses) == 1 and self.share < ONCE


def stood(facts: Facts) -> Stood | None:
    """None where the steps' times are not known."""
    return facts.memo("pauses.stood", _stood)


def _stood(facts: Facts) -> Stood | None:
    track = facts.main_track(facts.last.n)
    if track is None:
        return None
    when, off_s = times(facts, track)
    at = [(when[i], i) for i in track.of_attempt(facts.last.n) if i in when]
    if not at:
        at, off_s = _summed(facts, track)
    kept = [(time, i) for time, i in at if track.steps[i] >= 0]
    spans = [
        (a, b) for a, b in pairwise(kept) if track.steps[b[1]] > track.steps[a[1]] and b[0] >= a[0]
    ]
    if len(spans) < 2 * AROUND:
        return None
    warm = track.steps[kept[0][1]] + WARM_UP_STEPS
    found: list[Pause] = []
    for pause in _far(track, spans):
        joined = found and found[-1].at[1] == pause.at[0]
        if joined:
            last = found.pop()
            pause = Pause(last.begins, pause.ends, last.lost_s + pause.lost_s,
                          (last.at[0], pause.at[1]))  # fmt: skip
        found.append(pause)
    long = (p for p in found if p.lost_s >= LEAST_S and track.steps[p.at[0]] >= warm)
    return Stood(track, tuple(long), kept[-1][0] - kept[0][0], off_s)


_Point = tuple[float, int]


def _summed(facts: Facts, track: Track) -> tuple[list[_Point], float]:
    """The points of an undated log by the times they say they took, so that the last one stands
    at the run's end, and how far off that may be."""
    known = spent(track, track.of_attempt(facts.last.n))
    if known is None or not known.seconds:
        return [], inf
    out = list(zip(known.by, known.indexes, strict=True))
    began, ended = facts.last.started_at, facts.last.ended_at
    if ended is None and facts.disposition == "running":
        ended = facts.now
    if began is None or ended is None:
        return out, inf
    wall_s = (ended - began).total_seconds()
    slack_s = wall_s - known.by[-1]
    shift = ended.timestamp() - known.by[-1]
    fits = 0 <= slack_s <= MOST_SLACK * wall_s
    return [(time + shift, i) for time, i in out], slack_s if fits else inf


def _far(track: Track, spans: Sequence[tuple[_Point, _Point]]) -> Iterable[Pause]:
    """Intervals that took far longer than those around them."""
    each = [(b[0] - a[0]) / (track.steps[b[1]] - track.steps[a[1]]) for a, b in spans]
    fast = sorted(each)[len(each) // FASTEST]
    for n, (a, b) in enumerate(spans):
        if each[n] < FAR * fast:
            continue
        first = max(0, min(n - AROUND, len(each) - 2 * AROUND - 1))
        usual = median(each[first : first + 2 * AROUND + 1])
        if each[n] >= FAR * usual:
            lost = (each[n] - usual) * (track.steps[b[1]] - track.steps[a[1]])
            yield Pause(a[0], b[0], lost, (a[1], b[1]))


# --- what the kernels said meanwhile ------------------------------------------------------------


def stalled(facts: Facts, code: str) -> Stalled | None:
    """
    Pauses that lines of this family in the kernel logs of the run's own hosts explain.

    None where there are none, where they cost little, and where lines and pauses may have met by
    chance: not many, and no pause that is longer than the run's others.
    """
    known = stood(facts)
    lines = kernel_lines(facts, code)
    if known is None or not known.pauses or not lines or known.off_s == inf:
        return None
    spans = silences(facts, lines)
    each_s = max(SHIFT_S, known.off_s / SHIFTS)
    shifts = [n * each_s for n in range(int(known.off_s / each_s) + 1)]
    laid = (replace(known, pauses=tuple(_earlier(p, by) for p in known.pauses)) for by in shifts)
    best = max((_met(one, spans, facts.skew_s) for one in laid), key=lambda met: len(met.pauses))
    if best.lost_s < max(COST * known.wall_s, COST_S):
        return None
    others = [p.lost_s for p in best.stood.pauses if p not in best.pauses]
    longest = max(others, default=0.0)
    alone = tuple(p for p in best.pauses if p.lost_s >= LONGER * longest)
    if len(shifts) * _by_chance(best, lines) <= CHANCE:
        return best
    if sum(p.lost_s for p in alone) < max(COST * known.wall_s, COST_S):
        return None
    return _met(replace(best.stood, pauses=alone), spans, facts.skew_s)


def kernel_lines(facts: Facts, code: str) -> tuple[Failure, ...]:
    """Dated lines of this family in kernel logs of the run's hosts, which it survived. A kernel
    that nothing names is the run's where that has one host."""
    kernels = {read.source for read in facts.log_files(KERNEL)}
    mine: set[str | None] = {_short(host) for host in facts.hosts}
    mine |= {None} if len(mine) <= 1 else set()
    return tuple(
        f
        for f in of_family(facts, code, fatal=False)
        if f.cite.source in kernels and f.cite.at is not None and not f.cite.at_assumed
        and (None if f.place.host is None else _short(facts.node_of(f.place.host))) in mine
    )  # fmt: skip


def _short(host: str) -> str:
    return host.partition(".")[0].lower()


def _earlier(pause: Pause, by_s: float) -> Pause:
    return replace(pause, begins=pause.begins - by_s, ends=pause.ends - by_s)


def _met(known: Stood, spans: Sequence[Silence], skew_s: float) -> Stalled:
    """The pauses that these lines cover for the most part, and the lines that do."""
    times_ = [at for at, _, _ in spans]
    met: list[Pause] = []
    told: dict[int, Failure] = {}
    for pause in known.pauses:
        cover: list[tuple[float, float]] = []
        inside = []
        first = bisect_left(times_, pause.begins - LOOKED_BACK_S)
        for at, ended, line in spans[first : bisect_right(times_, pause.ends + skew_s)]:
            until = ended if ended is not None else pause.ends if at >= pause.begins else at
            span = max(pause.begins, at - SILENT_S), min(pause.ends, until)
            if span[0] < span[1]:
                cover.append(span)
                inside.append(line)
        if _length(cover) >= COVERED * pause.lost_s:
            met.append(pause)
            told |= {id(line): line for line in inside}
    return Stalled(known, tuple(met), tuple(told.values()))


def moment(line: Failure) -> float:
    return line.cite.at.timestamp() if line.cite.at is not None else inf


def events(lines: Sequence[Failure]) -> list[float]:
    """When lines tell of an event, each once."""
    found: list[float] = []
    for at in sorted(map(moment, lines)):
        if not found or at - found[-1] > APART_S:
            found.append(at)
    return found


Silence = tuple[float, float | None, Failure]


def silences(facts: Facts, lines: Sequence[Failure]) -> list[Silence]:
    """The lines by time, each with when the same kernel said that the server which it names
    served again; None where it did not, and for lines that name none."""
    out: list[Silence] = []
    for line in sorted(lines, key=moment):
        back = None if line.match is None else over(facts, line.match)
        ended = back.cite.at.timestamp() if back is not None and back.cite.at else None
        out.append((moment(line), ended, line))
    return out


def _length(spans: Iterable[tuple[float, float]]) -> float:
    """What intervals cover together."""
    total, reached = 0.0, -inf
    for begins, ends in sorted(spans):
        total += max(0.0, ends - max(begins, reached))
        reached = max(reached, ends)
    return total


def _by_chance(met: Stalled, lines: Sequence[Failure]) -> float:
    """How often as many of the lines' events lie in pauses that they have nothing to do with."""
    times_ = events(lines)
    begins, ends = ([getattr(p, end) for p in met.pauses] for end in ("begins", "ends"))
    n, hits = len(times_), 0
    for at in times_:
        before = bisect_right(begins, at)
        hits += before > 0 and at <= ends[before - 1] + SILENT_S
    wide = sum(p.ends - p.begins + SILENT_S for p in met.stood.pauses)
    share = wide / met.stood.wall_s
    if hits == 0 or share >= 1.0:
        return 1.0
    ways = (lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) for k in range(hits, n + 1))
    return sum(
        exp(way + k * log(share) + (n - k) * log1p(-share))
        for k, way in enumerate(ways, start=hits)
    )


def between(facts: Facts, stood_: Stood, pause: Pause, *kinds: str) -> tuple[LogCite, ...]:
    """What the log itself says was done in a pause: evaluated, saved."""
    first, last = stood_.lines(pause)
    return tuple(
        m.cite
        for m in facts.markers
        if m.kind in kinds
        and m.cite.source == stood_.track.source
        and first <= m.cite.line <= last
    )


def in_told_pauses(facts: Facts, spans: Sequence[tuple[float, float]]) -> bool:
    """Whether most of those spans lies where the run stood still for an evaluation or a save, as
    its log says between two steps: what one rank does alone then slows no step."""
    known = stood(facts)
    told = [] if known is None else [
        pause for pause in known.pauses if between(facts, known, pause, *BETWEEN_STEPS)
    ]  # fmt: skip
    if known is None or not told:
        return False
    off_s = min(known.off_s, max(end - begin for begin, end in spans))
    met = ((max(begin, pause.begins - off_s), min(end, pause.ends + off_s))
           for begin, end in spans for pause in told)  # fmt: skip
    whole = sum(end - begin for begin, end in spans)
    return _length(span for span in met if span[0] < span[1]) >= COVERED * whole


def longest_of(facts: Facts, waited: Stalled) -> Claim:
    """The longest of the pauses with the steps around it, and what the log says was done then."""
    stood, longest = waited.stood, max(waited.pauses, key=lambda pause: pause.lost_s)
    before, after = (facts.point(stood.track, at) for at in longest.at)
    done = between(facts, stood, longest, "checkpoint_saved", "eval")[:1]
    many = len(waited.pauses)
    text = (
        f"From step {before.step} to step {after.step} {longest.ends - longest.begins:.0f} s"
        f" passed, {longest.lost_s:.0f} s more than its steps usually take"
    )
    if many > 1:
        usual = median(pause.lost_s for pause in waited.pauses)
        text += f"; {many} such pauses, of {usual:.0f} s by their median, took"
        text += f" {waited.lost_s:.0f} s of {stood.wall_s:.0f}"
    return claim(text, before.cite, *done, after.cite)
