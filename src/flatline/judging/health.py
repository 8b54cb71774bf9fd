"""
GPUs that failed, by their own counters and the kernel's word: what rose or was said within the
run, what is old and flat, and which GPU vanished while its neighbours stayed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import ceil, isfinite
from statistics import median

from flatline.facts import KERNEL, Facts
from flatline.judging.counters import Counted, counted
from flatline.judging.crashes import failures, of_family
from flatline.judging.gpus import Readings, readings
from flatline.judging.pace import pace
from flatline.judging.timeline import instant
from flatline.judging.waiting import waiting
from flatline.model import Cite, Place

COUNTERS: Mapping[str, tuple[str, float]] = {
    "gpu_ecc_uncorrectable_total": ("memory", 0.9),
    "gpu_engine_uncorrectable_total": ("memory", 0.85),
    "gpu_row_remap_uncorrectable_total": ("memory", 0.85),
    "gpu_row_remap_failed": ("memory", 0.9),
    "gpu_link_uncorrectable_total": ("link", 0.85),
    "gpu_nvlink_recovery_errors_total": ("link", 0.75),
    "gpu_pcie_fatal_total": ("bus", 0.9),
}
"""What should never rise: the fault class, and the belief a rise earns alone.  Replays and
checksum errors are left out: links correct them, and healthy ones count a few."""
HARDWARE = "B2"
MEMORY = frozenset({48, 64, 94, 95, 140, 168, 171, 172})
BUS = frozenset({79, 167})
LINK = frozenset({74, 136, 155})
FIRMWARE = frozenset({38, 54, 62, 110, 119, 120, 143, 158, 169})
"""Xids that NVIDIA's catalogue lays at the hardware or its firmware; 13, 31, 43 and 45 are
mostly the program's own, 63 is a repair that worked."""
SEEN_AFTER = timedelta(seconds=60)
"""What ends a run is in its counters with the next scrape, which is behind the run's last line:
most exporters are read every 15 to 60 s."""
SAMPLES_LOST = 4
"""Samples a GPU must miss while its neighbours are read: one scrape may fail."""
RESET_S = 180
"""Once a run is over: an epilog may reset a card, which takes a minute or two."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A sign on one GPU: `at` POSIX seconds, None for what is older than the run."""

    place: Place
    fault_class: str
    what: str
    strength: float
    at: float | None
    cites: tuple[Cite, ...]


def window(facts: Facts) -> tuple[datetime, datetime] | None:
    """The part of the metrics' window that the last attempt ran in, in whole seconds."""
    if facts.window is None:
        return None
    start, end = facts.window
    began, ended = facts.last.started_at, facts.last.ended_at
    start = max(start, began) if began is not None else start
    end = min(end, ended) if ended is not None and ended > start else end
    start, end = start.replace(microsecond=0), end.replace(microsecond=0)
    return (start, end) if start < end else None


def signs(facts: Facts) -> tuple[Fault, ...] | None:
    """Every sign, those within the run with their time; None where nothing of it was measured."""
    span = window(facts)
    known = [s for s in (*COUNTERS, "gpu_xid", "gpu_xid_errors_total") if facts.measured(s)]
    if span is None or not known:
        return None
    if facts.disposition != "completed":
        span = span[0], span[1] + SEEN_AFTER
    found: list[Fault] = []
    for signal, (fault_class, strength) in COUNTERS.items():
        found += [
            _risen(one, fault_class, strength)
            for one in counted(facts, signal, *span)
            if one.last > 0 and one.place.gpu is not None
        ]
    return (*found, *_xids(facts, *span), *_xid_counts(facts, *span))


def _risen(one: Counted, fault_class: str, strength: float) -> Fault:
    name = one.signal.removeprefix("gpu_").removesuffix("_total").replace("_", " ")
    what = f"{name} rose by {one.rose:g} to {one.last:g}" if one.rose else (
        f"{name} stood at {one.last:g} and did not rise")  # fmt: skip
    return Fault(one.place, fault_class, what, strength, one.at if one.rose else None, (one.cite,))


def xid_class(code: int) -> str | None:
    """The fault class of an Xid that is the hardware's, None for any other."""
    for name, codes in (("memory", MEMORY), ("bus", BUS), ("link", LINK), ("firmware", FIRMWARE)):
        if code in codes:
            return name
    return None


def _xids(facts: Facts, start: datetime, end: datetime) -> list[Fault]:
    """The last Xid is a state that stays: only a change within the run is an event."""
    if not facts.measured("gpu_xid"):
        return []
    step_s = max(1.0, (end - start).total_seconds() / 240)
    read = readings(facts.series("gpu_xid", start=start, end=end, step_s=step_s))
    found = []
    telling = set() if read is None else read.telling()
    for place, row in {} if read is None else read.rows.items():
        if place not in telling:
            continue
        points = [(t, int(v)) for t, v in row.points() if isfinite(v) and v >= 0]
        for (_, before), (at, code) in zip([(0.0, points[0][1] if points else 0), *points],
                                           points, strict=False):  # fmt: skip
            kind = xid_class(code)
            if kind is None or read is None or (code == before and at != points[0][0]):
                continue
            cite = read.cite(place, at, f"Xid {code}")
            new = code != before
            found.append(Fault(place, kind, f"Xid {code}" + ("" if new else ", older than the"
                               " run"), 0.85, at if new else None,
                               () if cite is None else (cite,)))  # fmt: skip
    return [fault for fault in found if fault.cites]


def _xid_counts(facts: Facts, start: datetime, end: datetime) -> list[Fault]:
    """Counters by code: the code is a label of the data's own."""
    found = []
    for one in counted(facts, "gpu_xid_errors_total", start, end):
        code = _code(one.cite.query)
        kind = xid_class(code) if code is not None else None
        if kind is not None and one.last > 0:
            what = f"Xid {code}" + (
                f", {one.rose:g} times" if one.rose else ", older than the run"
            )
            found.append(Fault(one.place, kind, what, 0.85, one.at if one.rose else None,
                               (one.cite,)))  # fmt: skip
    return found


def _code(query: str) -> int | None:
    """The code in a query narrowed to one series."""
    _, mark, rest = query.partition('xid="')
    number = rest.partition('"')[0]
    return int(number) if mark and number.isdecimal() and len(number) < 5 else None


# --- a GPU that vanished ------------------------------------------------------------------------


def vanished(facts: Facts) -> tuple[Fault, ...]:
    """
    GPUs whose readings end while others of the same host go on: within the run, or with its end
    where something of its own, or a kernel, tells of an error there as well.

    A host whose readings all end has lost its exporter or itself; that is no GPU's fault.
    """
    span = window(facts)
    if span is None or not facts.measured("gpu_power_watts"):
        return ()
    first, last = (moment.timestamp() for moment in span)
    length_s = max(1, ceil(last - first))
    query = f"count_over_time(gpu_power_watts[{length_s}s])"
    answer = instant(facts, query, last)
    counts = readings(answer)
    if counts is None:
        return ()
    interval_s = (last - first) / max(1.0, median(row.last for row in counts.rows.values()))
    after_s = max(1, ceil(SAMPLES_LOST * interval_s))
    seen = {place: _last_seen(facts, place, first, last)
            for place, _ in _missing(facts, counts, last, after_s)}  # fmt: skip
    out = [_lost(place, at, cites)
           for place, cites in _missing(facts, counts, last, after_s)
           if (at := seen[place]) is not None and at < last - after_s]  # fmt: skip
    if facts.disposition in ("completed", "running"):
        return tuple(out)
    after_s = max(after_s, RESET_S)
    for place, cites in _missing(facts, counts, last + after_s, after_s, SAMPLES_LOST - 1):
        at, said = _last_seen(facts, place, first, last), _error_on(facts, place.host)
        if place not in seen and at is not None and said is not None:
            out.append(_lost(place, at, (*cites, said)))
    return tuple(out)


def _lost(place: Place, at: float, cites: tuple[Cite, ...]) -> Fault:
    what = "its readings end while those of its neighbours go on"
    return Fault(place, "lost", what, 0.85, at, cites)


def _missing(
    facts: Facts, counts: Readings, end: float, after_s: int, least: int = 1
) -> Iterator[tuple[Place, tuple[Cite, Cite]]]:
    """Those of the GPUs that were not read in the seconds before a moment, where half of their
    host's were, each at least so often."""
    tail = readings(instant(facts, f"count_over_time(gpu_power_watts[{after_s}s])", end))
    if tail is None:
        return
    alive: dict[str | None, list[Place]] = {}
    for place, row in tail.rows.items():
        if row.last >= least:
            alive.setdefault(place.host, []).append(place)
    on = Counter(place.host for place in counts.rows)
    for place, row in counts.rows.items():
        beside = alive.get(place.host, [])
        if place in tail.rows or 2 * len(beside) < on[place.host]:
            continue
        kept = tail.cite(beside[0], end, f"{beside[0]} was still read")
        gone = counts.cite(place, row.times[-1], f"samples of {place}, all before it vanished")
        if kept is not None and gone is not None:
            yield place, (gone, kept)


def _error_on(facts: Facts, host: str | None) -> Cite | None:
    """A line of the run's time that tells of a failed GPU on a host, or of a failed kernel of the
    program there: of an exporter alone, readings may end as they please once a job is over."""
    told = (f for f in failures(facts) if f.family == HARDWARE or f.fault_class == "cuda")
    return next(
        (f.cite for f in told
         if not facts.outside(f.cite) and host is not None
         and facts.node_of(facts.on_host(f.place).host or "") == facts.node_of(host)),
        None,
    )  # fmt: skip


def _last_seen(facts: Facts, place: Place, first: float, last: float) -> float | None:
    step_s = max(1.0, (last - first) / 240)
    start, end = (datetime.fromtimestamp(t, UTC) for t in (first, last))
    query = f"count_over_time(gpu_power_watts[{max(1, ceil(step_s))}s])"
    read = readings(facts.series(query, start=start, end=end, step_s=step_s))
    row = None if read is None else read.rows.get(place)
    return row.times[-1] if row is not None and row.times else None


# --- what became of the run ---------------------------------------------------------------------


SLACK_S = 120.0
"""Sampling of counters and the usual distance of log lines put a cause and its effect apart by
this much."""


def stopped_by(facts: Facts, at: float) -> bool | None:
    """
    Whether the run's progress ended with a moment: none after it, and not long before either.

    Where no dated progress tells, it ended when a wait began that a watchdog gave up after the
    timeout which it names; None where there is none.
    """
    seen = pace(facts)
    if seen is None:
        began = _wait_began(facts)
        return None if began is None else abs(began - at) <= SLACK_S
    slack_s = max(SLACK_S, 3 * (seen.interval_s or 0.0))
    return abs(seen.at.timestamp() - at) <= slack_s


def _wait_began(facts: Facts) -> float | None:
    waits = waiting(facts, "timeout")
    stated = waits.first.groups.get("timeout_ms", "") if waits is not None else ""
    if waits is None or waits.first.attempt != facts.last.n or not stated.isdecimal():
        return None
    at = None if waits.first.cite.at_assumed else waits.first.cite.at
    return None if at is None else at.timestamp() - int(stated) / 1000


def within(facts: Facts) -> tuple[Fault, ...]:
    """The signs of the run's own time, in order: none that is older, nor one after its last
    progress."""
    return facts.memo("health.within", _within)


def _within(facts: Facts) -> tuple[Fault, ...]:
    faults = (*(signs(facts) or ()), *vanished(facts), *_named(facts))
    timed = [(f.at, -f.strength, f) for f in faults if f.at is not None and not over(facts, f.at)]
    return tuple(fault for *_, fault in sorted(timed, key=lambda one: one[:2]))


def _named(facts: Facts) -> tuple[Fault, ...]:
    """What a kernel log named while a run went on that ended well: of any other run a line of the
    last minutes may be its end."""
    track = facts.main_track(facts.last.n)
    first = min((t for t in track.at if isfinite(t)), default=None) if track is not None else None
    if facts.disposition != "completed" or first is None:
        return ()
    kernel = {read.source for read in facts.log_files(KERNEL)}
    return tuple(
        Fault(f.place, f.fault_class or "", f.what.rstrip("."), f.strength, at, (f.cite,))
        for f in of_family(facts, HARDWARE, fatal=False)
        if f.cite.source in kernel
        and f.cite.at is not None
        and (at := f.cite.at.timestamp()) >= first
    )


def older(facts: Facts) -> tuple[Fault, ...]:
    """What a kernel log named long before the run: the card may carry it still."""
    _, ended = facts.lived
    end = ended or (facts.window[1] if facts.window is not None else None)
    return tuple(
        Fault(f.place, f.fault_class or "", f.what.rstrip("."), f.strength, None, (f.cite,))
        for f in of_family(facts, HARDWARE, fatal=False)
        if facts.outside(f.cite) and f.cite.at is not None and end is not None and f.cite.at < end
    )


def over(facts: Facts, at: float) -> bool:
    """Whether the run had made its last progress well before a moment: what comes later cannot
    have stopped it."""
    seen = pace(facts)
    return seen is not None and seen.at.timestamp() < at and stopped_by(facts, at) is False
