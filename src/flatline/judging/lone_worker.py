"""
One GPU, or host, that stands apart from every other throughout a run.

In a synchronous run all ranks do the same work between two collectives: one that always takes
longer for it keeps the others waiting, whose SMs rest meanwhile.  Nothing changes in such a run,
so that no phase tells it; but it stands alone.  A part of the model that has more to do stands on
as many GPUs as share it, and rank 0 has duties of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from flatline.facts import Facts
from flatline.judging.apart import TAKES_PART, Fleet, fleet
from flatline.judging.claims import claim
from flatline.judging.gpus import BUSY_RATIO, readings
from flatline.judging.slow_cpus import slow_cpus
from flatline.judging.throughput import DROP, Course
from flatline.judging.timeline import instant, usual
from flatline.model import Claim, Place
from flatline.series.answer import grid

ACTIVITY = "gpu_sm_active_ratio"
LONGER, ALIKE, AMONG = 1.05, 1.02, 0.2
"""Times the median of the others: what it must reach, and no other may; nor be above them by more
than a fifth of what it is, where that is more.  A judgement: with one of 32 set five times as far
away as the next, what scatters among sound cards makes neither."""
ALWAYS = 0.9
"""Of the stretches it must stand so."""
LEAST_GPUS, LEAST_HOSTS = 32, 4
"""Fewer may each have a part of the model of their own."""
FEW_GPUS, FEW_HOSTS, FEW_CARDS, FAR = 8, 2, 2, 1.2
"""Of so few one that is so far above all others, and neither the first nor the last of them, which
hold the embedding and the output of a model that is cut into stages.  A judgement: stages that are
laid out evenly differ by less."""

SOME_GPUS, NEXT = 16, 0.1
"""Of so many one that is ten times as far above the usual as any other is none of several stages
either, of which one alone is no larger than all others."""
RESIDENT, GAPS = ("gpu_engine_active_ratio", "gpu_utilization_ratio"), 0.9
"""Whether a kernel was there, waiting in a collective included; and of the others' such time."""
BRIEF = 0.97
"""The same where the host's CPUs stand apart as well."""
LEAST_GAP_HOSTS, ALIKE_GAPS = 4, 0.95
"""Hosts of which one may stand alone, and how alike the others must be."""
SMALL_GAPS, NO_GAPS = 0.96, 0.985
"""The same of smaller gaps, beside others that have none to speak of: three times as far away."""
RESIDENT_ALWAYS = 0.97
"""Of the time, a kernel on GPUs that have none: where all have gaps, hosts' differ by some."""
LEAST_GAP_CARDS, RESIDENT_MOSTLY, MOSTLY = 8, 0.9, 0.8
"""Cards of which one may stand alone, how much of a stretch the median one must have a kernel for
it to count, and the share of those in which the one must have gaps: the others are saves and
evaluations."""
LATE = 0.5
"""Of its gaps, at most, its SMs may work less than the others': these wait in kernels that take
about a quarter of the SMs at most (32 channels of NCCL on 132), it in gaps with none.  Who has
less to do works less by all of its gaps."""
NEAR_S, MOST_STEPS, TOGETHER = 60, 600, 2
"""How finely in time the longest run is looked at, and within how many such looks the cards of one
run go to work and come to rest, where its hosts are not named."""


@dataclass(frozen=True, slots=True)
class Lone:
    """The GPU, how much longer it works, and what shows it."""

    place: Place
    part: float
    shows: Claim
    cpus: Claim | None = None
    """That its host's CPUs are slower than the others'."""
    sure: bool = False
    """Whether its gaps cost as much as a slow-down that is one, and are not for having less to do:
    its SMs do as much as the others', or it is one of several hosts."""


def lone_worker(facts: Facts, run: Course, *, ends: bool = False) -> Lone | None:
    """None where no activity was measured, too few GPUs were, none stands alone, or the pace
    fell: what is always so does not explain a fall.  Where waiting counts as work none does.
    With `ends` the first and the last of them may be it: something else tells whose it is."""
    every = None
    for signal in (ACTIVITY, *RESIDENT) if not run.slow else ():
        every = every or fleet(facts, run, signal)
    ranks = None if every is None else every.alike()
    if ranks is not None and not facts.hosts:
        ranks = ranks.working()
    count = 0 if ranks is None else len(ranks.read.rows)
    if ranks is None or count < FEW_GPUS or not _of_the_run(facts, ranks):
        return None
    hosts = len({place.host for place in ranks.read.rows})
    many = count >= LEAST_GPUS and hosts >= LEAST_HOSTS
    typical, always = _ratios(ranks, LEAST_GPUS if many else FEW_GPUS)
    if (hosts < FEW_HOSTS and not ends) or not typical:
        return None
    found = max(typical, key=lambda place: (typical[place], str(place)))
    others = max(ratio for place, ratio in typical.items() if place != found)
    if typical[found] < LONGER or others > _alike(typical[found]) or always[found] < ALWAYS:
        return None
    lone = count >= SOME_GPUS and others - 1 <= NEXT * (typical[found] - 1)
    far = (lone or typical[found] >= FAR) and ranks.signal == ACTIVITY and (
        ends or found not in _ends(facts, ranks))  # fmt: skip
    if not (many or far):
        return None
    first = facts.hosts[0] if facts.hosts else facts.node_of(found.host or "")
    if (facts.node_of(found.host or ""), found.gpu) == (first, "0"):
        return None
    shows = _shown(facts, ranks, found)
    return None if shows is None else Lone(found, typical[found] - 1.0, shows)


def works_beside(facts: Facts, run: Course) -> bool:
    """Whether one of several cards, and not the first, which has duties of its own, has its SMs
    at work longer than all others nearly always: as above, of fewer cards and by less."""
    every = fleet(facts, run, ACTIVITY)
    ranks = None if every is None else every.alike()
    if ranks is None or len(ranks.read.rows) < LEAST_HOSTS or not _of_the_run(facts, ranks):
        return False
    typical, always = _ratios(ranks, LEAST_HOSTS)
    found = max(typical, key=lambda place: (typical[place], str(place)), default=None)
    if found is None or found.gpu == "0" or always[found] < ALWAYS:
        return False
    others = max((ratio for place, ratio in typical.items() if place != found), default=0.0)
    return typical[found] >= LONGER and others <= _alike(typical[found])


def lone_workers(facts: Facts, run: Course) -> Lone | None:
    """One host of several all of whose cards work far longer than any other throughout, and that
    is neither the first nor the last of them.  None where the pace fell, as above."""
    every = fleet(facts, run, ACTIVITY) if not run.slow else None
    ranks = None if every is None else every.alike()
    if ranks is None or not _of_the_run(facts, ranks):
        return None
    typical, _ = _ratios(ranks, FEW_GPUS)
    by_host: dict[str, list[float]] = {}
    for place, ratio in typical.items():
        by_host.setdefault(facts.node_of(place.host or ""), []).append(ratio)
    far = [host for host, parts in by_host.items() if min(parts) >= FAR]
    if len(by_host) < LEAST_HOSTS or len(far) != 1 or len(by_host[far[0]]) < FEW_CARDS:
        return None
    most = max(ratio for host, parts in by_host.items() if host != far[0] for ratio in parts)
    order = [host for host in facts.hosts if host in by_host] or sorted(by_host)
    if most > _alike(min(by_host[far[0]])) or far[0] in (order[0], order[-1]):
        return None
    mine = [row for row, p in enumerate(ranks.read.rows) if facts.node_of(p.host or "") == far[0]]
    place = Place(host=[*ranks.read.rows][mine[0]].host)
    shows = _shown(facts, ranks, place) if _throughout(ranks, mine) else None
    return None if shows is None else Lone(place, median(by_host[far[0]]) - 1.0, shows)


def _throughout(ranks: Fleet, mine: Sequence[int]) -> bool:
    """Whether each of these cards stands above the median of the others nearly always."""
    import numpy as np  # as in `_ratios`

    from flatline.series.standing import medians

    others = medians(np.delete(ranks.values, mine, axis=0).T)
    known = np.isfinite(others) & (others > 0)
    above = ranks.values[list(mine)][:, known] >= LONGER * others[known]
    return bool(known.any() and above.all(axis=0).mean() >= ALWAYS)


def _ends(facts: Facts, ranks: Fleet) -> set[Place]:
    """The first and the last card of the first and the last host, whichever way cards are
    numbered."""
    order = {host: n for n, host in enumerate(facts.hosts)}
    by_host: dict[str, list[Place]] = {}
    for place in ranks.read.rows:
        by_host.setdefault(facts.node_of(place.host or ""), []).append(place)
    named = sorted(by_host, key=lambda host: (order.get(host, len(order)), host))
    cards = [sorted(by_host[host], key=lambda p: (len(p.gpu or ""), p.gpu or ""))
             for host in (named[0], named[-1])]  # fmt: skip
    return {card for held in cards for card in (held[0], held[-1])}


def _alike(far: float) -> float:
    """How far above the median any other may be, beside one that is so far."""
    return max(ALIKE, 1.0 + AMONG * (far - 1.0))


def _of_the_run(facts: Facts, ranks: Fleet) -> bool:
    """Whether all that were read are the run's hosts, or as many cards as it has ranks and all at
    work, and hold cards of one model: another job's host or card always differs, as one of another
    model does."""
    hosts = {facts.node_of(host) for host in {place.host or "" for place in ranks.read.rows}}
    models = {row.labels.get("model") for row in ranks.read.rows.values()}
    if len(models) != 1:
        return False
    if hosts <= set(facts.hosts):
        return True
    every = facts.world_size == len(ranks.read.rows) and bool(
        (ranks.values > BUSY_RATIO).any(1).all()
    )
    return not facts.last.hosts and (every or _began_and_ended(facts, ranks))


def _began_and_ended(facts: Facts, ranks: Fleet) -> bool:
    """Whether every card that was read was idle before the run, went to work with the others as
    its steps began, and came to rest with them once they had ended: no other job does both."""
    if facts.window is None:
        return False
    import numpy as np  # as in `_ratios`

    start, end = facts.window
    step_s = max(NEAR_S, int((end - start).total_seconds() / MOST_STEPS))
    answer = facts.series(f"avg_over_time({ranks.signal}[{step_s}s])", start=start, end=end,
                          step_s=float(step_s), exporter=_exporter(ranks))  # fmt: skip
    read = readings(answer)
    if read is None or not ranks.read.rows.keys() <= read.rows.keys():
        return False
    times = next(iter(read.rows.values())).table.times
    values = grid([read.rows[place] for place in ranks.read.rows], times)
    busy = values > BUSY_RATIO
    first, last = busy.argmax(axis=1), busy.shape[1] - 1 - busy[:, ::-1].argmax(axis=1)
    before, after = int(first.min()) - 1, int(last.max()) + 1
    if not busy.any(axis=1).all() or before < 0 or after >= len(times):
        return False
    began, ended = ranks.run.pace.span
    with_it = (
        times[int(first.max())] - step_s <= began and times[int(last.min())] + step_s >= ended
    )
    rested = np.isfinite(values[:, [before, after]]).all()
    return bool(with_it and rested and max(np.ptp(first), np.ptp(last)) <= TOGETHER)


def _ratios(ranks: Fleet, least: int) -> tuple[dict[Place, float], dict[Place, float]]:
    """Of each GPU its usual activity as a part of the median GPU's, and in which share of the
    stretches it stands above all others."""
    import numpy as np  # where numbers were read alone

    from flatline.series.standing import medians

    known = np.isfinite(ranks.values)
    middle = medians(ranks.values.T)
    told = (known.sum(axis=0) >= least) & (middle > 0)
    values, middle, known = ranks.values[:, told], middle[told], known[:, told]
    places = [*ranks.read.rows]
    if not middle.size:
        return {}, {}
    most = np.where(known, values, -np.inf).argmax(axis=0)
    beyond = values[most, np.arange(middle.size)] >= LONGER * middle
    above = np.bincount(most, beyond, len(places)) / middle.size
    typical = medians(values / middle)
    rows = np.flatnonzero(known.any(axis=1)).tolist()
    return ({places[row]: float(typical[row]) for row in rows},
            {places[row]: float(above[row]) for row in rows})  # fmt: skip


def _shown(facts: Facts, ranks: Fleet, place: Place) -> Claim | None:
    """Its reading over the run, or that of its host's busiest card, beside the median card's."""
    begins, ends = (int(moment) for moment in ranks.run.pace.span)
    mean = f"avg_over_time({ranks.signal}[{max(1, ends - begins)}s])"
    whole = place.gpu is None
    answer = instant(facts, f"max by (host) ({mean})" if whole else mean, float(ends))
    row = None if answer is None else next((r for r in answer.rows if r.place == place), None)
    what = "its SMs active" if ranks.signal == ACTIVITY else "a kernel there"
    others = usual(facts, mean, float(ends), f"{what}, the median GPU", exporter=_exporter(ranks))
    if answer is None or row is None or others is None:
        return None
    own = answer.cite(row, f"{what}, over the run")
    who = f"The busiest card of {place}" if whole else str(place)
    text = f"{who} had {what} {own.value:.1%} of the run, the median GPU {others.value:.1%}"
    return claim(text, own, others)


def lone_host(facts: Facts, run: Course) -> Lone | None:
    """One host of several all of whose cards have gaps throughout, while those of all others have
    none: it is given its work late.  None where the pace fell, as above, or it is a spare.  Where
    its CPUs are clocked apart from the others' as well, smaller gaps will do."""
    every = None
    for signal in RESIDENT if not run.slow else ():
        every = every or fleet(facts, run, signal)
    ranks = None if every is None else every.alike()
    hosts = {} if ranks is None else _by_host(ranks)
    if ranks is None or len(hosts) < 2 or not _of_the_run(facts, ranks):
        return None
    part = {host: median(rows) for host, rows in hosts.items()}
    middle = median(part.values()) if len(part) > 2 else max(part.values())
    lowest = min(part, key=lambda host: (part[host], host))
    slowed = slow_cpus(facts, run, lowest, tuple(part)) if part[lowest] < BRIEF * middle else None
    gaps = BRIEF if slowed is not None else _least_gaps(part, middle)
    low = [host for host, level in part.items() if level < gaps * middle]
    few = len(hosts) < LEAST_GAP_HOSTS and slowed is None
    if few or len(low) != 1 or part[low[0]] < TAKES_PART * middle:
        return None
    if min(v for h, v in part.items() if h != low[0]) < max(ALIKE_GAPS, gaps) * middle:
        return None
    away, always = 1 - part[low[0]] / middle, sum(own < gaps * middle for own in hosts[low[0]])
    works = _works(facts, run, low[0])
    if always < ALWAYS * len(hosts[low[0]]) or (works is not None and works < 1 - LATE * away):
        return None
    shows = _shown(facts, ranks, Place(host=low[0]))
    sure = away >= DROP and (works is not None or len(hosts) >= LEAST_GAP_HOSTS)
    return None if shows is None else Lone(Place(host=low[0]), away, shows, slowed, sure)


def lone_card(facts: Facts, run: Course) -> Lone | None:
    """One card that has gaps throughout while no other has any to speak of, waiting in kernels for
    it: it is fed, or copies, more slowly.  None where the pace fell, as above."""
    every = None
    for signal in RESIDENT if not run.slow else ():
        every = every or fleet(facts, run, signal)
    ranks = None if every is None else every.alike()
    if ranks is None or len(ranks.read.rows) < LEAST_GAP_CARDS or not _of_the_run(facts, ranks):
        return None
    part, always = _parts(ranks)
    found = min(part, key=lambda place: (part[place], str(place)), default=None)
    if found is None or not TAKES_PART <= part[found] < GAPS or always[found] < MOSTLY:
        return None
    if min(level for place, level in part.items() if place != found) < NO_GAPS:
        return None
    first = facts.hosts[0] if facts.hosts else facts.node_of(found.host or "")
    works = _card_works(facts, run, found)
    if (facts.node_of(found.host or ""), found.gpu) == (first, "0") or works is None:
        return None
    shows = _shown(facts, ranks, found)
    if shows is None or works < 1 - LATE * (1 - part[found]):
        return None
    return Lone(found, 1 - part[found], shows)


def _parts(ranks: Fleet) -> tuple[dict[Place, float], dict[Place, float]]:
    """Of each card its usual reading as a part of the median card's, and in which share of the
    stretches it has gaps."""
    import numpy as np  # as in `_ratios`

    from flatline.series.standing import medians

    middle = medians(ranks.values.T)
    told = middle >= RESIDENT_MOSTLY
    if not told.any():
        return {}, {}
    part = ranks.values[:, told] / middle[told]
    known = np.isfinite(part)
    rows = np.flatnonzero(known.mean(axis=1) >= ALWAYS).tolist()
    places, usual = [*ranks.read.rows], medians(part)
    gaps = (known & (part < GAPS)).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    return ({places[row]: float(usual[row]) for row in rows},
            {places[row]: float(gaps[row]) for row in rows})  # fmt: skip


def _card_works(facts: Facts, run: Course, card: Place) -> float | None:
    """What the SMs of a card do, as a part of the median of the others'; None where unknown."""
    from flatline.series.standing import medians

    every = fleet(facts, run, ACTIVITY)
    if every is None or card not in every.read.rows:
        return None
    levels = dict(zip(every.read.rows, medians(every.values).tolist(), strict=True))
    own = levels.pop(card)
    middle = median(levels.values()) if levels else 0.0
    return float(own / middle) if middle > 0 else None


def _works(facts: Facts, run: Course, host: str) -> float | None:
    """What the SMs of a host do, as a part of the median of the others'; None where unknown."""
    every = fleet(facts, run, ACTIVITY)
    levels = (
        {}
        if every is None
        else {one: median(rows) for one, rows in _by_host(every.alike()).items()}
    )
    own = levels.pop(host, None)
    return own / middle if own and levels and (middle := median(levels.values())) else None


def _least_gaps(part: Mapping[str, float], middle: float) -> float:
    """What of the others' time with a kernel is little, by whether these have gaps at all."""
    second = sorted(part.values())[1]
    none = middle >= RESIDENT_ALWAYS and second >= NO_GAPS * middle
    return SMALL_GAPS if none else GAPS


def _exporter(ranks: Fleet) -> str:
    return next(iter(ranks.read.rows.values())).exporter


def _by_host(ranks: Fleet) -> dict[str, list[float]]:
    """The highest reading of a host's cards, stretch by stretch: all of them are below it."""
    import numpy as np  # as in `_ratios`

    cards: dict[str, list[int]] = {}
    for row, place in enumerate(ranks.read.rows):
        if place.host is not None:
            cards.setdefault(place.host, []).append(row)
    out = {}
    for host, rows in cards.items():
        highest = np.fmax.reduce(ranks.values[rows], axis=0)
        out[host] = np.maximum(highest[np.isfinite(highest)], 0.0).tolist()
    return {host: highest for host, highest in out.items() if highest}
