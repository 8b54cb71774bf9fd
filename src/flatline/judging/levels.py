"""
The level of every signal on every host of two runs, and which of them differ beyond chance.

Both runs are cut into as many stretches, their beginnings left out.  A signal differs where the
order of its stretches would do so by chance less often than `CHANCE` among all that were compared,
and where the level moved by what matters for it: many signals are looked at, and some always
differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil, erfc, isfinite, sqrt
from statistics import median

from flatline.facts import Facts
from flatline.judging.throughput import pace
from flatline.judging.timeline import ByHost, Timeline, instant, timeline, usual
from flatline.model import QueryCite, SignalChange, Weight
from flatline.series.spread import SIGMA, mad
from flatline.signals import SIGNALS, Signal

CHANCE = 0.01
"""How often any of all signals may be said to differ by the order of its stretches alone."""
STRETCHES, SAMPLES = 24, 2
SETTLED = 0.1
"""Of the run that is left out at its beginning: it loads, compiles and fills caches."""
LEAST = 4
"""Stretches of each run below which nothing is compared; few of them need many hosts beside."""
ALIKE = 0.9
"""Of the hosts that must move the same way for a change to be everywhere."""
APART = 6.0
"""Standard deviations by which one host's change stands apart from the others'."""
_SET_APART = frozenset(
    {
        "gpu_xid",
        *(name for name in SIGNALS if name.startswith("gpu_clock_event_")),
        "host_boot_time_seconds",
        "host_clock_offset_seconds",
        "gpu_power_limit_watts",
        "gpu_sm_clock_max_hertz",
        "gpu_memory_total_bytes",
        "host_memory_total_bytes",
        "rdma_port_up",
        "gpu_temperature_celsius",
        "gpu_memory_temperature_celsius",
        "exporter_up",
        "filesystem_available_bytes",
        "filesystem_size_bytes",
        "filesystem_free_inodes",
        "filesystem_inodes",
        "filesystem_read_only",
        "filesystem_mounted",
    }
)
"""States, settings, and temperatures, which follow the room: no load of theirs to compare."""
_TRAINING = ("training_balance_loss",)
MATTERS: Mapping[str, tuple[float, float]] = {
    "gpu_sm_clock_hertz": (1.05, 0.0),  # half of the 8 % like GPUs vary by (arXiv 2208.11035)
    "gpu_power_watts": (1.08, 0.0),
    "gpu_memory_used_bytes": (1.1, 0.0),
    "host_procs_running": (1.3, 4.0),  # 4 of a queue: what `judging.quiet` lets pass
    "host_threads": (1.0, 8.0),  # of thousands; half of the leak that cost one per cent (AMD)
    "host_io_pressure_ratio": (1.3, 0.05),
    "host_io_pressure_seconds_total": (1.3, 0.05),
    "host_cpu_pressure_seconds_total": (1.3, 0.05),
    "host_memory_pressure_seconds_total": (1.3, 0.05),
    "tcp_retransmits_total": (2.0, 1.0),  # a handful a second is usual on any network
}
"""How far a level must move: by a ratio, and by so much in the signal's own unit (a second)."""
_RATIO, _SHARE = (1.3, 0.0), (1.05, 0.05)
LOSS_FLOOR = 1.0
"""Errors or retransmits a second below which a counter is at rest, as in `judging.quiet`."""


@dataclass(frozen=True, slots=True)
class Level:
    """One signal in both runs: by host the median over stretches, and the stretches' medians."""

    signal: Signal
    ours: Mapping[str, float]
    theirs: Mapping[str, float]
    our_course: tuple[float, ...]
    their_course: tuple[float, ...]

    @property
    def here(self) -> float:
        return median(self.ours.values())

    @property
    def there(self) -> float:
        return median(self.theirs.values())

    @property
    def chance(self) -> float:
        """By the order of stretches or by that of hosts, whichever tells more: a short run has
        few of the ones, a small one few of the others. Two tests are two chances."""
        told = rank_chance(self.our_course, self.their_course)
        hosts = rank_chance(tuple(self.ours.values()), tuple(self.theirs.values()))
        return min(1.0, 2 * min(told, hosts))

    def moved(self, a: float, b: float) -> int:
        """1 where a stands above b by what matters, -1 below, else 0."""
        ratio, least = MATTERS.get(self.signal.name, _SHARE if self.signal.unit == "ratio"
                                   else _RATIO)  # fmt: skip
        if self.signal.kind == "counter" and self.signal.unit == "count":
            least = max(least, LOSS_FLOOR)
        if abs(a - b) < least:
            return 0
        if a > b and a >= ratio * max(b, 0.0):
            return 1
        return -1 if b > a and b >= ratio * max(a, 0.0) else 0

    def everywhere(self) -> int:
        """1 or -1 where the hosts moved alike, against their own level or the baseline's."""
        moves = [self.moved(value, self.theirs.get(host, self.there))
                 for host, value in self.ours.items()]  # fmt: skip
        for way in (1, -1):
            if sum(move == way for move in moves) >= ALIKE * len(moves):
                return way
        return 0

    def apart(self) -> list[str]:
        """Hosts of both runs whose change stands apart from the others' and matters."""
        both = {h: (v, self.theirs[h]) for h, v in self.ours.items() if h in self.theirs}
        if len(both) < 4:
            return []
        changes = {host: a - b for host, (a, b) in both.items()}
        usual_change = median(changes.values())
        spread = SIGMA * mad(list(changes.values()))
        return [
            host
            for host, change in changes.items()
            if abs(change - usual_change) > APART * spread
            and self.moved(both[host][0], both[host][1] + usual_change)
        ]


def rank_chance(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The chance of the rank sum of two samples, both ways (Mann and Whitney, its normal form
    with ties shared and half a rank of continuity)."""
    merged = sorted([(v, 0) for v in ours] + [(v, 1) for v in theirs])
    n, m = len(ours), len(theirs)
    if not n or not m:
        return 1.0
    total, ties, at = 0.0, 0.0, 0
    while at < len(merged):
        end = at
        while end + 1 < len(merged) and merged[end + 1][0] == merged[at][0]:
            end += 1
        count = end - at + 1
        total += ((at + end) / 2 + 1) * sum(run == 0 for _, run in merged[at : end + 1])
        ties += count**3 - count
        at = end + 1
    whole = n + m
    variance = n * m / 12 * (whole + 1 - ties / (whole * (whole - 1)))
    if variance <= 0:
        return 1.0
    far = max(0.0, abs(total - n * (whole + 1) / 2) - 0.5)
    return erfc(far / sqrt(2 * variance))


# --- reading ------------------------------------------------------------------------------------


def settled(facts: Facts) -> Timeline | None:
    """The run's stretches without its beginning; None where nothing of it is measured."""
    return facts.memo("levels.settled", _settled)


def _settled(facts: Facts) -> Timeline | None:
    carried = [name for name in SIGNALS if name not in _SET_APART and facts.measured(name)]
    known = pace(facts)
    begins, ends = known.span if known is not None else (None, None)
    if facts.window is None or not carried:
        return None
    first, last = (moment.timestamp() for moment in facts.window)
    job = facts.job
    if job is not None:  # files of metrics may hold what ran before and after
        begins = begins or (job.started_at.timestamp() if job.started_at else None)
        ends = ends or (job.ended_at.timestamp() if job.ended_at else None)
    first, last = max(first, begins or first), min(last, ends or last)
    first += SETTLED * (last - first)
    least_s = ceil((last - first) / STRETCHES)
    if last <= first:
        return None
    return timeline(facts, carried, (first, last), least_s, SAMPLES)


def levels(ours: Facts, theirs: Facts) -> Mapping[str, Level]:
    """Every signal that both runs carry, by name."""
    mine, other = settled(ours), settled(theirs)
    if mine is None or other is None:
        return {}
    found = {}
    for signal in SIGNALS.values():
        if not _wanted(signal) or not (
            ours.measured(signal.name) and theirs.measured(signal.name)
        ):
            continue
        read = [_read(facts, cut, signal) for facts, cut in ((ours, mine), (theirs, other))]
        if all(part is not None and len(part[1]) >= LEAST for part in read):
            (a, course_a), (b, course_b) = (part for part in read if part is not None)
            found[signal.name] = Level(signal, a, b, course_a, course_b)
    return found


def _wanted(signal: Signal) -> bool:
    if signal.name in _SET_APART:
        return False
    return (
        bool(set(signal.labels) & {"host"})
        and (not signal.name.startswith("training_") or signal.name in _TRAINING)
        and "exporter" not in signal.labels
    )


def query_of(signal: Signal) -> str:
    """One number a host over a stretch: the mean of a gauge, the summed rate of a counter."""
    if signal.kind == "counter":
        return f"sum by (host) (rate({signal.name}[w]))"
    return f"avg by (host) (avg_over_time({signal.name}[w]))"


def _read(
    facts: Facts, cut: Timeline, signal: Signal
) -> tuple[dict[str, float], tuple[float, ...]] | None:
    read: ByHost | None = cut.hosts(facts, query_of(signal))
    if read is None:
        return None
    by: dict[str, float] = {}
    for host in read.rows:
        values = [v for end in cut.ends if (v := read.value(host, end)) is not None]
        if values:
            by[host.partition(".")[0]] = median(values)
    course = [median(at.values()) for end in cut.ends if (at := read.at(end))]
    return (by, tuple(course)) if by else None


# --- what differs -------------------------------------------------------------------------------


def changes(ours: Facts, theirs: Facts, known: Mapping[str, Level]) -> tuple[SignalChange, ...]:
    """Signals whose level differs, everywhere or on some hosts, the surest first."""
    out = []
    for level in known.values():
        chance = level.chance
        everywhere = level.everywhere()
        apart = [] if everywhere else level.apart()
        if not apart and (not everywhere or chance * len(known) > CHANCE):
            continue
        cites = uniform_cites(ours, theirs, level.signal)
        if cites:
            out.append(
                SignalChange(level.signal.name, level.signal.unit + "/s" * (
                    level.signal.kind == "counter"), cites[0].value, cites[len(cites) // 2].value,
                    min(1.0, chance * len(known)), tuple(sorted(apart)), len(level.ours), cites)
            )  # fmt: skip
    return tuple(sorted(out, key=lambda change: (change.chance, change.signal)))


def uniform_cites(ours: Facts, theirs: Facts, signal: Signal) -> tuple[QueryCite, ...]:
    """The median, the lowest and the highest host of both runs over all of their settled time."""
    out: list[QueryCite | None] = []
    for facts, whose in ((ours, "of this run"), (theirs, "of the baseline")):
        cut = settled(facts)
        if cut is None:
            return ()
        span_s = max(1, int(cut.ends[-1] - cut.start.timestamp()))
        query = query_of(signal).replace("[w]", f"[{span_s}s]")
        for reduce, which in (("quantile(0.5, {})", "median"), ("min({})", "lowest"),
                              ("max({})", "highest")):  # fmt: skip
            text = f"{signal.name}, the {which} host {whose}"
            out.append(usual(facts, query, cut.ends[-1], text, reduce))
    return tuple(cite for cite in out if cite is not None)


# --- what the hardware is -----------------------------------------------------------------------

HARDWARE: tuple[tuple[str, str, str, float, Weight], ...] = (
    ("GPUs measured", "count({})", "gpu_power_watts", 0.0, "work"),
    ("GPU memory", "quantile(0.5, {})", "gpu_memory_total_bytes", 0.02, "speed"),
    ("highest SM clock", "quantile(0.5, {})", "gpu_sm_clock_max_hertz", 0.01, "speed"),
    ("host memory", "quantile(0.5, {})", "host_memory_total_bytes", 0.1, "speed"),
    ("hosts measured", "count({})", "host_procs_running", 0.0, "work"),
)
"""(name, query, signal, part by which it may differ, what a difference weighs)."""


def hardware(ours: Facts, theirs: Facts) -> list[tuple[str, Weight, bool, QueryCite, QueryCite]]:
    """(name, weight, whether it differs, ours, theirs) of what both measure."""
    out = []
    for name, query, signal, part, weight in HARDWARE:
        if not (ours.measured(signal) and theirs.measured(signal)):
            continue
        read = [_once(facts, query, signal, name) for facts in (ours, theirs)]
        a, b = read
        if a is not None and b is not None:
            far = abs(a.value - b.value) > part * max(abs(a.value), abs(b.value))
            out.append((name, weight, far, a, b))
    return out


def _once(facts: Facts, query: str, signal: str, text: str) -> QueryCite | None:
    cut = settled(facts)
    if cut is None:
        return None
    span_s = max(1, int(cut.ends[-1] - cut.start.timestamp()))
    inner = f"avg_over_time({signal}[{span_s}s])"
    return usual(facts, query.format(inner), cut.ends[-1], text, "{}")


def models(facts: Facts) -> tuple[frozenset[str], QueryCite | None]:
    """The models of the run's GPUs as the exporter names them, with a query that shows one."""
    ask = partial(instant, facts)
    cut = settled(facts)
    for signal in ("gpu_power_watts", "gpu_utilization_ratio", "gpu_sm_active_ratio"):
        answer = ask(signal, cut.ends[-1]) if cut is not None and facts.measured(signal) else None
        rows = [row for row in answer.rows if row.labels.get("model")] if answer else []
        if answer is not None and rows and isfinite(rows[0].last):
            named = frozenset(str(row.labels["model"]) for row in rows)
            return named, answer.cite(rows[0], f"GPU model {rows[0].labels['model']}")
    return frozenset(), None
