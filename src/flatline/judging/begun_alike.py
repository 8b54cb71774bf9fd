"""
An earlier job that left a checkpoint, and one set alike behind it that begins as it did, though
nothing that either prints asks for a resume.

A job that its limit ended, or that left of itself as that came, was to be gone on with; what
follows it under its name, with its settings and the loss of a new model, began anew.  Whoever
changes a setting, a folder or a limit that was too short begins another run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from math import isfinite, nan
from statistics import median

from flatline.facts import Facts, Marker, Point
from flatline.judging.fresh_start import (
    FILE,
    HEAD,
    plan_beyond_limit,
    saved_steps,
    sought_in,
    was_done,
)
from flatline.judging.settings import settings, stated
from flatline.model import Job, LogCite
from flatline.tracks import Track

GOES_ON = re.compile(
    r"(?i)[-_.](?:cont(?:inue[ds]?|inuation)?|resume[ds]?|restart(?:ed)?|(?:part|chunk|seg)"
    r"[-_.]?\d{1,3})$"
)
"""What is put behind the name of the job that one goes on from."""
LEFT = frozenset(("timeout", "deadline", "preempted", "node_fail", "completed"))
"""How one ends that nobody has to mend, or that may have left of itself."""
SOON = timedelta(days=1)
"""After which the next of a chain is queued at the latest: its author looks once a day."""
AT_ONCE = timedelta(hours=1)
"""The same where its seed is another, as another run of a sweep has it."""
ALONE = "the last of its name; no other of the name ran beside it or its follower"
SHARE = 0.5
"""Of the way from the last loss back to the first: a model that was loaded lies far below."""
FALL = 0.2
"""Of the last loss: the least way; one that is less may be noise."""
LAST = 5
CUT_EPOCHS = 2
"""At which a log begins whose head is not there: a job that goes on from a checkpoint says so."""
SAVES_EVERY = 50
"""Epochs, of nnU-Net (`nnUNetTrainer.save_every`), which does not say that it saves."""
_LAUNCH = re.compile(
    r"(?:^|\s)(?:python3?|torchrun|accelerate|deepspeed|srun|mpirun)\s(?:\S+\s){0,40}?"
    r"(?:\S+\.py|-m \S+)\b"
)
_ASKS = re.compile(r"(?i)resum|continu|restor|load|ckpt|checkpoint|auto|latest")
_SEED = re.compile(r"(?i)(\bseed['\"]?[=: ]\s?)\d{1,20}")
_KEPT_IN = re.compile(r"(?<![\w.+-])(?:[.~]{0,2}/|[A-Za-z])[\w.+=/-]{0,400}")
_COUNTED = re.compile(r"(?i)(?:step|iter|epoch|ckpt|checkpoint|model|save)\S*\d|\d{4}-?\d\d-?\d\d")
"""A part of a path that counts, or says when it was saved."""


@dataclass(frozen=True, slots=True)
class Begun:
    """What was saved, and the losses by which this run began as the other had."""

    saved: Marker
    loss: float
    first: tuple[float, LogCite]
    last: tuple[float, LogCite]


def begun_alike(facts: Facts, first: Point) -> Begun | None:
    """What the run before this one left and this one did not go on from."""
    parent, job = facts.parent, facts.job
    if parent is None or parent.job is None or job is None or parent.chosen != ALONE:
        return None
    done = facts.reached_plan or (facts.disposition == "completed" and not facts.planned_steps)
    if len(facts.attempts) > 1 or done or was_done(parent):
        return None
    plans = {parent.planned_steps, facts.planned_steps} - {None}
    saved = max(saved_steps(parent), key=lambda m: m.progress.step or 0, default=None)
    if parent.reached_plan or len(plans) > 1 or saved is None or first.step is None:
        return None
    begun = as_a_new_model(parent, saved, first)
    if first.step >= SHARE * (saved.progress.step or 0) or begun is None:
        return None
    meant = _does_as_told(facts) or _given_more_time(facts, parent.job)
    alike = _set_alike(facts, parent) and _kept_alike(facts, parent)
    return begun if not meant and (alike or _named_to_go_on(facts, parent)) else None


def left_unfinished(facts: Facts) -> bool:
    """Whether the job before this one, which nobody need have mended, came so far that there is a
    checkpoint of it, whatever it says of that, and nothing is known to be set otherwise."""
    parent = facts.parent
    track = None if parent is None else parent.main_track(parent.last.n)
    if parent is None or track is None or parent.chosen != ALONE or parent.reached_plan:
        return False
    span = track.of_attempt(parent.last.n)
    epochs = max((track.epoch[i] for i in span if isfinite(track.epoch[i])), default=0.0)
    if parent.disposition not in LEFT - {"completed"} or epochs <= SAVES_EVERY:
        return False
    differ, _ = settings(facts, parent)
    return all(found.weight in ("speed", "place") for found in differ)


def may_follow(job: Job, before: Job) -> bool:
    """Whether the records of two jobs of one name allow that one was to go on from the other."""
    queued, ended = job.submitted_at or job.started_at, before.ended_at
    tasks = "_" in job.id and job.id.partition("_")[0] == before.id.partition("_")[0]
    shape = (job.node_count, job.gpus) == (before.node_count, before.gpus)
    soon = queued is not None and ended is not None and queued - ended <= SOON
    return shape and soon and not tasks and before.disposition in LEFT


def as_a_new_model(parent: Facts, saved: Marker, first: Point) -> Begun | None:
    """Whether the loss begins as the other's did, far above what that had come to."""
    track = parent.main_track(parent.last.n)
    now = _losses(first.track, range(first.index, len(first.track)))
    before = [] if track is None else _losses(track, track.of_attempt(parent.last.n))
    if track is None or not now or len(before) <= LAST or first.track.loss_name != track.loss_name:
        return None
    began, last = track.loss[before[0]], median(track.loss[i] for i in before[-LAST:])
    loss = first.track.loss[now[0]]
    if loss - last <= SHARE * max(began - last, FALL * abs(last)):
        return None
    shown = (parent.point(track, i) for i in (before[0], before[-1]))
    ends = tuple((point.loss, point.cite) for point in shown)
    return Begun(saved, loss, *ends)


def _losses(track: Track, span: range) -> list[int]:
    return [i for i in span if isfinite(track.loss[i])]


def _set_alike(facts: Facts, parent: Facts) -> bool:
    """Whether both print the same command, or settings of which none differs but what a job is
    numbered by, and some say what is computed; another seed is a new run of a sweep unless it was
    given as the other had just ended."""
    differ, agreed = settings(facts, parent)
    seeded = any(found.name == "seed" for found in differ) or _seed(facts) != _seed(parent)
    if seeded and not _at_once(facts, parent):
        return False
    for found in differ:
        values = (plain(facts, found.ours or ""), plain(parent, found.theirs or ""))
        if found.weight not in ("speed", "place") and found.name != "seed" and len({*values}) > 1:
            return False
    mine, theirs = _launch(facts), _launch(parent)
    if theirs is None and (mine is None or _without_its_head(parent)):
        return bool(agreed) or (mine is not None and _folder(facts) == _folder(parent) != [])
    return mine == theirs


def _without_its_head(run: Facts) -> bool:
    """Whether the log begins epochs into the training: what it was started by is cut off."""
    track = run.main_track(run.last.n)
    first = nan if track is None else track.epoch[track.of_attempt(run.last.n)[0]]
    return first >= CUT_EPOCHS and not run.markers_of("fresh", "resume", "checkpoint_loaded")


def _at_once(facts: Facts, parent: Facts) -> bool:
    job, before = facts.job, parent.job
    if job is None or before is None or before.ended_at is None:
        return False
    queued = job.submitted_at
    named = GOES_ON.search(job.name or "") is not None
    return named or (queued is not None and timedelta() <= queued - before.ended_at <= AT_ONCE)


def launch(run: Facts) -> LogCite | None:
    """The first command in the head of the log."""
    track = run.main_track(run.last.n)
    shown = (LogCite(track.source, n, text, track.place) for n, text in enumerate(_head(run), 1)
             if track and _LAUNCH.search(text))  # fmt: skip
    return next(shown, None)


def _launch(run: Facts) -> str | None:
    """The same without what a job is numbered by."""
    shown = launch(run)
    return None if shown is None else plain(run, shown.text).strip()


def _does_as_told(facts: Facts) -> bool:
    """Whether the program says that it begins at its first step, by a command that asks for no
    more, and looked for nothing."""
    fresh = facts.markers_of("fresh")
    command = _launch(facts)
    begins = bool(fresh) and all(m.progress.step is not None for m in fresh)
    return begins and command is not None and _ASKS.search(command) is None


def _seed(run: Facts) -> str | None:
    seed = stated(run).get("seed")
    return None if seed is None else seed.value


def plain(run: Facts, text: str) -> str:
    """Without the job's id and its seed."""
    text = _SEED.sub(r"\1#", text)
    own = [run.job.id if run.job is not None else None, _seed(run)]
    for number in own:
        if number and len(number) > 1:
            text = re.sub(rf"(?<!\d){re.escape(number)}(?!\d)", "#", text)
    return text


def _kept_alike(facts: Facts, parent: Facts) -> bool:
    """Whether neither where it saves nor where it looked is another folder by more than what a job
    is numbered by, or by a word for going on: who names a new one means a new run."""
    kept, theirs = _folder(facts), _folder(parent)
    mine = [_parts(facts, path) for path in sought_in(facts, facts.markers_of("fresh"))]
    mine += [kept] if kept else []
    return all(_begin_alike(path, theirs) for path in mine)


def _begin_alike(one: list[str], other: list[str]) -> bool:
    shared = min(len(one), len(other))
    return shared > 0 and one[:shared] == other[:shared]


def _named_to_go_on(facts: Facts, parent: Facts) -> bool:
    """Whether a folder of this run's has the name of one of the other's and a word for going on,
    and nothing is known to be set otherwise."""
    mine, theirs = (
        {path.rstrip("/") for text in _head(run) for path in FILE.findall(text)}
        for run in (facts, parent)
    )
    named = any(GOES_ON.search(path) and GOES_ON.sub("", path) in theirs for path in mine)
    return named and not settings(facts, parent)[0]


def _head(run: Facts) -> Sequence[str]:
    track = run.main_track(run.last.n)
    return run.lines(track.source, 1, min(HEAD, track.lines[0])) if track is not None else ()


def _folder(run: Facts) -> list[str]:
    """The parts of the path that its first checkpoint is said to be saved to."""
    said = (m.cite.text for m in run.markers_of("checkpoint_saved")[:1])
    paths = [path for text in said for path in _KEPT_IN.findall(text) if "/" in path]
    return _parts(run, max(paths, key=len, default=""))


def _parts(run: Facts, path: str) -> list[str]:
    return [re.sub(r"\d+", "#", part) if _COUNTED.search(part) else GOES_ON.sub("", part)
            for part in plain(run, path).split("/") if part]  # fmt: skip


def _given_more_time(facts: Facts, before: Job) -> bool:
    """Whether its limit was raised to what the plan takes, so that it needs no checkpoint."""
    job = facts.job
    raised = job is not None and (job.limit_s or 0) > (before.limit_s or 0)
    named = job is not None and GOES_ON.search(job.name or "") is not None
    return raised and not named and bool(facts.planned_steps) and not plan_beyond_limit(facts)
