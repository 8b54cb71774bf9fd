"""
Which rank the others wait for, where each rank prints what part of its steps it spent waiting.

All ranks end a synchronised step together, so its length names nobody.  The wait does: the rank
that comes last waits least, and the time it is behind is what the others waited longer.  That
holds in any stretch, so a run that is slow from its first step is told as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import isfinite, nan
from statistics import median

from flatline.facts import Facts, Track
from flatline.judging.claims import claim
from flatline.judging.named_logs import host_of_log
from flatline.judging.throughput import course, steps_of
from flatline.model import NOWHERE, Claim, Place
from flatline.series.spread import LEAST, PEERS, bar, deviations

LEAST_STEPS = 10
"""By chance one of four ranks is the last in eight of ten steps in 0.2 % of runs."""
LEAST_PART = 0.05
"""Of a step that the others must wait longer: what counts as a slow-down (`throughput.DROP`)."""
MOST_SHARE = 0.25
"""More ranks than this share are a stage of a pipeline, not stragglers."""
HALF = 0.5
"""The last one waits at most so much of what the median rank does: else all wait for something."""
OFTEN = 0.8
"""Of the steps compared it must be the last one in so many."""


@dataclass(frozen=True, slots=True)
class Waits:
    """The ranks that were waited for, worst first, the part of a step they cost, what shows it."""

    places: tuple[Place, ...]
    part: float
    shows: tuple[Claim, ...]
    doubted: bool = False
    """Whether it may as well have another part of the work by design."""


def printed_waits(facts: Facts) -> Waits | None:
    """None where fewer than four ranks print their waits, or none waits far less than the rest, in
    the whole run or in one of its slow phases."""
    tracks, by_step, common = _told(facts)
    if len(tracks) <= PEERS:
        return None
    told = (_in_steps(facts, tracks, by_step, steps) for steps in (common, *_slow(facts, common)))
    return next((waits for waits in told if waits is not None), None)


def waited_beside(facts: Facts) -> Waits | None:
    """The one rank that comes last where all wait for something else as well, so that it waits
    more than half of what the others do.  Neither the first nor the last one, which have duties of
    their own: and the others may have less to do by design."""
    tracks, by_step, common = _told(facts)
    if len(tracks) <= PEERS:
        return None
    found = _in_steps(facts, tracks, by_step, common, most=1.0)
    ends = {min(tracks, key=_number), max(tracks, key=_number)}
    if found is None or len(found.places) != 1 or ends & {*found.places}:
        return None
    return replace(found, doubted=True)


def waits_least(facts: Facts) -> bool:
    """Whether one rank of any number, or some of them and no more than half, wait less than all
    others nearly always, by what counts as a slow-down of the steps."""
    tracks, by_step, common = _told(facts)
    if len(tracks) < 2 or len(common) < LEAST_STEPS:
        return False
    waits = {place: median(rows[s][0] for s in common) for place, rows in by_step.items()}
    step_s = median(rows[s][1] for rows in by_step.values() for s in common)
    order = sorted(waits, key=waits.__getitem__)
    apart = [waits[b] - waits[a] for a, b in pairwise(order)][: len(order) // 2]
    count = apart.index(max(apart)) + 1  # where the widest gap lies
    usual = median(waits[place] for place in order[count:])
    far = usual - waits[order[count - 1]] >= LEAST_PART * step_s
    return far and _often(by_step, order[:count], common)


By = Mapping[Place, Mapping[int, tuple[float, float]]]


def _told(facts: Facts) -> tuple[Mapping[Place, Track], By, list[int]]:
    """The tracks that tell of waits by their places, what each tells by step, and the steps of
    which all of them do."""
    tracks = {_place(facts, track): track for track in facts.tracks if _tells(facts, track)}
    tracks.pop(NOWHERE, None)
    by_step = {place: _by_step(facts, track) for place, track in tracks.items()}
    steps = [set(rows) for rows in by_step.values()]
    return tracks, by_step, sorted(set.intersection(*steps)) if steps else []


def _number(place: Place) -> tuple[int, str]:
    number = place.task if place.rank is None else place.rank
    return -1 if number is None else number, str(place)


def _slow(facts: Facts, common: Sequence[int]) -> Iterator[list[int]]:
    """Those of the steps that lie in a slow phase, phase by phase."""
    run = course(facts)
    for phase in run.slow if run is not None else ():
        assert run is not None
        first, last = steps_of(run, phase)
        yield [step for step in common if first <= step <= last]


def _in_steps(
    facts: Facts,
    tracks: Mapping[Place, Track],
    by_step: By,
    common: Sequence[int],
    most: float = HALF,
) -> Waits | None:
    if len(common) < LEAST_STEPS:
        return None
    waits = {place: median(rows[s][0] for s in common) for place, rows in by_step.items()}
    step_s = median(rows[s][1] for rows in by_step.values() for s in common)
    usual = median(waits.values())
    far = deviations(waits, LEAST_PART * step_s / LEAST)
    late = [
        place
        for place in sorted(far, key=waits.__getitem__)
        if far[place][1] <= -bar(len(far))
        and waits[place] <= min(most * usual, usual - LEAST_PART * step_s)
    ]
    if not late or len(late) > MOST_SHARE * len(waits) or not _often(by_step, late, common):
        return None
    shown = _shown(facts, tracks, late[0], waits, (usual, step_s, len(common)))
    return Waits(tuple(late), (usual - waits[late[0]]) / step_s, (shown,))


def _tells(facts: Facts, track: Track) -> bool:
    span = track.of_attempt(facts.last.n)
    told = sum(isfinite(track.sync_s[i]) for i in span)
    return told >= LEAST_STEPS and bool(_by_step(facts, track))


def _place(facts: Facts, track: Track) -> Place:
    """Whose steps they are; of a log of which nothing is known but that it names a host, that.
    What bears no label in a log where others bear one may be several ranks'."""
    if track.place:
        return track.place
    if any(t.source == track.source and (t.place.rank, t.place.task) != (None, None)
           for t in facts.tracks):  # fmt: skip
        return NOWHERE
    host = host_of_log(facts, track.source)
    return Place(host=host) if host is not None else NOWHERE


def _by_step(facts: Facts, track: Track) -> dict[int, tuple[float, float]]:
    """(wait, length) in seconds of each step that printed its wait; the length by the clock where
    it was not printed."""
    span = [i for i in track.of_attempt(facts.last.n) if track.steps[i] >= 0]
    each = by_clock(track, span)
    rows = {
        track.steps[i]: (
            track.sync_s[i],
            track.step_s[i] if isfinite(track.step_s[i]) else each,
        )
        for i in span
    }
    return {step: row for step, row in rows.items() if 0 <= row[0] <= row[1]}


def by_clock(track: Track, span: Sequence[int]) -> float:
    """Seconds a step took on the whole, by the log's clock or the program's; NaN without both."""
    for clock in (track.at, track.since_s):
        dated = [i for i in span if isfinite(clock[i])]
        steps = track.steps[dated[-1]] - track.steps[dated[0]] if dated else 0
        if steps > 0:
            return (clock[dated[-1]] - clock[dated[0]]) / steps
    return nan


def _often(
    by_step: By,
    late: Sequence[Place],
    common: Sequence[int],
) -> bool:
    others = [place for place in by_step if place not in late]
    last = sum(
        max(by_step[place][s][0] for place in late) < min(by_step[place][s][0] for place in others)
        for s in common
    )
    return last >= OFTEN * len(common)


def _shown(
    facts: Facts,
    tracks: Mapping[Place, Track],
    late: Place,
    waits: Mapping[Place, float],
    told: tuple[float, float, int],
) -> Claim:
    usual, step_s, count = told
    longest = max(waits, key=waits.__getitem__)
    cites = []
    for place in (late, longest):
        track = tracks[place]
        own = [i for i in track.of_attempt(facts.last.n) if isfinite(track.sync_s[i])]
        middle = sorted(own, key=track.sync_s.__getitem__)[len(own) // 2]
        cites.append(facts.point(track, middle).cite)
    return claim(
        f"Over {count} steps of {step_s:.3g} s {late} waited {waits[late]:.3g} s in the collective"
        f" (median), the median rank {usual:.3g} s: it comes last, and the others wait for it",
        *cites,
    )
