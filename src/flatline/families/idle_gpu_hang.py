"""
A single-GPU run holds its GPU and does nothing.

Symptom:
    Memory is held on the GPU, nothing runs on it, and the log is empty or has stopped.  Or one
    kernel never ends: full utilisation at little power.

Mechanism:
    The process is stuck before or between GPU work: a lock, a blocking read, a prompt that waits
    for input, a data loader that never yields.

Told apart from:
    C1 rendezvous-hang: a cold run of several ranks.
    C2 collective-hang: ranks wait in a collective, their GPUs busy.
    D1 input-starvation: work still comes, in bursts.
    Preparation on the host that prints, and a GPU left idle by a run that ended.

Do:
    Dump the stack of the process (py-spy dump), then cancel and resubmit.

References:
    py-spy; NVIDIA DCGM profiling metrics (SM activity, engine activity).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

from flatline.facts import Facts
from flatline.judging.claims import claim
from flatline.judging.gpus import BUSY_RATIO, Readings, readings
from flatline.judging.last_printed import last_printed
from flatline.judging.nought import at_nought
from flatline.judging.one_look import looked_once
from flatline.judging.pace import pace
from flatline.judging.spinning import on_the_only_card, spinning
from flatline.judging.stopped_card import (
    as_long_as_said,
    one_of_several,
    power_at_work,
    stopped_cards,
)
from flatline.judging.timeline import instant
from flatline.model import Action, Cleared, Finding, Judgement, Place, QueryCite
from flatline.signals import ACTIVITY

CODE = "C3"
NAME = "idle-gpu-hang"
NEEDS = ("GPU activity, memory and power metrics",)
DECIDED_BY = (
    "the GPU's power over a quarter of an hour without output, and the stack of its process "
    "(py-spy dump)"
)
EXPLAINS = {"F3": "a run that does nothing holds its allocation to the wall"}

STILL_S = 900
"""Nothing for a quarter of an hour: downloads, tokenising and compilation of one program on one
GPU end within minutes, or print."""
IDLE = 0.01
"""Activity of a GPU on which nothing runs: it measures 0.00 to 0.01."""
HELD_BYTES = 1 << 30
"""A context alone holds some hundred MiB; a model was loaded above this."""
ONCE, MANY = 0.6, 10.0
"""A GPU that was looked at once, so many times longer after the last line than lines were
apart: a judgement."""
STEADY, STEADY_W = 0.2, 15.0
"""Power within a fifth of its highest, or within so many watts, over all that time: nothing came
and went.  Idle cards drift by some watts; a kernel costs a card of 70 W and more some twenty."""
REST = 0.5
"""Of what the same card drew at work, on which nothing ran all that time."""
RESTS = 0.3
"""The same of a card that rests: idle ones draw a fifth of their limit."""
SHARED = 0.62
UNSURE = 0.79
"""Just short of confident."""
LOOK_S = 15.0
TEAR_DOWN_S = 60.0
"""A cancelled job's processes are ended within Slurm's KillWait of 30 s, and scraped as late."""
BEGUN_S = 60.0
"""What had been begun as the last line was printed may run on so long, or is scraped so late."""
UNDATED_S = 300.0
"""Of a run whose log dates nothing: a model is loaded by then, and memory is read by then."""
TOLD, ROWS, FEW_ROWS = 5, 10, 5
_NUMBER = re.compile(r"[-+]?\d[\d.,]*(?:e[-+]?\d+)?")
_AMID = re.compile(
    r"(?i)(?<!\d)\d{1,2}%\|(?!.*100%\|)|\b(?:map|tokeniz\w*|filter|download\w*)\b.{0,80}%"
    r"|\b\d[\d,]{2,15} (?:examples|rows|lines|tokens|files|documents|samples)\b"
)
_WAITS_OR_DONE = re.compile(
    r"(?i)\b(?:done|finished|complete[d]?|bye|exiting|uvicorn|listening|serving|startup complete"
    r"|running on (?:local url|http)|waiting for requests|jupyter|saved)\b|https?://(?:localhost|0\.0)"
)
UNDATED = "When it printed its last line: none bears a time."
LINES_ABOVE = 200
STOPPED = ("cancelled", "timeout")
UNENDED = (*STOPPED, "running")
"""Of which a record says that no end of the program came before."""
ENDED = ("completed", "failed", "node_fail", "out_of_memory", "preempted", "boot_fail")


def judge(facts: Facts) -> Judgement:
    """One GPU, memory held on it, nothing run on it and nothing printed to the end of what was
    read."""
    if (spun := looked_once(facts, CODE)) is not None:
        return spun
    measured = [name for name in ACTIVITY if facts.measured(name)]
    if not measured or facts.window is None or not _may_be(facts):
        return None
    start, end = _held(facts, facts.window)
    if (at_rest := _unpowered(facts)) is not None:
        return at_rest
    worked = _worked(facts, measured[0], _ended(facts, end))
    if worked is not None:
        return worked
    last = last_printed(facts)
    tried = (
        look(facts, activity, last, start, end)
        for look in (_to_the_end, _amid_others)
        for activity in measured  # each tells of any kernel, and one may be noisy at rest
    )
    return next(filter(None, tried), None)


def _unpowered(facts: Facts) -> Finding | None:
    """The only GPU of the run fell to rest by its power, for as long as no step accounts for,
    though its activity says that a kernel ran: a gauge that sticks, or a kernel that spins."""
    held, place = spinning(facts), on_the_only_card(facts)
    if held is None or place is None:
        return None
    drawn = [cite.value for cite in held.shows[-1].cites if isinstance(cite, QueryCite)]
    then, before = drawn[:2]
    if then > RESTS * before:
        return None
    return Finding(
        code=CODE,
        summary=f"{place} drew {then:.0f} W, at work {before:.0f} W, for the last"
        f" {held.seconds / 60:.0f} minutes, and nothing was printed",
        attribution="unknown",
        shows=held.shows,
        implies=(claim("The process holds the device and gives it nothing to do.",
                       *held.shows[-1].cites),),
        strength=SHARED,
        most=UNSURE,
        culprits=(place,),
        onset=datetime.fromtimestamp(held.since, UTC),
        onset_step=facts.last_step,
        attempt=facts.last.n,
        cannot_decide=("Whether a kernel spins there, as its activity says, or that gauge sticks:"
                       " a stack dump of the process would tell.",),
        actions=(
            Action("collect", "Dump the stack of the process before it is cancelled.",
                   "py-spy dump --pid PID"),
        ),
        resubmit="unknown",
    )  # fmt: skip


def _to_the_end(
    facts: Facts, activity: str, last: float | None, start: float, end: float
) -> Finding | None:
    """The one GPU that stood still to the end of what was read, since the last line."""
    undated = last is None and facts.disposition in UNENDED and bool(facts.last_lines)
    dated = start if last is None else max(start, last + BEGUN_S)
    since = _since_work(facts, activity, start, end) if undated else dated
    if since is None:
        return None
    once = end - start < STILL_S and last is not None and not facts.reached_plan
    if once and last is not None and end - last >= MANY * _interval_s(facts):
        since = last
    still_s = int(end - since)
    if still_s < STILL_S:
        return None
    idle, alone = _idle(facts, activity, still_s, start, end)
    if len(idle) != 1 or not (alone or _of_one_gpu(facts)):
        return None
    found = _doubted(_finding(facts, idle[0], still_s, last, end), undated, alone)
    return _once(found, idle[0], still_s) if once else found


def _amid_others(
    facts: Facts, activity: str, last: float | None, start: float, end: float
) -> Finding | None:
    """The one GPU of a host that stopped when the log did, and held its memory on, whatever
    others did with theirs.  Where no line is dated, a record must tell that the run was stopped,
    or the GPU have worked as long as the steps say they took."""
    if not _of_one_gpu(facts) or facts.reached_plan or facts.end_seen:
        return None
    cards = [card for card in stopped_cards(facts, activity, (start, end), BUSY_RATIO, HELD_BYTES)
             if card.until - card.last - BEGUN_S >= STILL_S]  # fmt: skip
    if last is None:
        cards = cards if _went_on(facts) else []
    else:
        late = max(BEGUN_S, 2 * _interval_s(facts))
        cards = [card for card in cards if last - BEGUN_S <= card.last <= last + late]
    if len(cards) != 1 or one_of_several(facts, cards[0], HELD_BYTES):
        return None
    if facts.job is not None and not _taken(facts, cards[0].place, start):
        return None
    one = cards[0]
    if last is None and facts.disposition not in UNENDED and not as_long_as_said(facts, one):
        return None
    still_s = int(one.until - one.last - BEGUN_S)
    rest_w = REST * (power_at_work(facts, one) or 0.0)
    idle, alone = _still_cards(facts, activity, still_s, one.until, rest_w)
    known = next((cites for cites in idle if cites[0].place == one.place), None)
    if known is None:
        return None
    return _doubted(_finding(facts, known, still_s, last, one.until), last is None, alone)


def _may_be(facts: Facts) -> bool:
    """Whether memory and power were read of a run of one process that did not end by itself."""
    measured = all(map(facts.measured, ("gpu_memory_used_bytes", "gpu_power_watts")))
    return (
        measured
        and facts.disposition not in ENDED
        and not facts.crashes
        and (len(facts.ranks) <= 1)
    )


def _of_one_gpu(facts: Facts) -> bool:
    """Whether no more than one GPU was given to it, as far as is known: others beside an idle one
    may be its own, at work, and wait for it (C2)."""
    many = (facts.job and (facts.job.gpus or 1) > 1) or (facts.world_size or 1) > 1
    return len(facts.hosts) <= 1 and not many


def _idle(
    facts: Facts, activity: str, still_s: int, start: float, end: float
) -> tuple[list[list[QueryCite]], bool]:
    """The same of those that took their memory since the start, where there are others."""
    idle, alone = _still_cards(facts, activity, still_s, end)
    if not alone:
        held = readings(instant(facts, f"min_over_time(gpu_memory_used_bytes[{still_s}s])", end))
        rows = {} if held is None else held.rows
        own = [place for place, row in rows.items()
               if row.last >= HELD_BYTES and _taken(facts, place, start)]  # fmt: skip
        idle = [cites for cites in idle if [cites[0].place] == own]
    return idle, alone


def _still_cards(
    facts: Facts, activity: str, still_s: int, end: float, rest_w: float = 0.0
) -> tuple[list[list[QueryCite]], bool]:
    """The GPUs that stood still for so long before the end, and whether there is no other; below
    `rest_w` watts power may vary."""
    read = [
        readings(instant(facts, query.format(w=f"[{still_s}s]"), end))
        for query in (
            f"max_over_time({activity}{{w}})",
            "min_over_time(gpu_memory_used_bytes{w})",
            "max_over_time(gpu_power_watts{w})",
            "min_over_time(gpu_power_watts{w})",
        )
    ]
    known = [one for one in read if one is not None]
    if len(known) < len(read):
        return [], True
    alone = all(len(one.rows) == 1 for one in known)
    still = (_still(known, place, end, rest_w) for place in known[1].rows)
    return [cites for cites in still if cites], alone


def _held(facts: Facts, window: tuple[datetime, datetime]) -> tuple[float, float]:
    """The metrics' window, or the part of it in which the job had its GPU."""
    start, end = (moment.timestamp() for moment in window)
    if facts.job is not None and facts.job.started_at is not None:
        start = max(start, facts.job.started_at.timestamp())
    if facts.disposition in STOPPED:
        known = [at for at in (facts.job and facts.job.ended_at, *facts.last_seen.values()) if at]
        end = min([end, *(at.timestamp() for at in known[:1])]) - TEAR_DOWN_S
    return start, end


def _ended(facts: Facts, end: float) -> float:
    """Up to when the GPU's work counts: to the cancel, the time for tearing down included."""
    return end + TEAR_DOWN_S if facts.disposition in STOPPED else end


def _still(read: Sequence[Readings], place: Place, end: float, rest_w: float) -> list[QueryCite]:
    """Highest activity, least memory, highest and lowest power of a GPU that holds memory and on
    which nothing ran; none of another."""
    texts = "highest activity", "least memory held", "highest power", "lowest power"
    cites = [one.cite(place, end, text) for one, text in zip(read, texts, strict=True)]
    known = [cite for cite in cites if cite is not None]
    if len(known) < len(cites):
        return []
    busy, held, high, low = (cite.value for cite in known)
    steady = high <= rest_w or high - low <= max(STEADY * high, STEADY_W)
    return known if busy <= IDLE and held >= HELD_BYTES and steady else []


def _taken(facts: Facts, place: Place, start: float) -> bool:
    """Whether a GPU held little as the job began: what it holds was taken by it, or by a job that
    began later."""
    first = f"min_over_time(gpu_memory_used_bytes[{UNDATED_S + BEGUN_S:.0f}s])"
    read = readings(instant(facts, first, start + UNDATED_S))
    before = None if read is None else read.value(place, start + UNDATED_S)
    return before is not None and before < HELD_BYTES


def _doubted(found: Finding, undated: bool, alone: bool) -> Finding:
    """The same of a log without times, and on a host of which others hold GPUs."""
    if undated:
        found = replace(found, strength=ONCE, most=ONCE,
                        cannot_decide=(*found.cannot_decide, UNDATED))  # fmt: skip
    return found if alone else _among_others(found)


def _among_others(found: Finding) -> Finding:
    """The same on a host whose other GPUs others hold."""
    return replace(
        found,
        strength=min(found.strength, SHARED),
        most=SHARED,
        cannot_decide=(*found.cannot_decide,
                       "Which of the host's GPUs the job was given: no record says so; this one"
                       " alone held memory and ran nothing since the log's last line."),
    )  # fmt: skip


def _worked(facts: Facts, activity: str, end: float) -> Cleared | None:
    """That the one GPU there is was at work within the last STILL_S of what was read."""
    read = readings(instant(facts, f"max_over_time({activity}[{STILL_S}s])", end))
    if read is None or len(read.rows) != 1:
        return None
    cites = [read.cite(place, end, f"highest activity of the last {STILL_S} s; threshold"
                       f" {IDLE:.0%}") for place in read.rows]  # fmt: skip
    known = tuple(cite for cite in cites if cite is not None and cite.value > BUSY_RATIO)
    return Cleared(CODE, "the GPU was at work to the end", known) if known else None


def _once(found: Finding, known: Sequence[QueryCite], still_s: int) -> Finding:
    """The same where the GPU was looked at once."""
    place, held = known[0].place, known[1].value / 2**30
    return replace(
        found,
        summary=f"{place} held {held:.1f} GiB and ran nothing {still_s / 60:.0f} minutes after the"
        " run's last line",
        strength=ONCE,
        most=ONCE,
        shows=(claim(f"Looked at {still_s} s after the last dated line, {place} was active"
                     f" {known[0].value:.0%}, held {held:.1f} GiB and drew {known[2].value:.0f} W",
                     *known),),
        cannot_decide=(*found.cannot_decide,
                       "Whether what held the memory is the run, and whether it stood still in"
                       " between: the GPU was looked at once."),
    )  # fmt: skip


def _since_work(facts: Facts, activity: str, start: float, end: float) -> float | None:
    """From when on the one GPU that holds memory and stands still ran nothing: what an undated log
    tells last was printed before, for its steps take that GPU.  None where that is not known, the
    log ends amid something else, or the GPU never ran anything and the log is too long for a
    program that was loading."""
    idle, _ = _idle(facts, activity, STILL_S, start, end)
    if len(idle) != 1 or facts.reached_plan or facts.end_seen:
        return None
    first, last = (datetime.fromtimestamp(at, UTC) for at in (start, end))
    read = readings(facts.series(activity, start=first, end=last, step_s=LOOK_S))
    row = None if read is None else read.rows.get(idle[0][0].place)
    worked = [at for at, value in row.points() if value > IDLE] if row is not None else []
    if worked:
        return worked[-1] + BEGUN_S if _went_on(facts) else None
    short = all(line.line <= LINES_ABOVE for line in facts.last_lines.values())
    return start + UNDATED_S if short and _loaded(facts) else None


def _went_on(facts: Facts) -> bool:
    """Whether the log ends with a training step, or what stood behind many of them, or behind each
    of a few: whatever else follows may take the host's time."""
    track = facts.main_track(facts.last.n)
    if track is None:
        return any(_repeats(facts, source) for source in facts.last_lines)
    span = track.of_attempt(facts.last.n)
    step = facts.point(track, span[-1]).cite
    said = _said(facts, step.source)
    earlier = len({line for line in track.lines[span.start : span.stop] if line < step.line})
    often = min(ROWS, max(FEW_ROWS, earlier))
    behind = [text for line, text in said if line > step.line]
    bar = rf"%\|.*\b\d+/{facts.planned_steps or 0} \["  # the trainer's own, below what it printed
    shapes = Counter(_shape(text) for line, text in said if line < step.line)
    return all(re.search(bar, text) or shapes[_shape(text)] >= often for text in behind)


def _shape(text: str) -> str:
    """A line with its numbers alone left out."""
    return " ".join(_NUMBER.sub("#", text).split())


def _repeats(facts: Facts, source: str) -> bool:
    """Whether the log ends with rows that differ in their numbers alone, of a form not known, or
    with the line of one number that stands below each of them."""
    said = [text for _, text in _said(facts, source)]
    shapes = ["", *map(_shape, said)]
    above, last = shapes[-2:] if said else ("", "")
    if not said or _AMID.search(said[-1]):
        return False
    if last.count("#") == 1 and above.count("#") >= 2:
        return Counter(pairwise(shapes))[above, last] >= ROWS
    return Counter(shapes)[last] >= ROWS and last.count("#") >= 2


def _said(facts: Facts, source: str) -> list[tuple[int, str]]:
    """The last lines of a log that are not Slurm's, with their numbers."""
    last = facts.last_lines.get(source)
    if last is None:  # a history that is no text
        return []
    first = max(1, last.line - LINES_ABOVE)
    lines = enumerate(facts.lines(source, first, last.line - first + 1), first)
    return [(n, t) for n, t in lines if t.strip() and not t.startswith(("srun:", "slurmstepd"))]


def _loaded(facts: Facts) -> bool:
    """Whether the log ends where something had been loaded, and not amid a bar other than that of
    training before its first step, at a program's word that it is done, or in a server's that it
    waits for requests."""
    for source in facts.last_lines:
        said = [text for _, text in _said(facts, source)]
        amid = bool(said) and _AMID.search(said[-1]) and not at_nought(said)
        if not said or amid or any(map(_WAITS_OR_DONE.search, said[-TOLD:])):
            return False
    return bool(facts.last_lines)


def _interval_s(facts: Facts) -> float:
    """How far the run's own lines of progress stood apart, or its pauses."""
    seen = pace(facts)
    return 0.0 if seen is None else max(seen.interval_s or 0.0, seen.pauses_s)


def _finding(
    facts: Facts, cites: list[QueryCite], still_s: int, last: float | None, end: float
) -> Finding:
    place = cites[0].place
    values = [cite.value for cite in cites]
    silent = "since its last dated line" if last is not None else "and no dated line of the run"
    return Finding(
        code=CODE,
        summary=f"{place} held {values[1] / 2**30:.1f} GiB and ran nothing for"
        f" {still_s / 60:.0f} minutes",
        attribution="unknown",
        shows=(
            claim(f"For {still_s} s, {silent}, {place} was active {values[0]:.0%} of the time at"
                  f" most, held {values[1] / 2**30:.1f} GiB and drew {values[3]:.0f} to"
                  f" {values[2]:.0f} W", *cites),
        ),
        implies=(
            claim("The process holds the device and gives it nothing to do: it waits for"
                  " something on the host.", *cites),
        ),
        strength=0.7,
        culprits=(place,),
        onset=datetime.fromtimestamp(end - still_s, UTC),
        onset_step=facts.last_step,
        attempt=facts.last.n,
        cannot_decide=("What it waits for: a stack dump of the process would tell.",),
        actions=(
            Action("collect", "Dump the stack of the process before it is cancelled.",
                   "py-spy dump --pid PID"),
        ),
        resubmit="unknown",
    )  # fmt: skip
