"""
Whether a run's hosts worked on up to a moment, by the power of their GPUs.

What waits in a collective draws far less than what works, and what is dead draws what an idle
card does.  Work is the highest level a host has shown, so waiting that had begun long before is
none.  That the level falls after the moment, or was low before the run worked, tells work from a
card that always draws the same, and from a clock that is hours off.

A step's pauses are shorter than what lies between two readings, and beat with it: every so often
several readings in a row of one host fall into pauses.  A mean that low is work where the host had
such means again and again, and drew its level in each half all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import floor

from flatline.facts import Facts
from flatline.judging.claims import claim
from flatline.judging.timeline import ByHost, Timeline, by_host, instant, timeline
from flatline.model import Claim

POWER = "gpu_power_watts"
HELD, FELL = 0.8, 0.7
"""Parts of a host's level at work.  All cards that wait in a collective fell to 0.8 of it and
below (`spinning`); a card without work falls to a fifth."""
ENDED_S, MEAN_S = 90, 60
"""Processes take some seconds to end, and those of a next job longer to load."""
LEAST = 4
"""Stretches before the moment, else no level at work is known."""
OFTEN, AGAIN = 0.05, 3
"""Of the stretches before, and at least: a mean as low in so many of them is one of work.  A
judgement: once may be a save, an evaluation or a restart."""


@dataclass(frozen=True, slots=True)
class _Read:
    """The means of the hosts: stretch by stretch before, in the two halves, and afterwards; the
    highest readings in the halves, and means before over as long as a half."""

    cut: Timeline
    before: ByHost
    halves: tuple[ByHost, ByHost]
    peaks: tuple[ByHost, ByHost]
    as_long: ByHost
    after: ByHost | None
    ends: tuple[float, float, float]

    def level(self, host: str) -> tuple[float, float]:
        """The highest mean of a host and when that was."""
        values = ((self.before.value(host, end) or 0.0, end) for end in self.cut.ends)
        return max(values, default=(0.0, 0.0))

    def part(self, host: str) -> float:
        """The lower half, of the level; 0 where the later one was not read.  The earlier one is
        not, where metrics come less often than it is long."""
        level, _ = self.level(host)
        late, early = (read.value(host, end) for read, end in
                       zip(self.halves, self.ends, strict=False))  # fmt: skip
        if late is None or not level:
            return 0.0
        return min(late, late if early is None else early) / level

    def held(self, host: str) -> bool:
        """Whether a host kept its level, or had means as low often and its level in each half."""
        return self.part(host) >= HELD or self.beats(host)

    def beats(self, host: str) -> bool:
        level, _ = self.level(host)
        reached = zip(self.peaks, self.ends, strict=False)
        if not level or any((p.value(host, end) or 0.0) < HELD * level for p, end in reached):
            return False
        return len(self.as_low(host)) >= max(AGAIN, OFTEN * len(self.cut.ends))

    def as_low(self, host: str) -> list[float]:
        """When the mean was as low before as in the lower half."""
        halves = zip(self.halves, self.ends, strict=False)
        low = min(read.value(host, end) or 0.0 for read, end in halves)
        means = ((end, self.as_long.value(host, end)) for end in self.cut.ends)
        return [end for end, value in means if value is not None and value <= low]

    def falls(self, host: str) -> bool:
        """Whether the level is one of work: it fell afterwards or, where nothing was read then,
        had been low before."""
        level, _ = self.level(host)
        then = None if self.after is None else self.after.value(host, self.ends[2])
        if then is None:
            seen = (self.before.value(host, end) for end in self.cut.ends)
            then = min((value for value in seen if value is not None), default=level)
        return then <= FELL * level


def kept_working(
    facts: Facts,
    until: float,
    seconds: float,
    hosts: Sequence[str | None],
    ended: float | None = None,
) -> Claim | None:
    """
    That these hosts and most others kept their power in both halves of the `seconds` before POSIX
    `until`; all hosts of the run where one of these is not known (None).  `ended` is when the last
    process spoke, where that was later.

    None where one of them fell, or was not read.
    """
    read = _read(facts, until, seconds, max(until, ended or until))
    if read is None:
        return None
    wanted = facts.hosts if None in hosts else [host for host in hosts if host]
    known = _named(read.before.rows, wanted)
    held = {host: read.held(host) for host in read.before.rows}
    if known is None or len(held) < 2 or 2 * sum(held.values()) <= len(held):
        return None
    if not all(held[host] and read.falls(host) for host in known):
        return None
    return _told(read, min(known, key=lambda host: (read.part(host), host)), len(known), seconds)


def _named(measured: Mapping[str, object], wanted: Iterable[str]) -> list[str] | None:
    """These hosts as the metrics call them; None where one is not among them, or none is."""
    short = {host.partition(".")[0].lower(): host for host in measured}
    found = [short.get(host.partition(".")[0].lower()) for host in wanted]
    known = [host for host in found if host is not None]
    return known if known and len(known) == len(found) else None


def _read(facts: Facts, until: float, seconds: float, ended: float) -> _Read | None:
    if facts.window is None:
        return None
    half_s, end = floor(seconds / 2), float(floor(until))
    began = facts.last.started_at or facts.window[0]
    cut = timeline(facts, [POWER], (began.timestamp(), end - 2 * half_s), samples=2)
    if half_s < 1 or cut is None or len(cut.ends) < LEAST:
        return None
    ends = end, end - half_s, float(floor(ended)) + ENDED_S + MEAN_S
    late, early, after = (
        by_host(instant(facts, _over(f"{length_s}s"), at))
        for length_s, at in zip((half_s, half_s, MEAN_S), ends, strict=True)
    )
    peaks = [by_host(instant(facts, _over(f"{half_s}s", "max"), at)) for at in ends[:2]]
    before, as_long = (cut.hosts(facts, _over(length)) for length in ("w", f"{half_s}s"))
    if late is None or early is None or before is None or as_long is None:
        return None
    if peaks[0] is None or peaks[1] is None:
        return None
    return _Read(cut, before, (late, early), (peaks[0], peaks[1]), as_long, after, ends)


def _over(length: str, what: str = "avg") -> str:
    return f"avg by (host) ({what}_over_time({POWER}[{length}]))"


def _told(read: _Read, host: str, count: int, seconds: float) -> Claim | None:
    level, at = read.level(host)
    best = read.before.cite(host, at, f"{host} at most")
    steady = read.part(host) >= HELD
    then, most = (read.halves, "") if steady else (read.peaks, "at most ")
    cites = [half.cite(host, end, f"{host} {most}in one half of that time")
             for half, end in zip(then, read.ends, strict=False)]  # fmt: skip
    after = (
        None if read.after is None else read.after.cite(host, read.ends[2], f"{host} afterwards")
    )
    if best is None or cites[0] is None or (None in cites and not steady):
        return None
    drew = " and ".join(f"{cite.value:.0f}" for cite in reversed(cites) if cite)
    who = f"The GPUs of {host}" + (f", as those of all {count} hosts," if count > 1 else "")
    both = "in both halves" if None not in cites else "in the later half, in which alone they were"
    half = f"{both}{' read,' if None in cites else ''} of the {seconds:.0f} s before, they"
    end = f", {after.value:.0f} W afterwards" if after else ""
    if steady:
        text = f"{who} kept their power: {half} drew {drew} W each, at most {level:.0f} W in all"
        return claim(f"{text} the run{end}", *cites, best, after)
    again = read.as_low(host)
    text = (
        f"{who} worked on: {half} reached {drew} W each, at most {level:.0f} W in the means of"
        f" all the run, which were as low at {len(again)} other times{end}"
    )
    as_low = read.as_long.cite(host, again[-1], f"{host} as low before")
    return claim(text, *cites, best, as_low, after)
