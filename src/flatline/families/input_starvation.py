"""
The GPUs wait for input.

Symptom:
    Progress with a low duty cycle: kernels in bursts, gaps of a step's length between them.

Mechanism:
    The data pipeline (reading, decoding, tokenising, copying to the device) is slower than the
    model.

Told apart from:
    D3 straggler: one rank is slow and the others wait in a collective.
    D5 host-contention: the pipeline is slow because something else uses the host.
    G1 healthy: a small model can leave a large GPU idle by nature.  Unless the hosts are seen to
    wait as well, or a baseline run of the same settings kept its GPUs busier and was faster, low
    activity is a warning.

Do:
    More loader workers, prefetching, pinned memory, data prepared beforehand.

References:
    PyTorch DataLoader documentation; NVIDIA DCGM profiling metrics.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from math import isfinite
from statistics import median

from flatline.facts import Facts
from flatline.judging.batch_timers import batch_lengths, batch_waits
from flatline.judging.claims import claim
from flatline.judging.data_waits import apart, grown_waits, lengths
from flatline.judging.fell_idle import BUSY, FellIdle, fell_idle, less_busy
from flatline.judging.host_loads import QUEUE
from flatline.judging.launches import launches
from flatline.judging.outside_steps import outside_steps
from flatline.judging.throughput import Pace, Slow, course, pace, shown, step_at, times
from flatline.judging.timeline import instant, usual
from flatline.judging.uniform import as_fast, idler
from flatline.model import Action, Claim, Cleared, Finding, Judgement, QueryCite
from flatline.tracks import NAN, Track

CODE = "D1"
PROFILED, WAITED, ANALYSED = "profiled", "waited-for-data", "input-bound"
PROFILED_WHOLE = {"run_training_epoch": "its epochs", "Self CPU": "all that it did"}
DEVICES = {"CUDA", "XPU", "NPU", "HPU"}
"""What the tables of Lightning's and torch's profilers call the whole, and the work of a GPU."""
NAME = "input-starvation"
NEEDS = ("GPU activity metrics", "profiler traces|a baseline run")
DECIDED_BY = (
    "gaps between launches beside the time the loader takes (profiler trace of some steps), "
    "or a sound run's GPU activity"
)
EXPLAINS = {"F3": "a run that waits for input does not reach its plan in time"}

SEVERE, MILD = 0.4, 0.7
"""Of the time something ran: below the first the GPUs mostly wait for the host; between the two
many sound runs of small models lie."""
WARM_UP, WARM_UP_STEPS = 3, 10
"""First lines and steps of an attempt, in which a loader fills and kernels are compiled."""
AMID = 3
"""Lines of a log of which the first step stands in one: what came before was cut off."""
MOSTLY = 0.6
"""Waiting for data in so much of its time a loop is paced by it, however busy the GPUs are in the
rest."""
HALF, HARDLY = 0.5, 0.8
"""The same of a run that reached its plan: it could have done so in a fifth of the time.  A
judgement: small models on fast devices wait for half of it in sound runs."""
LOST_S = 900.0
"""Waiting in all, above which the first share holds for such a run as well: those small models are
through in minutes.  A judgement."""
BURST, BURSTS, IN_BURSTS = 5.0, 2, 0.8
"""Times a step a wait is long, how often at least, and the share of all waiting in such waits:
what was fetched ahead is used up each time, which a small model does not explain.  A judgement."""
ROUNDED = 1.01
"""Times its step a wait may be long: the two are read from the clock one after the other, and
printed in few decimals."""
RAISED, DOUBTED = 1.5, 0.79
BY_OTHERS = "Whether other processes took the loaders' CPUs (D5): the run queues grew as well."
IDLED = 1 / 3
"""Of what the waits grew by, as a share of the steps, so much must show on the GPUs: a step waits
for the last of them, and some of a wait is behind kernels that were launched before."""
LASTING = 0.1
"""Of the run: what began only later is looked at by itself."""
AWHILE_S = 300
LEAST_POINTS, LEAST_S = 8, 60.0
"""Steps, and seconds of them, below which a loader has not settled."""
FEW_POINTS, LONG_S = 4, 300.0
"""Fewer steps tell as much where they took minutes."""
PRESSED = 0.2
"""A share of the time in which tasks waited for storage or a CPU that the loaders must feel."""
HOSTS = {
    "storage": (("host_io_pressure_seconds_total", "rate({}[w])"),
                ("host_io_pressure_ratio", "avg_over_time({}[w])")),
    "cpu": (("host_cpu_pressure_seconds_total", "rate({}[w])"),),
}  # fmt: skip


def judge(facts: Facts) -> Judgement:
    """
    Look for GPUs on which mostly nothing ran while steps went on, on all of them alike.

    What starves them must be seen on the hosts or in the loop's own count of its waits as well;
    without that, and where it is mild, a small model on a large GPU looks the same: a warning.
    """
    grown = _grown(facts)
    return _ungrown(facts) if grown is None else grown


def _ungrown(facts: Facts) -> Judgement:
    known = pace(facts)
    signal = next((name for name in BUSY if facts.measured(name)), None)
    counted = _counted(facts) or _profiled(facts) or _said(facts) or _outside(facts)
    counted = counted or _analysed(facts)
    if known is None or signal is None:
        return None if counted is None else _told(facts, counted, _never_busy(facts, signal))
    begins, ends = map(int, _span(facts, known))
    window = f"[{max(1, int(ends - begins))}s]"
    mean = f"avg_over_time({signal}{window})"
    most = usual(facts, mean, ends, "the busiest GPU", "max({})")
    middle = usual(facts, mean, ends, "the median GPU")
    peak = usual(facts, f"max_over_time({signal}{window})", ends, "highest reading", "max({})")
    if counted is not None and most is not None and middle is not None and middle.value < MILD:
        return _finding(facts, middle, most, peak, ("loader", counted.shows), severe=True)
    waits = launches(facts)  # a setting that is known to leave such gaps
    raised = None if waits is not None and waits.gaps else idler(facts, CODE, BUSY)
    if most is None or middle is None or most.value >= MILD or middle.value <= 0.01:
        return raised or _cleared(facts, signal, middle)
    pressed = _pressed(facts, window, ends)
    severe = most.value < SEVERE
    if raised is not None and not (severe and pressed):
        return raised
    idled = None if severe and pressed else fell_idle(facts)
    if idled is not None:
        return _since(facts, idled)
    return _finding(facts, middle, most, peak, pressed if severe else None, severe)


def _span(facts: Facts, known: Pace) -> tuple[float, float]:
    """The last slow phase, where the run has one that lasted, else all of it."""
    run = course(facts)
    begins, ends = known.span
    last = run.slow[-1] if run is not None and run.slow else None
    if last is None or last.ends - last.begins < LASTING * (ends - begins):
        return begins, ends
    return last.begins, last.ends


@dataclass(frozen=True, slots=True)
class _Counted:
    """What the loop printed of its waits, and the share of its time."""

    shows: Claim
    share: float
    bursts: bool = False
    waited_s: float = 0.0


def _counted(facts: Facts) -> _Counted | None:
    """That the loop waited for its data in most of its time, by what it prints of each step."""
    track = facts.main_track(facts.last.n)
    if track is None:
        return None
    run = course(facts)
    since = run.slow[-1].begins if run is not None and run.slow else 0.0
    at, _ = times(facts, track)
    span = track.of_attempt(facts.last.n)
    took = lengths(track, at, span, most=1)
    timed = batch_waits(facts, track)
    took = {**took, **batch_lengths(track, timed)}
    waits = {i: wait_s for i, (wait_s, _) in timed.items()} or dict(enumerate(track.data_s))
    steps = [i for i in _warm(track, span) if 0 <= waits.get(i, NAN) <= ROUNDED * took.get(i, NAN)
             and at.get(i, since) >= since]  # fmt: skip
    each = apart(track, steps)
    whole = sum(took[i] for i in steps) * each
    part = _part(track, steps, waits, took)
    settled = len(steps) * each >= LEAST_POINTS and whole >= LEAST_S
    if steps and track.steps[steps[-1]] < 0:  # not known how many steps a line stands for
        whole = max(whole, at.get(steps[-1], 0.0) - at.get(steps[0], NAN))
    settled = settled or (len(steps) >= FEW_POINTS and whole >= LONG_S)
    later = steps[len(steps) // 2 :]  # a cache that is filled in the beginning is no such wait
    if not settled or min(part, _part(track, later, waits, took)) < SEVERE:
        return None
    worst = max(steps, key=lambda i: waits[i] / (took[i] or 1.0))
    shown = dict.fromkeys((steps[0], worst, steps[-1]))
    cites = [facts.point(track, i).cite for i in shown] + [timed[i][1] for i in shown if timed]
    text = (
        f"The loop waited for its data in {part:.0%} of its step time, by {len(steps)}"
        f" lines that tell both; in one for {waits[worst]:.3g} of {took[worst]:.3g} s"
    )
    bursts = each == 1 and _in_bursts(track, steps, waits)
    return _Counted(claim(text, *cites), part, bursts, part * whole)


def _in_bursts(track: Track, steps: Sequence[int], waits: Mapping[int, float]) -> bool:
    """Whether nearly all of the waiting is in single waits, each as long as several steps."""
    step = median(track.step_s[i] for i in steps)
    bursts = [waits[i] for i in steps if waits[i] >= BURST * step > 0]
    return len(bursts) >= BURSTS and sum(bursts) >= IN_BURSTS * sum(waits[i] for i in steps)


def _part(
    track: Track, steps: Sequence[int], waits: Mapping[int, float], took: Mapping[int, float]
) -> float:
    """The share of the time that was waited for data, each line for the steps since the one
    before: an epoch's first step is printed by itself and waits for the loaders to start."""
    before = [*(steps[:1]), *steps]
    apart = [(max(1, track.steps[b] - track.steps[a]), b) for a, b in pairwise(before)]
    waited = sum(n * min(waits[i], took[i]) for n, i in apart)
    return waited / (sum(n * took[i] for n, i in apart) or 1.0)


def _profiled(facts: Facts) -> _Counted | None:
    """The same, by the table of a profiler at the end of the run; not where the GPU, by the same
    table, was busy all the same."""
    told = {match.groups["key"]: match for match in facts.tagged(PROFILED)
            if match.attempt == facts.last.n}  # fmt: skip
    named = [(told.pop(key, None), unit) for key, unit in PROFILED_WHOLE.items()]
    ran = [float(told.pop(key).groups["seconds"]) for key in DEVICES & told.keys()]
    whole, of = next(((match, unit) for match, unit in named if match is not None), (None, ""))
    waits = next(iter(told.values()), None)
    if waits is None:
        return None
    waited, part = float(waits.groups["seconds"]), waits.groups.get("score")
    if whole is None and part is None:
        return None
    # below the table stands its total, and on the line itself what part of it that is
    total = float(whole.groups["seconds"]) if whole else waited / max(float(part or 0), 1.0) * 100
    of = of or "CPU time"
    busy = bool(ran) and max(ran) >= MILD * total
    if busy or total < LEAST_S or not SEVERE * total <= waited <= total:
        return None
    text = f"By its profiler the loop waited for batches for {waited:.0f} of the {total:.0f} s of"
    cites = (waits.cite, *([whole.cite] if whole is not None else []))
    return _Counted(claim(f"{text} {of}", *cites), waited / total, waited_s=waited)


def _said(facts: Facts) -> _Counted | None:
    """The same, where the program says of its steps that they waited: of most that are shown, and
    for longer than they took."""
    track = facts.main_track(facts.last.n)
    said = [m for m in facts.tagged(WAITED) if m.attempt == facts.last.n]
    steps = 0 if track is None else len(track.of_attempt(facts.last.n))
    if not said or len(said) < SEVERE * steps:
        return None
    waits = median(float(match.groups["seconds"]) for match in said)
    took = [s for s in (track.step_s if track is not None else ()) if isfinite(s)]
    step_s = median(took) if took else 0.0
    if waits <= step_s:
        return None
    text = f"The program says that steps waited for their data, {waits:.3g} s each"
    beside = f" beside {step_s:.3g} s of work" if took else ""
    return _Counted(claim(text + beside, *(m.cite for m in said[:4])), waits / (waits + step_s))


def _analysed(facts: Facts) -> _Counted | None:
    """The same, by what TensorFlow's profiler says of the steps that it sampled, last of all."""
    said = [m for m in facts.tagged(ANALYSED) if m.attempt == facts.last.n]
    share = float(said[-1].groups["score"]) / 100 if said else 0.0
    if not SEVERE <= share <= 1:
        return None
    text = f"By its profiler {share:.0%} of the time of the sampled steps was waiting for input"
    return _Counted(claim(text, said[-1].cite), share)


def _outside(facts: Facts) -> _Counted | None:
    """The same of a loop that tells what its steps took, and that its loader fell behind."""
    told = outside_steps(facts)
    return None if told is None or told[1] < MOSTLY else _Counted(*told)


def _grown(facts: Facts) -> Finding | None:
    """That steps take longer from a moment on, by as much as they wait longer for their data."""
    run, grew = course(facts), grown_waits(facts)
    if run is None or grew is None:
        return None
    by = IDLED * (grew.has - grew.had) / grew.takes
    gpus = less_busy(facts, run.best, grew.phase, by)
    if gpus == ():
        return None
    queued = _queued(facts, run.best, grew.phase)
    return replace(
        _told(facts, _Counted(grew.shows, grew.has / grew.takes)),
        summary=f"Steps take {grew.takes / grew.took - 1:.0%} longer since they wait for their"
        " data",
        shows=(grew.shows, shown(facts, run, grew.phase), *(gpus or ())),
        implies=(claim("What the steps lost is what they wait more: the rest of a step is as long"
                       " as it was.", *grew.shows.cites),),
        strength=0.8 if gpus else 0.75, most=DOUBTED if queued else 1.0,
        role="cause", severity="degraded",
        scope="all" if gpus else "none",
        onset=datetime.fromtimestamp(grew.phase.begins, UTC),
        onset_step=step_at(facts, grew.phase.begins),
        cannot_decide=(*((BY_OTHERS,) if queued else ()),
                       "Whether the loader has more to do or its storage answers later: the data,"
                       " and the hosts' waits for storage, would tell.",
                       *(() if gpus else ("Whether it is so on every host: the log speaks for one"
                                          " rank.",))),
    )  # fmt: skip


def _queued(facts: Facts, fast: Slow, slow: Slow) -> bool:
    """Whether the run queue of the median host grew as well."""
    if not facts.measured(QUEUE):
        return False
    before, then = (
        usual(facts, f"avg_over_time({QUEUE}[{max(1, int(p.ends - p.begins))}s])", int(p.ends),
              "the median host") for p in (fast, slow)
    )  # fmt: skip
    return (
        before is not None and then is not None and then.value >= RAISED * max(1.0, before.value)
    )


def _since(facts: Facts, idled: FellIdle) -> Finding:
    """Busy GPUs of which all had less to do from a moment on, and the steps with them."""
    cites = idled.shows[-1].cites
    return Finding(
        code=CODE,
        summary=f"The GPUs idled more as the run slowed by {idled.part:.0%}: nothing had been"
        " launched on any of them",
        attribution="job",
        shows=idled.shows,
        implies=(claim("They waited for their hosts, not for one another: a wait in a collective"
                       " keeps its kernel running.", *cites),),
        strength=0.68,
        most=0.79,
        severity="degraded",
        scope="all",
        onset=datetime.fromtimestamp(idled.phase.begins, UTC),
        onset_step=step_at(facts, idled.phase.begins),
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=("Whether the loaders, their storage or another part of the program kept the"
                       " GPUs waiting: the loop's own times, or its stacks, would tell.",),
        actions=(Action("fix", "More loader workers and prefetching, data prepared beforehand."),),
    )  # fmt: skip


def _warm(track: Track, points: Sequence[int]) -> list[int]:
    """The lines past the warm-up: the first few are in it unless each stands for many steps, or
    the log begins amid the steps, for a run that resumes prints much before its first."""
    each = apart(track, points)
    if points and track.lines[points[0]] <= AMID:
        begun = track.steps[points[0]] % (track.per_epoch or sys.maxsize)
        if begun > WARM_UP_STEPS + each:
            return list(points)
    return [i for n, i in enumerate(points)
            if n >= WARM_UP or (each >= WARM_UP_STEPS <= track.steps[i] - each)]  # fmt: skip


def _never_busy(facts: Facts, signal: str | None) -> Claim | None:
    """That of the GPUs measured in all the time there is, whosever they were, none was busy."""
    if signal is None or facts.window is None:
        return None
    first, last = (moment.timestamp() for moment in facts.window)
    query = (
        f"max_over_time(avg_over_time({signal}[{AWHILE_S}s])[{max(1, int(last - first))}s:60s])"
    )
    most = usual(facts, query, last, "the busiest GPU in its busiest five minutes", "max({})")
    if most is None or not 0.01 < most.value < MILD:
        return None
    text = f"On no GPU that was measured something ran for more than {most.value:.0%} of the time"
    return claim(text, most)


def _told(facts: Facts, counted: _Counted, idle: Claim | None = None) -> Finding:
    """The loop's own word, where no GPU was measured, or it is not known when: how busy they were
    is not known, but where none ever was. A run that reached its plan all the same is only warned
    of, unless it did little else; so is a benchmark that measured that it reached its target,
    whose tuned loop waits for the device where it takes its data.  Where no GPU ever was busy the
    loop need not have waited for more of its time than `SEVERE`."""
    sound = (facts.disposition == "completed" or facts.reached_plan) and idle is None
    strict = sound and counted.waited_s < LOST_S
    mostly = counted.share >= (HARDLY if strict else MOSTLY) or (counted.bursts and not sound)
    # the GPUs' word beside the loop's, as where both are dated
    mostly = mostly or idle is not None
    met = any(m.attempt == facts.last.n for m in facts.tagged("target-reached"))
    mostly = mostly and not (met and idle is None)
    return Finding(
        code=CODE,
        summary=f"Every few steps the loop waited for its data, {counted.share:.0%} of its time"
        if counted.bursts
        else "The training loop waited for its data "
        + ("most" if counted.share >= HALF else f"{counted.share:.0%}")
        + " of the time",
        fault_class="loader",
        attribution="job",
        shows=(counted.shows, *(() if idle is None else (idle,))),
        implies=(
            claim(
                "Were its data there at once, the loop itself would need"
                f" {1 - counted.share:.0%} of that time.",
                *counted.shows.cites,
            ),
        )
        if mostly
        else (),
        strength=0.5 if not mostly else 0.65 if idle is None else 0.75,
        role="cause" if mostly else "warning",
        severity="degraded" if mostly else "warning",
        scope="all",
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=("Whether the GPUs stood still meanwhile: none was measured.",)
        if idle is None
        else (),
        actions=(Action("fix", "More loader workers and prefetching, data prepared beforehand."),),
    )


def _cleared(facts: Facts, signal: str, middle: QueryCite | None) -> Cleared | None:
    """Busy GPUs, as busy as those of a baseline that was set alike and is no faster."""
    if middle is None or middle.value < MILD:
        return None
    return as_fast(facts, CODE, (signal,))


def _pressed(facts: Facts, window: str, time: float) -> tuple[str, Claim] | None:
    """What tasks of the median host waited for in so much of the time."""
    for kind, carriers in HOSTS.items():
        for signal, query in carriers:
            if not facts.measured(signal):
                continue
            asked = f"avg by (host) ({query.format(signal).replace('[w]', window)})"
            cite = usual(facts, asked, time, f"waiting for {kind}, the median host")
            if cite is not None and cite.value >= PRESSED and _several(facts, asked, time):
                text = f"Tasks of the median host waited for {kind} {cite.value:.0%} of the time"
                return kind, claim(text, cite)
    return None


def _several(facts: Facts, query: str, time: float) -> bool:
    """Whether every host waits, so that none of them is the one at fault."""
    answer = instant(facts, query, time)
    return answer is not None and all(row.last >= PRESSED / 2 for row in answer.rows)


def _implied(busy: Claim, kind: str, waits: Claim) -> Claim:
    who = "the loop" if kind == "loader" else "the hosts"
    text = (
        f"Nothing was launched in the gaps, and {who} waited then: the pipeline that feeds the"
        " GPUs is slower than the model."
    )
    return claim(text, *busy.cites, *waits.cites)


def _strength(pressed: tuple[str, Claim] | None, severe: bool) -> float:
    """The loop's own count is the wait itself; what hosts wait for need not be the run's data."""
    if pressed is None:
        return 0.35 if severe else 0.25
    return 0.8 if pressed[0] == "loader" else 0.7


def _finding(
    facts: Facts, middle: QueryCite, most: QueryCite, peak: QueryCite | None,
    pressed: tuple[str, Claim] | None, severe: bool,
) -> Finding:  # fmt: skip
    busy = claim(
        f"While steps went on something ran on the median GPU {middle.value:.0%} of the time, on"
        f" the busiest {most.value:.0%}"
        + (f", with readings up to {peak.value:.0%}" if peak is not None else ""),
        middle, most, peak,
    )  # fmt: skip
    sure = pressed is not None
    return Finding(
        code=CODE,
        summary=f"The GPUs waited for input: something ran on them {middle.value:.0%} of the time"
        if sure else f"Something ran on the GPUs only {middle.value:.0%} of the time",
        fault_class=pressed[0] if pressed is not None else None,
        attribution="job",
        shows=(busy, *((pressed[1],) if pressed is not None else ())),
        implies=() if pressed is None else (_implied(busy, *pressed),),
        strength=_strength(pressed, severe),
        role="cause" if sure else "warning",
        severity="degraded" if sure else "warning",
        scope="all",
        attempt=facts.last.n,
        ended_run=False,
        cannot_decide=(
            "What the gaps are made of: a profiler trace of a few steps would tell.",
            *(() if sure else ("Whether the model could use more of these GPUs at all.",)),
        ),
        actions=(
            Action("fix", "Give the loaders more workers and prefetching, or prepare the data"
                   " beforehand; then compare the step time."),
        ),
        resubmit="fix_first" if sure else "unknown",
    )  # fmt: skip
